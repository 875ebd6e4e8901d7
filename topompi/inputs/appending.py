"""Files that grow: opened without following links, and logs of lines whose torn end, left by a crash, is cut off."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from ..errors import TopompiError
from ..guard import intrusion

__all__ = ["AppendedLines", "open_growing"]

_LOOK = 65536  # bytes that are read at once


def open_growing(path: str | os.PathLike[str], error: type[TopompiError], mode: int = 0o600) -> int:
    """Open a regular file for reading and appending, or make it; return its descriptor.

    :param path: path of the file.
    :param error: class of the error that is raised.
    :param mode: permissions of a new file, from which the umask removes bits.
    :raises TopompiError: ``error``, if the path is a link or no regular file, if another user owns the file or may
        write to it, if root may not trust the folder, or if the file cannot be opened.
    """
    if os.geteuid() == 0 and (who := intrusion(os.fspath(Path(path).absolute().parent), may_add=True)):
        raise error(f"{path}: expecting a folder in which nobody else can replace root's files, got {who}")
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    try:
        if os.path.islink(path):
            raise error(f"{path}: expecting a regular file, got a link")
        fd = os.open(path, flags, mode)
    except OSError as problem:
        raise error(f"{path}: expecting a file to write: {problem.strerror or problem}") from problem
    wrong = _fault(os.fstat(fd))
    if wrong:
        os.close(fd)
        raise error(f"{path}: expecting a file of user {os.geteuid()} that nobody else may write, got {wrong}")
    return fd


def _fault(found: os.stat_result) -> str:
    """The reason why a file may not be appended to, in words; "" if there is none."""
    if not stat.S_ISREG(found.st_mode):
        return "no regular file"
    if found.st_uid != os.geteuid():
        return f"one of user {found.st_uid}"
    return "one that others may write (chmod go-w)" if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


class AppendedLines:
    """A log that is being written: one text per line, each ``write`` one system call.

    A log that exists is continued. Its first line is checked before a torn last line is cut off.

    :param path: path of the file.
    :param first: the first line of a new log, with its end.
    :param mark: the bytes with which the first line of every log of this format begins.
    :param check: function that raises an error if the first line of an existing file, given without its end, is not
        that of this log.
    :param error: class of the error that is raised if the file cannot be opened.
    :param mode: permissions of a new file, from which the umask removes bits.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        first: bytes,
        mark: bytes,
        check: Callable[[bytes], object],
        error: type[TopompiError],
        mode: int = 0o640,
    ) -> None:
        self.fd = open_growing(path, error, mode)
        try:
            if size := os.fstat(self.fd).st_size:
                head, newline, _ = os.pread(self.fd, _LOOK, 0).partition(b"\n")
                is_torn = not newline and (head.startswith(mark) or mark.startswith(head))
                if not is_torn:  # a crash may leave a beginning of the first line; any other file is not touched
                    check(head)
                os.ftruncate(self.fd, self._end_of_lines(size))
            if not os.fstat(self.fd).st_size:
                self.write(first)
        except BaseException:
            os.close(self.fd)
            raise

    def _end_of_lines(self, size: int) -> int:
        """The length in bytes of the complete lines of a file of ``size`` bytes."""
        while size:
            start = max(0, size - _LOOK)
            at = os.pread(self.fd, size - start, start).rfind(b"\n")
            if at >= 0:
                return start + at + 1
            size = start
        return 0

    def write(self, lines: bytes) -> None:
        """Append lines.

        :param lines: whole lines, each with its end.
        """
        while lines:  # a short write happens only if the disk is full or a signal arrives
            lines = lines[os.write(self.fd, lines) :]

    def sync(self) -> None:
        """See all that was written to the disk."""
        os.fsync(self.fd)

    def close(self) -> None:
        """See all that was written to the disk, and close the file."""
        os.fsync(self.fd)
        os.close(self.fd)
