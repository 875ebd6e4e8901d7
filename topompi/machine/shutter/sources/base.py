"""The interface of sources of progress."""

from __future__ import annotations

from typing import Protocol

from ..holds import Process

__all__ = ["Reader", "Reading", "Source", "UnavailableError"]

Reading = tuple[int, int | None]  # progress in the source's unit, and cycles if the source counts them


class UnavailableError(Exception):
    """A source cannot measure a process, or no process of this machine; the message says why."""


class Reader(Protocol):
    """A reader of one process's progress."""

    def read(self) -> Reading:
        """Return the progress since an arbitrary start.

        :raises OSError: if the process has ended.
        """

    def close(self) -> None:
        """Close the reader's descriptors."""


class Source(Protocol):
    """A source of progress.

    :ivar name: name on the command line and in logs.
    :ivar unit: unit of the progress.
    :ivar warning: limits of the source that a reader of the log has to know, or "".
    """

    name: str
    unit: str
    warning: str

    def check(self) -> None:
        """Check that the machine has this source.

        :raises UnavailableError: if no process can be measured, with the reason.
        """

    def open(self, process: Process) -> Reader:
        """Start to read a process's progress.

        :param process: the process.
        :raises UnavailableError: if this process cannot be measured.
        """
