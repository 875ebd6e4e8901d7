"""Headers of executables: what the linker wrote is read, and damaged files are refused."""

import contextlib
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.mpi.preload.elf import ElfError, ElfFile, elf_file, first_line, read_elf

NEEDED, STRINGS, NAME = 1, 5, 14


def made(wide, order, interpreter, needed, name):
    """An ELF file of four parts: header, segments, dynamic segment, texts; loaded at 0x1000."""
    word = "Q" if wide else "I"
    begin, size = (64, 56) if wide else (52, 32)
    texts, at = b"\0", {}
    for text in (*needed, name, interpreter):
        at[text], texts = len(texts), texts + text.encode() + b"\0"
    dynamic_at = begin + 3 * size
    tags = [*((NEEDED, at[one]) for one in needed), *([(NAME, at[name])] if name else [])]
    texts_at = dynamic_at + (len(tags) + 2) * struct.calcsize(f"{order}2{word}")
    tags += [(STRINGS, 0x1000 + texts_at), (0, 0)]
    dynamic = b"".join(struct.pack(f"{order}2{word}", *pair) for pair in tags)
    segments = [(1, 0, 0x1000, texts_at + len(texts)), (2, dynamic_at, 0x1000 + dynamic_at, len(dynamic))]
    segments.append((3 if interpreter else 6, texts_at + at[interpreter], 0, 1))
    head = b"\x7fELF" + bytes((2 if wide else 1, 1 if order == "<" else 2)) + bytes(10)
    head = head.ljust(32 if wide else 28, b"\0") + struct.pack(f"{order}{word}", begin)
    head = head.ljust(54 if wide else 42, b"\0") + struct.pack(f"{order}2H", size, len(segments))
    rows = b""
    for kind, offset, address, length in segments:
        if wide:
            rows += struct.pack(f"{order}2I6Q", kind, 0, offset, address, 0, length, 0, 0)
        else:
            rows += struct.pack(f"{order}8I", kind, offset, address, 0, length, 0, 0, 0)
    return head.ljust(begin, b"\0") + rows + dynamic + texts


words = st.text("abcxyz.-0123456789", min_size=1, max_size=12)


@examples(100)
@given(st.booleans(), st.sampled_from("<>"), st.one_of(st.just(""), words), st.lists(words, unique=True), words)
def test_what_is_written_is_read(wide, order, interpreter, needed, name):
    assert read_elf(made(wide, order, interpreter, needed, name)) == ElfFile(interpreter, tuple(needed), name)


@examples(200)
@given(st.data())
def test_damaged_files_are_refused_or_read_and_never_fail_otherwise(data):
    whole = bytearray(made(True, "<", "/lib/ld.so", ["libmpi.so.40", "libc.so.6"], "it"))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    with contextlib.suppress(ElfError):
        assert isinstance(read_elf(cut), ElfFile)


def test_a_file_of_a_great_number_of_entries_ends_soon():
    """The length of the dynamic segment is the file's own claim."""
    whole = bytearray(made(True, "<", "", [], "it"))
    struct.pack_into("<Q", whole, 64 + 56 + 32, 2**62)
    assert read_elf(bytes(whole)).name == "it"


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf")
def test_python_itself_is_read_as_readelf_has_it():
    path = Path(sys.executable).resolve()
    told = subprocess.run(["readelf", "-dl", path], capture_output=True, text=True, timeout=30).stdout
    found = elf_file(path)
    assert f"interpreter: {found.interpreter}]" in told
    assert [line.split("[")[1].rstrip("]") for line in told.splitlines() if "(NEEDED)" in line] == list(found.needed)


def test_files_that_cannot_be_read_have_no_first_line_and_an_empty_one_is_no_elf_file(tmp_path):
    (tmp_path / "script").write_text("#!/bin/sh\nexit\n")
    (tmp_path / "empty").touch()
    assert first_line(tmp_path / "script") == b"#!/bin/sh\n"
    assert not any(map(first_line, (tmp_path, tmp_path / "missing", tmp_path / "empty", "a\0b")))
    with pytest.raises(ElfError):
        elf_file(tmp_path / "empty")
