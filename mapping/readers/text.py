"""A file of a communication graph in memory, and how it says what is wrong with it."""

from __future__ import annotations

import io
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from ...errors import TopompiError
from ...inputs import current_limits, kind_of, read_input

__all__ = ["MAX_RANKS", "GraphFile", "GraphFileError"]

HEAD_BYTES = 4096
LINES_A_LOOK = 4096  # between two looks at the clock
MAX_VOLUME = 2**63 - 1
MAX_RANKS = 2**31 - 1  # MPI's ranks are C ints


class GraphFileError(TopompiError, ValueError):
    """A file holds no communication graph; the message names file, line and what should stand there."""


@dataclass(frozen=True)
class GraphFile:
    """One file.

    :param name: what messages call it: its path.
    :param data: its bytes, unpacked.
    """

    name: str
    data: bytes

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> GraphFile:
        """Read a file and unpack it.

        :raises GraphFileError: where it is absent, empty, damaged, no regular file, or beyond a limit.
        """
        return cls(str(path), read_input(path, GraphFileError, "a communication graph"))

    @cached_property
    def head(self) -> str:
        """The first kilobytes, for telling formats apart."""
        return self.data[:HEAD_BYTES].decode("utf-8", errors="replace")

    @property
    def kind(self) -> str:
        """What it looks like, in words, where no reader takes it."""
        return kind_of(self.data[:HEAD_BYTES])

    def lines(self, comment: str = "#%") -> Iterator[tuple[int, str]]:
        """Line numbers (from 1) and lines without blanks around them; those that start with a comment sign left out."""
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
        """Refuse a line: what should stand there, and what does.

        :param line: number from 1.
        :param wanted: what should stand there, in words.
        :param given: what stands there: text is quoted and cut to 60 characters, all else is printed as it is.
        """
        text = str(given)
        shown = repr(text if len(text) <= 60 else text[:57] + "...") if isinstance(given, str) else text
        raise GraphFileError(f"{self.name}:{line}: expecting {wanted}, got {shown}")

    def check_ranks(self, ranks: int, line: int | None = None) -> None:
        """Refuse more ranks than the limit, before anything of that size is made.

        :param ranks: how many the file speaks of.
        :param line: that says so, where one does.
        """
        place = self.name if line is None else f"{self.name}:{line}"
        current_limits().check("ranks", ranks, place, GraphFileError)

    def rank(self, line: int, word: str) -> int:
        """The rank that a word spells."""
        if not (word.isascii() and word.isdigit()) or len(word) > 10 or int(word) >= MAX_RANKS:
            self.fail(line, "a rank (a whole number from 0)", word)
        return int(word)

    def volume(self, line: int, word: str) -> int:
        """The bytes that a word spells: whole numbers exactly, others rounded to the nearest."""
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
