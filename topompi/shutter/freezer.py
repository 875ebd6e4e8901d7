"""Control groups of version 2 that can be stopped and resumed as a whole."""

from __future__ import annotations

import os
from contextlib import suppress

from .holds import Hold, Process

__all__ = ["Freezer", "hold_of"]


class Freezer(Hold):
    """A control group (version 2), held by its file cgroup.freeze. Its processes see neither SIGSTOP nor SIGCONT.

    :param fd: descriptor of cgroup.freeze, open for reading and writing.
    :param path: path of the group, for messages and for the file cgroup.events.
    """

    kind = "freezer"

    def __init__(self, fd: int, path: str = "") -> None:
        super().__init__(fd)
        self.path = path
        self._events = os.open(f"{path}/cgroup.events", os.O_RDONLY | os.O_CLOEXEC) if path else -1

    @classmethod
    def open(cls, path: str) -> Freezer:
        """Hold a control group.

        :param path: directory of the group.
        :raises OSError: if the group is not there or not delegated to this user.
        """
        return cls(os.open(f"{path}/cgroup.freeze", os.O_RDWR | os.O_CLOEXEC), path)

    def _event(self, name: bytes) -> bool:
        try:
            return name + b" 1" in os.pread(self._events, 4096, 0)
        except OSError:
            return False

    def is_alive(self) -> bool:
        """Return whether the group or one below it has a process."""
        return self._event(b"populated")

    def is_stopped(self) -> bool:
        """Return whether all processes are frozen, whoever froze them."""
        return self._event(b"frozen")

    def stop(self) -> None:
        """Freeze the group."""
        with suppress(OSError):
            os.pwrite(self.fd, b"1", 0)

    def resume(self) -> bool:
        """Thaw the group; a process that its user has stopped by a signal stays stopped.

        Return False if somebody else had thawed it already.
        """
        still = self.is_stopped() or not self.is_alive()
        with suppress(OSError):
            os.pwrite(self.fd, b"0", 0)
        return still

    def close(self) -> None:
        """Close both descriptors."""
        super().close()
        if self._events >= 0:
            os.close(self._events)


def hold_of(kind: str, fd: int) -> Hold:
    """Make a hold of a descriptor that came from another process; it can only be resumed and closed.

    :param kind: ``kind`` of the hold's class.
    :param fd: the descriptor.
    """
    return Freezer(fd) if kind == Freezer.kind else Process(fd)
