"""Reading of files, directories and archives as streams, unpacked and within limits."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from ..errors import SourceError, TopompiError
from .guard import guarded
from .kinds import foreign, kind_of
from .limits import current_limits
from .unpacking import Budget, Section, Unpacked, unpack

__all__ = ["InputFile", "kinds_of", "open_begun", "open_inputs", "read_input", "read_text"]

HEAD_BYTES = 4096
LINES_A_LOOK = 4096  # lines that are read between two checks of the time limit
MOST_LOOKED_AT = 256  # files; an error message describes the kinds of no more than these, because each has to be opened
_NODES = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO (write its content to a file)"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISSOCK, "a socket"),
)


@dataclass(frozen=True)
class InputFile:
    """One input: an unpacked file, or a member of a directory or archive.

    :param name: name of the input in messages.
    :param open: function that opens a stream of the bytes.
    :param error: class of the error that is raised if the input cannot be read.
    :param wanted: expected content, in words.
    :param ends: second of the monotonic clock at which the time limit for reading ends.
    """

    name: str
    open: Callable[[], IO[bytes]]
    error: type[TopompiError] = SourceError
    wanted: str = "a topology"
    ends: float = float("inf")

    def head(self) -> str:
        """Return the first kilobytes as text, to recognise the format; raise ``error`` if they are empty or binary."""
        data = self.first_bytes()
        if not data.strip():
            raise self.error(f"{self.name}: expecting {self.wanted}, got an empty file")
        if b"\x00" in data:
            raise self.error(f"{self.name}: expecting text, got {kind_of(data, self.wanted)}")
        return data.decode("utf-8", errors="replace").removeprefix("\ufeff")

    def first_bytes(self) -> bytes:
        """Return the first kilobytes, unpacked but not decoded."""
        with guarded(self.name, self.error), self.open() as stream:
            return stream.read(HEAD_BYTES)

    def refuse_foreign(self) -> None:
        """Raise ``error`` if another program wrote the input, in a format that no reader with this error reads."""
        kind = foreign(self.first_bytes(), (self.error.__name__,), self.wanted)
        if kind:
            raise self.error(f"{self.name}: expecting {self.wanted}, got {kind}")

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield line numbers, from 1, and lines without line ends (LF or CRLF), read as a stream.

        :raises TopompiError: ``error``, if the input is damaged or reading exceeds the limit of seconds.
        """
        with guarded(self.name, self.error), self.open() as stream:
            for number, line in enumerate(io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace"), 1):
                if number % LINES_A_LOOK == 0 and time.monotonic() > self.ends:
                    most = current_limits()
                    most.check("seconds", most.seconds + 1, f"{self.name}:{number}", self.error)
                yield number, line.rstrip("\r\n")

    def data(self) -> bytes:
        """Return all bytes of the input, unpacked."""
        with guarded(self.name, self.error), self.open() as stream:
            return stream.read()

    def text(self) -> str:
        """Return the whole text of the input, for parsers that cannot read a stream."""
        return self.data().decode("utf-8-sig", errors="replace")


def open_inputs(
    path: str | os.PathLike[str], error: type[TopompiError] = SourceError, wanted: str = "a topology"
) -> list[InputFile]:
    """Return the inputs at a path: one for a file, one per member of a directory or tar archive, sorted by name.

    A packed file is recognised by its content and unpacked once, to memory or, beyond 64 MiB, to an unnamed file.

    :param path: path of a file, a directory or an archive.
    :param error: class of the error that is raised.
    :param wanted: expected content, in words.
    :raises TopompiError: ``error``, if there is no file, or it is a FIFO, a device or damaged, or exceeds a limit.
    """
    path = Path(path)
    budget = Budget(current_limits(), error)
    with guarded(str(path), error):
        if not path.exists():
            raise error(f"{path}: no such file or directory")
        files = _walk(path, budget) if path.is_dir() else [path]
        found = [one for file in files for one in _open_file(file, budget)]
    return [replace(one, wanted=wanted) for one in found]


def kinds_of(inputs: Sequence[InputFile]) -> str:
    """Describe in words the kinds of files that no reader recognised; of many kinds, the three most frequent."""
    kinds = Counter(kind_of(one.first_bytes(), one.wanted) for one in inputs[:MOST_LOOKED_AT])
    if len(inputs) < 2:
        return next(iter(kinds), "no file")
    some = "; ".join(f"{count} of {name}" for name, count in kinds.most_common(3))
    return f"{len(inputs)} files, {some}{'; ...' if len(kinds) > 3 else ''}"


def read_input(path: str | os.PathLike[str], error: type[TopompiError], wanted: str) -> bytes:
    """Return the bytes of one file, unpacked.

    :param path: path of the file.
    :param error: class of the error that is raised.
    :param wanted: expected content, in words.
    :raises TopompiError: ``error``, as in `open_inputs`, and if the path is a directory or an archive, or the file is
        empty.
    """
    budget = Budget(current_limits(), error)
    with guarded(str(path), error):
        _, opener = _unpacked(Path(path), budget)
        with opener() as stream:
            data = stream.read()
    if not data.strip():
        raise error(f"{path}: expecting {wanted}, got an empty file")
    return data


def read_text(path: str | os.PathLike[str], error: type[TopompiError], wanted: str) -> str:
    """Return the text of one file in UTF-8.

    :param path: path of the file.
    :param error: class of the error that is raised.
    :param wanted: expected content, in words.
    :raises TopompiError: ``error``, as in `read_input`, and if the file is not UTF-8, with the line.
    """
    data = read_input(path, error, wanted)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data[: problem.start].count(b"\n") + 1
        raise error(
            f"{path}:{line}: expecting {wanted} in UTF-8, got {kind_of(data[:HEAD_BYTES], wanted)}"
        ) from problem


def open_begun(
    path: str | os.PathLike[str], error: type[TopompiError], wanted: str, *, owners: Collection[int] | None = None
) -> InputFile:
    """Open a file that a program may still be writing; of a packed file that ends too early, the sound part is read.

    :param path: path of the file.
    :param error: class of the error that is raised.
    :param wanted: expected content, in words.
    :param owners: user numbers; if given, one of these users must own the file, and it must not be a symbolic link;
        None to allow any file.
    :raises TopompiError: ``error``, as in `open_inputs`, and if a user who is not in ``owners`` owns the file.
    """
    budget = Budget(current_limits(), error)
    with guarded(str(path), error):
        _, opener = _unpacked(Path(path), budget, begun=True, owners=owners)
    return InputFile(str(path), opener, error, wanted, budget.ends)


def _walk(folder: Path, budget: Budget) -> list[Path]:
    """Return the regular files below a folder; raise the budget's error as soon as they exceed the limit."""
    found: list[Path] = []
    for at, _, names in os.walk(folder):
        for name in names:
            file = Path(at) / name
            if file.is_file():
                budget.take_member(str(folder))
                found.append(file)
    return sorted(found)


def _open_file(path: Path, budget: Budget) -> list[InputFile]:
    length, opener = _unpacked(path, budget)
    with guarded(str(path), budget.error), opener() as stream:
        if stream.read(262)[257:] != b"ustar":
            return [InputFile(str(path), opener, budget.error, ends=budget.ends)]
        stream.seek(0)
        members = list(_members(path, stream, length, budget))
    return sorted((_member(path, *member, opener, budget) for member in members), key=lambda one: one.name)


def _members(path: Path, stream: IO[bytes], length: int, budget: Budget) -> Iterator[tuple[str, int, int]]:
    """Yield name, offset and size of each file in a tar archive."""
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        for member in _read_on(path, archive, budget):
            budget.take_member(str(path))
            if member.issparse():
                raise budget.error(f"{path}:{member.name}: expecting a plain file in the archive, got a sparse one")
            if member.isfile() and not 0 <= member.size <= length - member.offset_data:
                raise budget.error(f"{path}:{member.name}: cannot be read: the archive ends within it")
            if member.isfile():
                yield member.name, member.offset_data, member.size
        _check_end(path, stream, archive.offset, budget)


def _read_on(path: Path, archive: tarfile.TarFile, budget: Budget) -> Iterator[tarfile.TarInfo]:
    """Yield the members of a tar archive; an error after the first member names the member before it."""
    before = ""
    try:
        for member in archive:
            before = member.name
            yield member
    except tarfile.TarError as problem:
        place = f"{path}:{before}" if before else str(path)
        raise budget.error(f"{place}: cannot be read, it or what follows is damaged: {problem}") from problem


def _check_end(path: Path, stream: IO[bytes], offset: int, budget: Budget) -> None:
    """Raise an error if bytes other than zeros follow the last member: tarfile takes a damaged header for the end."""
    stream.seek(offset)
    if stream.read(512).strip(b"\x00"):
        raise budget.error(f"{path}: cannot be read, it is damaged: no header of a member at byte {offset:,}")


def _member(path: Path, name: str, start: int, size: int, opener: Callable[[], IO[bytes]], budget: Budget) -> InputFile:
    def part() -> IO[bytes]:
        return io.BufferedReader(Section(opener(), start, size))

    return InputFile(f"{path}:{name}", part, budget.error, ends=budget.ends)


def _unpacked(
    path: Path, budget: Budget, *, begun: bool = False, owners: Collection[int] | None = None
) -> tuple[int, Callable[[], IO[bytes]]]:
    """Unpack a file if it is packed; return the length of its content, and a function that opens a stream of it."""
    with guarded(str(path), budget.error), _open_regular(path, budget.error, owners) as stream:
        size = os.fstat(stream.fileno()).st_size
        store: Unpacked | None = unpack(stream, size, str(path), budget, begun=begun)
    if store is None:
        budget.take_bytes(size, str(path))
        return size, lambda: _open_regular(path, budget.error, owners)
    return store.length, store.open


def _open_regular(path: Path, error: type[TopompiError], owners: Collection[int] | None = None) -> IO[bytes]:
    """Open a regular file; refuse a device, which a read could affect, and a FIFO, which would wait for a writer."""
    with guarded(str(path), error):
        if owners is not None and path.is_symlink():
            raise error(f"{path}: expecting a regular file, got a link")
        _require_regular(path, os.stat(path).st_mode, error)
        # The file may have been replaced by a FIFO since the check; with O_NONBLOCK, opening a FIFO does not wait.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if owners is None else os.O_NOFOLLOW)
        stream = open(os.open(path, flags), "rb")  # noqa: SIM115 -- the caller closes it
        found = os.fstat(stream.fileno())
        _require_regular(path, found.st_mode, error)
        if owners is not None and found.st_uid not in owners:
            raise error(f"{path}: expecting a file of the user {os.geteuid()}, got one of the user {found.st_uid}")
        return stream


def _require_regular(path: Path, mode: int, error: type[TopompiError]) -> None:
    kind = next((name for is_kind, name in _NODES if is_kind(mode)), None)
    if kind is not None:
        raise error(f"{path}: expecting a regular file, got {kind}")
