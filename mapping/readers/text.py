"""The content of a communication graph's file, with words converted to numbers and errors that name the line."""

from __future__ import annotations

import io
import math
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NoReturn

from ...errors import TopompiError
from ...inputs import current_limits, kind_of, read_input
from ...inputs.sizes import unit_bytes

__all__ = ["BINARY", "LIST", "MATRIX", "MAX_RANKS", "WANTED", "GraphFile", "GraphFileError"]

MATRIX, LIST = "matrix", "list"  # the two meanings of a table of numbers
HEAD_BYTES = 4096
WANTED = "a communication graph"
LINES_A_LOOK = 4096  # lines between two checks of the time limit
MAX_VOLUME = 2**63 - 1
MAX_RANKS = 2**31 - 1  # because MPI's ranks are C ints
BINARY = "K, M, G and T are powers of 1,024"
_UNIT = re.compile(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]{1,5})")
# A rank as programs name it (rank3, P3), or as a number with a fraction of zeros (3.0, 3.000e+00).
_RANK = re.compile(r"(?:rank|process|proc|task|node|p|r)[ _:-]?([0-9]{1,10})", re.I)
_REAL = re.compile(r"[0-9.]{1,30}(?:[eE][+-]?[0-9]{1,3})?")


class GraphFileError(TopompiError, ValueError):
    """A file contains no communication graph; the message names file, line and the expected content."""


@dataclass(frozen=True)
class GraphFile:
    """The name and content of one file.

    :param name: path of the file, which is its name in error messages.
    :param data: content of the file, decompressed.
    :param columns: names of the columns of a list of edges, if the caller gives them.
    :param size: number of ranks that the caller expects; None if it expects none.
    :param notes: list that receives a line per guess that can be wrong.
    :param form: MATRIX or LIST, if the caller tells which of them a table of numbers is; empty if it does not.
    """

    name: str
    data: bytes
    columns: tuple[str, ...] = ()
    size: int | None = None
    notes: list[str] = field(default_factory=list, compare=False)
    form: str = ""

    @classmethod
    def open(cls, path: str | os.PathLike[str], columns: Sequence[str] = (), size: int | None = None) -> GraphFile:
        """Read and decompress a file.

        :param path: path of the file.
        :param columns: names of the columns of a list of edges, or MATRIX or LIST alone; empty if the file or its
            content tells them.
        :param size: number of ranks that the caller expects; None if it expects none.
        :raises GraphFileError: if it is missing, empty, damaged, no regular file, or beyond a limit.
        """
        data = read_input(path, GraphFileError, WANTED)
        form = columns[0].strip().lower() if len(columns) == 1 else ""
        told = ((), form) if form in (MATRIX, LIST) else (tuple(columns), "")
        return cls(str(path), data.removeprefix(b"\xef\xbb\xbf"), told[0], size, form=told[1])

    @property
    def is_told(self) -> bool:
        """Whether the caller tells the columns, or whether the numbers are a matrix or a list."""
        return bool(self.columns or self.form)

    @cached_property
    def head(self) -> str:
        """The first 4 KiB as text, to recognise the format."""
        return self.data[:HEAD_BYTES].decode("utf-8", errors="replace")

    @property
    def kind(self) -> str:
        """The apparent kind of the content, in words, for files that no reader recognises."""
        return kind_of(self.data[:HEAD_BYTES], WANTED)

    def lines(
        self, comment: str = "#%", blanks: str | None = None, *, empty: bool = False
    ) -> Iterator[tuple[int, str]]:
        """Yield line numbers (from 1) and lines without surrounding blanks; skip lines with a leading comment sign.

        :param comment: signs that begin a comment, besides ``//``.
        :param blanks: characters that are cut off at both ends of a line; None for all kinds of blanks.
        :param empty: whether empty lines are yielded, too.
        """
        marks = (*comment, "//")
        reader = io.TextIOWrapper(io.BytesIO(self.data), encoding="utf-8", errors="replace")
        ends = time.monotonic() + current_limits().seconds
        for number, line in enumerate(reader, 1):
            if number % LINES_A_LOOK == 0 and time.monotonic() > ends:
                most = current_limits()
                most.check("seconds", most.seconds + 1, f"{self.name}:{number}", GraphFileError)
            if line == "\n" and not empty:
                continue
            line = line.strip(blanks)
            if (line or empty) and not line.startswith(marks):
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
        """Convert a word to a rank: a number, which may have a fraction of zeros or a name before it (``rank3``)."""
        if not (word.isascii() and word.isdigit()):
            return self.rank(line, self._bare_rank(line, word))
        if len(word) > 10 or int(word) >= MAX_RANKS:
            self.fail(line, "a rank (a whole number from 0)", word)
        return int(word)

    def _bare_rank(self, line: int, word: str) -> str:
        if match := _RANK.fullmatch(word):
            return match[1]
        try:
            real = float(word) if _REAL.fullmatch(word) else -1.0
        except ValueError:
            real = -1.0
        if not 0 <= real < MAX_RANKS or real != int(real):
            self.fail(line, "a rank (a whole number from 0)", word)
        return str(int(real))

    def volume(self, line: int, word: str, factor: int = 1) -> int:
        """Convert a word to bytes: whole numbers exactly, other numbers rounded, with a unit if there is one.

        :param line: line number, from 1.
        :param word: the word.
        :param factor: bytes of one, for words without a unit.
        """
        whole = word.isascii() and word.isdigit() and len(word) <= 19
        volume = int(word) * factor if whole else self._rounded(line, word, factor)
        if not 0 <= volume <= MAX_VOLUME:
            self.fail(line, "bytes from 0 to 2^63 - 1", word)
        return volume

    def _rounded(self, line: int, word: str, factor: int) -> int:
        match = _UNIT.fullmatch(word)
        unit = unit_bytes(match[2]) or 0 if match else factor * word.isascii()
        try:
            number = float(match[1] if match else word) * unit
        except ValueError:
            unit = 0
        if not unit:
            self.fail(line, "a number of bytes", word)
        if match and unit > 1 and not any(BINARY in note for note in self.notes):
            self.notes.append(f"{self.name}: {word} is {number:,.0f} bytes: {BINARY}")
        if not math.isfinite(number):
            self.fail(line, "a finite number of bytes", word)
        return round(number)
