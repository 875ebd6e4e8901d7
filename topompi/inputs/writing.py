"""Files that topompi writes: made beside under a name that nobody can foresee, then renamed as a whole.

A link at the place of a file is replaced, never followed. A device, a FIFO of the user's own, and whatever lies in
``/dev`` or ``/proc``, such as ``/dev/stdout``, are written to as they are.
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

PRIVATE, PUBLIC = 0o600, 0o666  # the umask takes bits of it away
_DIRECT = ("dev", "proc")
_NAME_BYTES = 200  # of a name that the name beside it repeats: file systems allow 255


@contextmanager
def open_output(
    path: str | os.PathLike[str], mode: str = "w", *, private: bool = False, **how: Any
) -> Iterator[IO[Any]]:
    """A stream whose content becomes the file when the context is left without an error; else nothing changes.

    :param path: the file's path.
    :param mode: ``w`` or ``wb``.
    :param private: whether its owner alone may read it; else the umask says, or the mode of the file before.
    :param how: as `open` takes it: ``encoding``, which is UTF-8 by default, and ``newline``.
    :raises OutputError: for a directory, a socket, and a FIFO or device of another user.
    :raises OSError: if it cannot be written.
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
    """Write a file of text as a whole; arguments and errors as those of `open_output`."""
    with open_output(path, private=private, encoding=encoding) as stream:
        stream.write(text)


def check_output(path: str | os.PathLike[str]) -> bool:
    """Whether a file could be written now, without writing it."""
    path = Path(path)
    if _is_direct(path):
        return os.access(path, os.W_OK)
    try:
        before = _look(path)
    except OSError:
        return False
    return os.access(path.parent if before is None or stat.S_ISREG(before.st_mode) else path, os.W_OK)


def _is_direct(path: Path) -> bool:
    """Whether it lies where the system keeps devices, and links to what this process has open."""
    _, *parts = path.absolute().parts
    return parts[0] in _DIRECT and parts[1:2] != ["shm"]


def _look(path: Path) -> os.stat_result | None:
    """The state of what will be written to or replaced, None for a file that is new or takes the place of a link."""
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
