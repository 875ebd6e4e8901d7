"""Unpacking within limits: once, as a stream, to memory or to a file without a name."""

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

__all__ = ["Budget", "Part", "Store", "unpack"]

CHUNK = 1 << 18
IN_MEMORY = 64 << 20
ANY_RATIO = 16 << 20  # bytes up to which a file may become any number of times as large
# Typeshed has LZMAFile and GzipFile as streams, though not as IO[bytes]: hence the casts.
_UNPACKERS: dict[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\xfd7zXZ\x00": lambda stream: cast(IO[bytes], lzma.LZMAFile(stream)),  # noqa: SIM115 -- the caller closes it
    b"\x1f\x8b": lambda stream: cast(IO[bytes], gzip.GzipFile(fileobj=stream)),
}


@dataclass
class Budget:
    """What reading one source has taken so far, of what it may.

    :param limits: that hold.
    :param error: what is raised beyond them.
    """

    limits: Limits
    error: type[TopompiError]
    bytes: int = 0
    members: int = 0
    ends: float = field(init=False)

    def __post_init__(self) -> None:
        self.ends = time.monotonic() + self.limits.seconds

    def take_bytes(self, number: int, place: str) -> None:
        """Count bytes; raises ``error`` beyond the limits of bytes and of seconds."""
        self.bytes += number
        self.limits.check("bytes", self.bytes, place, self.error)
        if time.monotonic() > self.ends:
            self.limits.check("seconds", self.limits.seconds + 1, place, self.error)

    def take_member(self, place: str) -> None:
        """Count a member; raises ``error`` beyond the limit."""
        self.members += 1
        self.limits.check("members", self.members, place, self.error)
        self.take_bytes(0, place)


class Store:
    """Unpacked bytes, in memory while they are few."""

    def __init__(self) -> None:
        self._file: IO[bytes] = io.BytesIO()
        self.length = 0

    def write(self, chunk: bytes) -> None:
        """Append bytes."""
        if self.length <= IN_MEMORY < self.length + len(chunk):
            file = tempfile.TemporaryFile()  # noqa: SIM115 -- it lives as long as the store
            file.write(cast(io.BytesIO, self._file).getbuffer())
            self._file = cast(IO[bytes], file)
        self._file.write(chunk)
        self.length += len(chunk)

    def open(self) -> IO[bytes]:
        """A stream of all bytes, with a position of its own."""
        return io.BufferedReader(Part(self._file, 0, self.length, owned=False))


class Part(io.RawIOBase):
    """A stream of some bytes of another one.

    :param base: the other stream, which can be seeked.
    :param start: its first byte of these.
    :param length: how many these are.
    :param owned: whether to close the other stream with this one.
    """

    def __init__(self, base: IO[bytes], start: int, length: int, *, owned: bool = True) -> None:
        self._base, self._start, self._length, self._owned = base, start, length, owned
        self._at = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position, and return it."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        self._at = max(0, origin + offset)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # every buffer that is given is one
        """Fill a buffer, and return how many bytes were there."""
        wanted = min(len(buffer), max(0, self._length - self._at))
        self._base.seek(self._start + self._at)
        data = self._base.read(wanted)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        """Close it, and the other stream where it is owned."""
        if self._owned and not self.closed:
            self._base.close()
        super().close()


def unpack(stream: IO[bytes], size: int, name: str, budget: Budget, *, begun: bool = False) -> Store | None:
    """The content of a file that is packed, None for one that is not; its damage, if any, is found here.

    :param stream: of the file, at its beginning.
    :param size: of the file in bytes.
    :param name: of the file, for messages.
    :param budget: counts the bytes.
    :param begun: whether the file may end, or be damaged, anywhere: then what comes before counts.
    """
    magic = stream.read(6)
    stream.seek(0)
    unpacker = next((unpacker for start, unpacker in _UNPACKERS.items() if magic.startswith(start)), None)
    if unpacker is None:
        return None
    store = Store()
    with unpacker(stream) as content:
        while chunk := _chunk(content, begun and store.length > 0):
            budget.take_bytes(len(chunk), name)
            store.write(chunk)
            if store.length > ANY_RATIO:
                budget.limits.check("ratio", -(-store.length // max(1, size)), name, budget.error)
    return store


def _chunk(content: IO[bytes], may_end: bool) -> bytes:
    try:
        return cast(io.BufferedReader, content).read1(CHUNK)  # no `read`, which loses what precedes the damage
    except (EOFError, OSError, lzma.LZMAError, zlib.error):
        if may_end:
            return b""
        raise
