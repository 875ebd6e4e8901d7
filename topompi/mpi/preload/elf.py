"""The header of an executable or a shared library: how it is linked, and which libraries it needs."""

from __future__ import annotations

import mmap
import os
import struct
from typing import NamedTuple

from ...errors import TopompiError

__all__ = ["MAGIC", "ElfError", "ElfFile", "elf_file", "first_line", "read_elf"]

Bytes = bytes | mmap.mmap
MAGIC = b"\x7fELF"
_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3  # types of segments
_NEEDED, _STRINGS, _NAME = 1, 5, 14  # tags of the dynamic segment
_LONGEST = 4096  # bytes of a name


class ElfError(TopompiError, ValueError):
    """A file that begins as an ELF file, and is damaged."""


class ElfFile(NamedTuple):
    """Facts of an ELF file.

    :param interpreter: path of the program that loads it; "" if it is linked statically, or a library.
    :param needed: names of the libraries that it needs, without those that these need.
    :param name: the name by which programs need it as a library; "" if it has none.
    """

    interpreter: str
    needed: tuple[str, ...]
    name: str


class _Segment(NamedTuple):
    kind: int
    offset: int
    address: int
    size: int


def first_line(path: str | os.PathLike[str]) -> bytes:
    """The first line of a file, of at most 256 bytes; empty if the file cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.readline(256)
    except (OSError, ValueError):
        return b""


def elf_file(path: str | os.PathLike[str]) -> ElfFile:
    """Read the facts of a file, of which only the parts that are looked at are read.

    :param path: the file.
    :raises ElfError: if it is no ELF file, or is cut or damaged.
    :raises OSError: if it cannot be read.
    """
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            raise ElfError(f"{os.fspath(path)}: expecting an ELF file, got an empty one")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return read_elf(data)


def read_elf(data: Bytes) -> ElfFile:
    """Read the facts from the content of an ELF file.

    :param data: the content, which begins with ``MAGIC``.
    :raises ElfError: if the file is no ELF file, or is cut or damaged.
    """
    if data[:4] != MAGIC or len(data) < 20:
        raise ElfError(f"expecting an ELF file, got {data[:4]!r}")
    wide, order = data[4] == 2, "<" if data[5] == 1 else ">"
    try:
        return _read(data, wide, order)
    except (struct.error, IndexError) as error:
        raise ElfError(f"expecting a whole ELF file, got {len(data)} bytes: {error}") from error


def _read(data: Bytes, wide: bool, order: str) -> ElfFile:
    first, size, number = _header(data, wide, order)
    segments = [_segment(data, first + size * index, wide, order) for index in range(number)]
    interpreter = next((_text(data, one.offset) for one in segments if one.kind == _INTERPRETER), "")
    entries = [entry for one in segments if one.kind == _DYNAMIC for entry in _entries(data, one, wide, order)]
    strings = next((_offset(segments, value) for tag, value in entries if tag == _STRINGS), 0)
    names = {tag: tuple(_text(data, strings + at) for kind, at in entries if kind == tag) for tag in (_NEEDED, _NAME)}
    return ElfFile(interpreter, names[_NEEDED], "".join(names[_NAME][:1]))


def _header(data: Bytes, wide: bool, order: str) -> tuple[int, int, int]:
    """Offset of the first segment's header, bytes of each header, and their number."""
    (first,) = struct.unpack_from(f"{order}{'Q' if wide else 'I'}", data, 32 if wide else 28)
    size, number = struct.unpack_from(f"{order}HH", data, 54 if wide else 42)
    return first, size, number


def _segment(data: Bytes, at: int, wide: bool, order: str) -> _Segment:
    if wide:
        kind, _, offset, address, _, size = struct.unpack_from(f"{order}IIQQQQ", data, at)
    else:
        kind, offset, address, _, size = struct.unpack_from(f"{order}IIIII", data, at)
    return _Segment(kind, offset, address, size)


def _entries(data: Bytes, segment: _Segment, wide: bool, order: str) -> list[tuple[int, int]]:
    """Tags and values of a dynamic segment, which a tag 0 ends."""
    form = f"{order}{'QQ' if wide else 'II'}"
    found = []
    for at in range(segment.offset, segment.offset + segment.size, struct.calcsize(form)):
        tag, value = struct.unpack_from(form, data, at)
        if not tag:
            break
        found.append((tag, value))
    return found


def _offset(segments: list[_Segment], address: int) -> int:
    """The place in the file of an address in memory."""
    for one in segments:
        if one.kind == _LOAD and one.address <= address < one.address + one.size:
            return address - one.address + one.offset
    raise IndexError(f"no segment has the address {address:#x}")


def _text(data: Bytes, at: int) -> str:
    end = data.find(b"\0", at, at + _LONGEST) if 0 <= at < len(data) else -1
    if end < 0:
        raise IndexError(f"no text at {at}")
    return data[at:end].decode("utf-8", "surrogateescape")
