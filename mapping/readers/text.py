"""The content of a communication graph's file, with words converted to numbers and errors that name the line."""

from __future__ import annotations

import io
import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NoReturn

from ...errors import TopompiError
from ...inputs import current_limits, kind_of, read_input

__all__ = ["MAX_RANKS", "GraphFile", "GraphFileError"]

HEAD_BYTES = 4096
LINES_A_LOOK = 4096  # lines between two checks of the time limit
MAX_VOLUME = 2**63 - 1
MAX_RANKS = 2**31 - 1  # because MPI's ranks are C ints


class GraphFileError(TopompiError, ValueError):
    """A file contains no communication graph; the message names file, line and the expected content."""


@dataclass(frozen=True)
class GraphFile:
    """The name and content of one file.

    :param name: path of the file, which is its name in error messages.
    :param data: content of the file, decompressed.
    :param columns: names of the columns of a list of edges, if the caller gives them.
    :param notes: list that receives a line per guess that can be wrong.
    """

    name: str
    data: bytes
    columns: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list, compare=False)

    @classmethod
    def open(cls, path: str | os.PathLike[str], columns: Sequence[str] = ()) -> GraphFile:
        """Read and decompress a file.

        :param path: path of the file.
        :param columns: names of the columns of a list of edges; empty if the file or its content tells them.
        :raises GraphFileError: if it is missing, empty, damaged, no regular file, or beyond a limit.
        """
        return cls(str(path), read_input(path, GraphFileError, "a communication graph"), tuple(columns))

    @cached_property
    def head(self) -> str:
        """The first 4 KiB as text, to recognise the format."""
        return self.data[:HEAD_BYTES].decode("utf-8", errors="replace")

    @property
    def kind(self) -> str:
        """The apparent kind of the content, in words, for files that no reader recognises."""
        return kind_of(self.data[:HEAD_BYTES])

    def lines(self, comment: str = "#%") -> Iterator[tuple[int, str]]:
        """Yield line numbers (from 1) and lines without surrounding blanks; skip lines with a leading comment sign."""
        marks = tuple(comment)
        reader = io.TextIOWrapper(io.BytesIO(self.data), encoding="utf-8", errors="replace")
        ends = time.monotonic() + current_limits().seconds
        for number, line in enumerate(reader, 1):
            if number % LINES_A_LOOK == 0 and time.monotonic() > ends:
                most = current_limits()
                most.check("seconds", most.seconds + 1, f"{self.name}:{number}", GraphFileError)
            line = line.strip()
            if not line.startswith(marks):
                yield number, line

    def fail(self, line: int, wanted: str, given: object) -> NoReturn:
        """Raise GraphFileError for a line, with the expected content and the given one.

        :param line: line number, from 1.
        :param wanted: expected content, in words.
        :param given: given content: text is quoted and cut to 60 characters, other values are printed as they are.
        """
        text = str(given)
        shown = repr(text if len(text) <= 60 else text[:57] + "...") if isinstance(given, str) else text
        raise GraphFileError(f"{self.name}:{line}: expecting {wanted}, got {shown}")

    def check_ranks(self, ranks: int, line: int | None = None) -> None:
        """Refuse more ranks than the limit, before memory is allocated for them.

        :param ranks: number of ranks in the file.
        :param line: line number of the line with this number, if there is one.
        """
        place = self.name if line is None else f"{self.name}:{line}"
        current_limits().check("ranks", ranks, place, GraphFileError)

    def rank(self, line: int, word: str) -> int:
        """Convert a word to a rank."""
        if not (word.isascii() and word.isdigit()) or len(word) > 10 or int(word) >= MAX_RANKS:
            self.fail(line, "a rank (a whole number from 0)", word)
        return int(word)

    def volume(self, line: int, word: str) -> int:
        """Convert a word to bytes: whole numbers exactly, other numbers rounded to the nearest."""
        whole = word.isascii() and word.isdigit() and len(word) <= 19
        volume = int(word) if whole else self._rounded(line, word)
        if not 0 <= volume <= MAX_VOLUME:
            self.fail(line, "bytes from 0 to 2^63 - 1", word)
        return volume

    def _rounded(self, line: int, word: str) -> int:
        try:
            number = float(word)
        except ValueError:
            self.fail(line, "a number of bytes", word)
        if not math.isfinite(number):
            self.fail(line, "a finite number of bytes", word)
        return round(number)
