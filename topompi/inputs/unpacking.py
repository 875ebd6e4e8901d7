"""Unpacking of files within limits, as a stream, to memory or to an unnamed temporary file."""

from __future__ import annotations

import gzip
import io
import lzma
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, cast

from ..errors import TopompiError
from .limits import Limits

__all__ = ["Budget", "Section", "Unpacked", "unpack"]

CHUNK = 1 << 18
IN_MEMORY = 64 << 20
ANY_RATIO = 16 << 20  # bytes; the ratio of unpacked to packed size is checked only beyond this unpacked size
# The streams are cast, because typeshed does not declare LZMAFile and GzipFile as IO[bytes].
_UNPACKERS: dict[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\xfd7zXZ\x00": lambda stream: cast(IO[bytes], lzma.LZMAFile(stream)),  # noqa: SIM115 -- the caller closes it
    b"\x1f\x8b": lambda stream: cast(IO[bytes], gzip.GzipFile(fileobj=stream)),
}


@dataclass
class Budget:
    """A counter of the bytes and members that reading one source has used so far, with their limits.

    :param limits: the limits that hold.
    :param error: class of the error that is raised if a limit is exceeded.
    """

    limits: Limits
    error: type[TopompiError]
    bytes: int = 0
    members: int = 0
    ends: float = field(init=False)

    def __post_init__(self) -> None:
        self.ends = time.monotonic() + self.limits.seconds

    def take_bytes(self, number: int, place: str) -> None:
        """Count bytes; raise ``error`` if the limit of bytes or that of seconds is exceeded."""
        self.bytes += number
        self.limits.check("bytes", self.bytes, place, self.error)
        if time.monotonic() > self.ends:
            self.limits.check("seconds", self.limits.seconds + 1, place, self.error)

    def take_member(self, place: str) -> None:
        """Count a member of an archive or directory; raise ``error`` if the limit of members is exceeded."""
        self.members += 1
        self.limits.check("members", self.members, place, self.error)
        self.take_bytes(0, place)


class Unpacked:
    """A store of unpacked bytes, in memory if they are at most 64 MiB, else in an unnamed temporary file."""

    def __init__(self) -> None:
        self._file: IO[bytes] = io.BytesIO()
        self.length = 0

    def write(self, chunk: bytes) -> None:
        """Append a chunk of unpacked bytes to the store."""
        if self.length <= IN_MEMORY < self.length + len(chunk):
            file = tempfile.TemporaryFile()  # noqa: SIM115 -- it lives as long as the store
            file.write(cast(io.BytesIO, self._file).getbuffer())
            self._file = cast(IO[bytes], file)
        self._file.write(chunk)
        self.length += len(chunk)

    def open(self) -> IO[bytes]:
        """Open a stream that reads all bytes of the store from the first; several streams may be open at once."""
        return io.BufferedReader(Section(self._file, 0, self.length, owned=False))


class Section(io.RawIOBase):
    """A stream of a range of another stream's bytes.

    :param base: the other stream, which must be seekable.
    :param start: position of the range's first byte in it.
    :param length: number of bytes of the range.
    :param owned: whether closing this stream closes the other one.
    """

    def __init__(self, base: IO[bytes], start: int, length: int, *, owned: bool = True) -> None:
        self._base, self._start, self._length, self._owned = base, start, length, owned
        self._at = 0

    def readable(self) -> bool:
        """Return True, because the stream is readable."""
        return True

    def seekable(self) -> bool:
        """Return True, because the stream is seekable."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position, and return it."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        self._at = max(0, origin + offset)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # every buffer that is given is one
        """Read bytes into a buffer, and return their number."""
        wanted = min(len(buffer), max(0, self._length - self._at))
        self._base.seek(self._start + self._at)
        data = self._base.read(wanted)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        """Close the stream, and the other stream if it is owned."""
        if self._owned and not self.closed:
            self._base.close()
        super().close()


def unpack(stream: IO[bytes], size: int, name: str, budget: Budget, *, begun: bool = False) -> Unpacked | None:
    """Unpack a whole file and return its content, so that damage is found before any parsing; None if it is not packed.

    :param stream: stream of the file, at its beginning.
    :param size: size of the file in bytes.
    :param name: name of the file in messages.
    :param budget: counter of the bytes.
    :param begun: if true, the content before damage or an early end is returned; if false, damage and an early end
        raise an error.
    """
    magic = stream.read(6)
    stream.seek(0)
    unpacker = next((unpacker for start, unpacker in _UNPACKERS.items() if magic.startswith(start)), None)
    if unpacker is None:
        return None
    store = Unpacked()
    with unpacker(stream) as content:
        while chunk := _chunk(content, begun and store.length > 0):
            budget.take_bytes(len(chunk), name)
            store.write(chunk)
            if store.length > ANY_RATIO:
                budget.limits.check("ratio", -(-store.length // max(1, size)), name, budget.error)
    return store


def _chunk(content: IO[bytes], may_end: bool) -> bytes:
    try:
        return cast(io.BufferedReader, content).read1(CHUNK)  # not `read`, which would lose the bytes before damage
    except (EOFError, OSError, lzma.LZMAError, zlib.error):
        if may_end:
            return b""
        raise
