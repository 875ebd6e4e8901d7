"""Lines of a log, whatever it is packed in, and its numbers."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from typing import IO, cast

from ..errors import WorkloadError
from .workload import LATEST

__all__ = ["lines", "read_whole", "whole"]


def lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and lines of a file, plain, ``.gz`` or ``.xz`` by content; read as a stream.

    :raises WorkloadError: where the file is damaged or not text.
    """
    try:
        with _opened(path) as stream:
            for number, line in enumerate(io.TextIOWrapper(stream, encoding="utf-8", errors="replace"), 1):
                if "\0" in line:
                    raise WorkloadError(f"{path}: line {number}: expecting text, got binary data")
                yield number, line.rstrip("\r\n")
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise WorkloadError(f"{path}: cannot be read to its end: {error}") from error


def read_whole(path: str | os.PathLike[str]) -> str:
    """The text of a file that a library parses."""
    return "\n".join(line for _, line in lines(path))


def _opened(path: str | os.PathLike[str]) -> IO[bytes]:
    with open(path, "rb") as stream:
        magic = stream.read(6)
    if magic.startswith(b"\x1f\x8b"):
        return cast(IO[bytes], gzip.open(path, "rb"))
    if magic.startswith(b"\xfd7zXZ\0"):
        return cast(IO[bytes], lzma.open(path, "rb"))
    return open(path, "rb")


def whole(where: str, word: str, text: str, least: int = -LATEST) -> int:
    """A whole number between ``least`` and ``LATEST``, written with or without a fraction of zeros.

    :param where: file and line.
    :param word: the field.
    :param text: its content.
    :param least: the smallest number that is taken.
    :raises WorkloadError: for anything else.
    """
    try:
        value = int(text) if len(text) <= 20 else LATEST
    except ValueError:
        try:
            real = float(text)
        except ValueError:
            real = float("nan")
        value = int(real) if abs(real) < LATEST and real == int(real) else LATEST
    if not least <= value < LATEST:
        raise WorkloadError(f"{where}: {word}: expecting a whole number from {least} below {LATEST}, got {text[:40]!r}")
    return value
