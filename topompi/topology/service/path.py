"""The path of a UNIX socket: nobody else can put another one there, or connect before it is ready."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress

from ...errors import ServiceError
from ...guard import intrusion
from ..client import Address

__all__ = ["SocketPath"]


class SocketPath:
    """A path to listen at, in a folder where nobody else can replace what is there.

    :param address: the path of a UNIX socket.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._ours: tuple[int, int] | None = None

    def bind(self) -> socket.socket:
        """The socket, bound and not yet listening: all users may connect once it does, for the folder says who may ask.

        What a service that was killed has left there is replaced.

        :raises ServiceError: for a folder in which others can replace files, and where another socket or file is.
        """
        others = intrusion(os.path.dirname(os.path.abspath(self.address.path)), may_add=True)
        if others:
            raise ServiceError(f"{self.address}: expecting a folder where no other user can replace it, got {others}")
        self._clear()
        made = socket.socket(socket.AF_UNIX)
        before = os.umask(0o111)
        try:
            made.bind(self.address.path)
        except BaseException:
            made.close()
            raise
        finally:
            os.umask(before)
        self._ours = self._found()
        return made

    def _clear(self) -> None:
        """Remove a socket of this user's that nobody listens at."""
        with suppress(OSError), self.address.connect():
            raise ServiceError(f"{self.address}: expecting a path that no service listens at")
        with suppress(FileNotFoundError):
            found = os.lstat(self.address.path)
            if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
                raise ServiceError(f"{self.address}: expecting a path that is free, got a file of user {found.st_uid}")
            os.unlink(self.address.path)

    def remove(self) -> None:
        """Remove the socket, if it is still the one that was bound here."""
        if self._ours is not None and self._found() == self._ours:
            os.unlink(self.address.path)

    def _found(self) -> tuple[int, int] | None:
        try:
            found = os.lstat(self.address.path)
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns  # numbers of files are used again
