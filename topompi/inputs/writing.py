"""Writing of files: first to a new file with an unpredictable name in the same folder, which is then renamed.

A symbolic link at the path is replaced, never followed. A device, a FIFO of the user's own, and any path in ``/dev`` or
``/proc``, for example ``/dev/stdout``, are written to directly.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ..errors import OutputError

__all__ = ["check_output", "open_output", "write_text"]

PRIVATE, PUBLIC = 0o600, 0o666  # modes of new files, from which the umask removes bits
_DIRECT = ("dev", "proc")
_NAME_BYTES = 200  # bytes of a file's name that its temporary name keeps, because file systems allow 255 in all


@contextmanager
def open_output(
    path: str | os.PathLike[str], mode: str = "w", *, private: bool = False, **how: Any
) -> Iterator[IO[Any]]:
    """Open a stream whose content becomes the file when the context ends; after an error, the old file stays.

    :param path: path of the file.
    :param mode: ``w`` or ``wb``.
    :param private: whether only the owner may read the file; if not, it has the mode of the replaced file, or of a new
        one.
    :param how: further arguments of `open`, namely ``encoding``, by default UTF-8, and ``newline``.
    :raises OutputError: if the path is a directory, a socket, or a FIFO or device of another user.
    :raises OSError: if the file cannot be written.
    """
    path = Path(path)
    if "b" not in mode:
        how.setdefault("encoding", "utf-8")
    before = None if _is_direct(path) else _look(path)
    if _is_direct(path) or (before is not None and not stat.S_ISREG(before.st_mode)):
        flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY | (0 if _is_direct(path) else os.O_NOFOLLOW)
        with open(os.open(path, flags), mode, **how) as stream:
            yield stream
        return
    beside = path.with_name(f".{path.name.encode()[:_NAME_BYTES].decode(errors='ignore')}.{os.urandom(8).hex()}")
    try:
        with open(_open_new(path, beside, before, private), mode, **how) as stream:
            yield stream
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def write_text(path: str | os.PathLike[str], text: str, *, private: bool = False, encoding: str = "utf-8") -> None:
    """Write a text file as a whole; arguments and errors are those of `open_output`."""
    with open_output(path, private=private, encoding=encoding) as stream:
        stream.write(text)


def check_output(path: str | os.PathLike[str]) -> bool:
    """Return whether a file could be written now, without writing it."""
    path = Path(path)
    if _is_direct(path):
        return os.access(path, os.W_OK)
    try:
        before = _look(path)
    except OSError:
        return False
    return os.access(path.parent if before is None or stat.S_ISREG(before.st_mode) else path, os.W_OK)


def _is_direct(path: Path) -> bool:
    """Return whether a path lies in /dev or /proc, the places of devices and of links to open files of this process."""
    _, *parts = path.absolute().parts
    return parts[0] in _DIRECT and parts[1:2] != ["shm"]


def _look(path: Path) -> os.stat_result | None:
    """Return the status of the file that will be written or replaced; None if there is no file, or only a link."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(found.st_mode):
        return None
    if not stat.S_ISREG(found.st_mode):
        _check_stream(path, found)
    return found


def _check_stream(path: Path, found: os.stat_result) -> None:
    kind = "a FIFO" if stat.S_ISFIFO(found.st_mode) else "a device" if stat.S_ISCHR(found.st_mode) else ""
    if not kind:
        what = "a directory" if stat.S_ISDIR(found.st_mode) else "neither file nor FIFO"
        raise OutputError(f"{path}: expecting the name of a file to write, got {what}")
    if found.st_uid not in (os.geteuid(), 0):
        raise OutputError(f"{path}: expecting a file to write, got {kind} of another user")


def _open_new(path: Path, beside: Path, before: os.stat_result | None, private: bool) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(beside, flags, PRIVATE if private else PUBLIC)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    if not private and before is not None and before.st_uid == os.geteuid():
        os.fchmod(handle, stat.S_IMODE(before.st_mode) & 0o777)
    return handle
