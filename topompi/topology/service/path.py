"""The path of a UNIX socket, protected from replacement by other users."""

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
    """The path of a UNIX socket, in a folder in which no other user can replace files.

    :param address: address of the service with the socket's path.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._ours: tuple[int, int] | None = None

    def bind(self) -> socket.socket:
        """Make a socket bound to the path, not yet listening; the folder's permissions decide which users may connect.

        The socket that a killed service has left at the path is replaced.

        :raises ServiceError: if other users can replace files in the folder, or the path is in use.
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
        """Remove this user's socket at the path if no service listens on it."""
        with suppress(OSError), self.address.connect():
            raise ServiceError(f"{self.address}: expecting a path that no service listens at")
        with suppress(FileNotFoundError):
            found = os.lstat(self.address.path)
            if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
                raise ServiceError(f"{self.address}: expecting a path that is free, got a file of user {found.st_uid}")
            os.unlink(self.address.path)

    def remove(self) -> None:
        """Remove the socket if it is still the one that `bind` made."""
        if self._ours is not None and self._found() == self._ours:
            os.unlink(self.address.path)

    def _found(self) -> tuple[int, int] | None:
        try:
            found = os.lstat(self.address.path)
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns  # the time as well, because inode numbers are used again
