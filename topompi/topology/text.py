"""Source files as streams of numbered lines, whatever they are packed in."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from ..errors import SourceError

__all__ = ["SourceText", "open_texts"]

HEAD_BYTES = 4096
# Typeshed has LZMAFile and GzipFile as streams, though not as IO[bytes]: hence the casts.
_OPENERS: dict[bytes, Callable[[Path], IO[bytes]]] = {
    b"\xfd7zXZ\x00": lambda path: cast(IO[bytes], lzma.open(path, "rb")),  # noqa: SIM115 -- the caller closes it
    b"\x1f\x8b": lambda path: cast(IO[bytes], gzip.open(path, "rb")),  # noqa: SIM115 -- the caller closes it
}


@dataclass(frozen=True)
class SourceText:
    """One text: a file, or a member of a directory or archive.

    :param name: what messages call it.
    """

    name: str
    _open: Callable[[], IO[bytes]]

    def head(self) -> str:
        """The first kilobytes, for telling formats apart; raises SourceError if empty or binary."""
        try:
            with self._open() as stream:
                data = stream.read(HEAD_BYTES)
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise SourceError(f"{self.name}: cannot be read: {error}") from error
        if not data.strip():
            raise SourceError(f"{self.name}: expecting a topology, got an empty file")
        if b"\x00" in data:
            raise SourceError(f"{self.name}: expecting text, got binary data")
        return data.decode("utf-8", errors="replace")

    def lines(self) -> Iterator[tuple[int, str]]:
        """Line numbers from 1 with their lines, without line ends (LF or CRLF); read as a stream."""
        try:
            with self._open() as stream:
                reader = io.TextIOWrapper(stream, encoding="utf-8", errors="replace")
                for number, line in enumerate(reader, 1):
                    yield number, line.rstrip("\r\n")
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise SourceError(f"{self.name}: cannot be read to its end: {error}") from error

    def text(self) -> str:
        """The whole text, for formats a library parses."""
        return "\n".join(line for _, line in self.lines())


def open_texts(path: str | os.PathLike[str]) -> list[SourceText]:
    """The texts at a path: one for a file, one a member for a directory or tar archive, sorted by name.

    ``.xz`` and ``.gz`` are told by content, not by name.

    :raises SourceError: if nothing is there.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        return [text for file in files for text in open_texts(file)]
    if not path.exists():
        raise SourceError(f"{path}: no such file or directory")
    with path.open("rb") as stream:
        magic = stream.read(6)
    opener = next((opener for start, opener in _OPENERS.items() if magic.startswith(start)), None)
    if opener is None:
        opener = lambda path: path.open("rb")  # noqa: E731 -- the third row of the table above
    if _is_tar(path, opener):
        return _archive_texts(path)
    return [SourceText(str(path), lambda: opener(path))]


def _is_tar(path: Path, opener: Callable[[Path], IO[bytes]]) -> bool:
    try:
        with opener(path) as stream:
            return stream.read(262)[257:] == b"ustar"
    except (OSError, EOFError, lzma.LZMAError):
        return False  # reading will say so again, with the reader's own message


def _archive_texts(path: Path) -> list[SourceText]:
    with tarfile.open(path) as archive:
        files = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
        contents = {name: stream.read() for name, stream in files.items() if stream is not None}
    return [
        SourceText(f"{path}:{name}", lambda data=data: io.BytesIO(data))  # type: ignore[misc] # data is bound
        for name, data in sorted(contents.items())
    ]
