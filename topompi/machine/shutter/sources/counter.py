"""The counter that a program publishes in shared memory as its progress."""

from __future__ import annotations

import os

from ..holds import Process
from ..published import COUNTER_AT, open_folder, path_of, read_counter
from .base import Reading, UnavailableError

__all__ = ["Counter"]


class Counter:
    """The source of published counters."""

    name, unit, warning, kind = "counter", "steps that the program counts", "", "progress"

    def check(self) -> None:
        """Do nothing: each process may or may not publish a counter."""

    def open(self, process: Process) -> _CounterReader:
        """Open the counter that a process publishes.

        :param process: the process.
        :raises UnavailableError: if the process publishes none, or another user owns the file.
        """
        try:
            for user in process.users():
                fd = self._file(user, process.pid)
                if fd < 0:
                    continue
                if read_counter(fd, process.pid, process.status().start) is not None:
                    return _CounterReader(fd, process)
                os.close(fd)
        except OSError:
            pass
        raise UnavailableError("the process publishes no counter")

    def _file(self, user: int, pid: int) -> int:
        """Open the counter's file of a process in the folder of a user; return its descriptor, -1 if there is none.

        :param user: number of the user, who must own the file.
        :param pid: number of the process.
        """
        try:
            folder = open_folder(user)
        except OSError:
            return -1
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            fd = os.open(os.path.basename(path_of(user, pid, self.kind)), flags, dir_fd=folder)
        except OSError:
            return -1
        finally:
            os.close(folder)
        if os.fstat(fd).st_uid == user:
            return fd
        os.close(fd)
        return -1


class _CounterReader:
    """A reader of one counter.

    :param fd: descriptor of the counter's file, which the reader closes.
    :param process: the process that counts.
    """

    def __init__(self, fd: int, process: Process) -> None:
        self._fd, self._process = fd, process

    def read(self) -> Reading:
        """Return the steps that the process has counted.

        :raises OSError: if the file has been shortened.
        """
        value = os.pread(self._fd, 8, COUNTER_AT)
        if len(value) < 8:
            raise OSError("the counter's file has been shortened")
        return int.from_bytes(value, "little"), None

    def close(self) -> None:
        """Close the counter's file."""
        os.close(self._fd)
