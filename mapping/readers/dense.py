"""Dense matrices of bytes as text: row by row, the bytes from a rank to each rank, as Open MPI's profile2mat writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import NamedTuple

from . import adjacency, metis
from .columns import cells
from .edges import EdgeList
from .tables import SMALL, is_cell, is_hole, meaning
from .text import MATRIX, GraphFile

__all__ = ["NAME", "read", "recognise"]

NAME = "dense matrices of text"

_LABEL = re.compile(r"([A-Za-z_ -]*)([0-9]{1,9})(?:\.0+)?:?")

Row = tuple[int, list[str]]  # line, and the cells of the row


class _Matrix(NamedTuple):
    """A matrix: the line and the cells of each row, the ranks of rows and columns, and whether it can be a list."""

    rows: list[Row]
    sources: Sequence[int]
    targets: Sequence[int]
    is_sure: bool = True


def recognise(file: GraphFile) -> bool:
    """Whether the file has n lines of n numbers each, or the caller says that it has a matrix.

    A line with the ranks may precede, or with their number; the rows may begin with their rank. If both tell their
    ranks, ranks that send nothing or receive nothing may be missing, as in a pivot table of pandas.
    """
    if file.is_told:
        return file.form == MATRIX
    found = None if adjacency.is_headed(file) else _matrix(file)
    if found is None or found.is_sure:
        return found is not None
    # A METIS graph of two or three vertices can have as many lines as numbers in each, too.
    is_metis = metis.recognise(replace(file, notes=[]))
    return not is_metis and meaning(file, [words for _, words in found.rows]) == MATRIX


def read(file: GraphFile) -> EdgeList:
    """Read the matrix; row i has the bytes that rank i sends to each rank. Cells without a number are 0.

    :raises GraphFileError: if a number is wrong, or it is no matrix; the message names file and line.
    """
    found = _matrix(file)
    if found is None:
        number, words = next(_lines(file), (1, []))
        file.fail(number, "a matrix: as many lines as numbers in each, perhaps with ranks before them", " ".join(words))
    ranks = {*found.sources, *found.targets}
    first = int(ranks == set(range(1, len(ranks) + 1)))
    size = max(ranks) + 1 - first
    file.check_ranks(size)
    if holes := sum(bool(word) and is_hole(word) for _, words in found.rows for word in words):
        file.notes.append(f"{file.name}: cells without a number, taken as 0 bytes: {holes}")
    return replace(EdgeList.of_rows(file.name, _edges(file, found, first), size), exact=len(ranks) == size)


def _edges(file: GraphFile, found: _Matrix, first: int) -> Iterator[tuple[int, int, int]]:
    for source, (number, words) in zip(found.sources, found.rows, strict=True):
        for target, word in zip(found.targets, words, strict=True):
            if not is_hole(word) and (volume := file.volume(number, word)):
                yield source - first, target - first, volume


def _matrix(file: GraphFile) -> _Matrix | None:
    """Return the matrix that a file has; None if it has none."""
    head = list(islice(_lines(file), 2))
    if len(head) < 2:
        return None
    width = len(head[1][1])
    return _between_names(file, head[0][1], width) or _square(file, head[0][1], width)


def _between_names(file: GraphFile, first: list[str], width: int) -> _Matrix | None:
    """Return a matrix whose first line and first column name ranks."""
    has_corner = len(first) == width and (not first[0] or not is_cell(first[0]))
    is_bare = not has_corner or not first[0]
    targets = _labels(first[has_corner:], is_bare=is_bare)
    if len(targets) != width - 1:
        return None
    lines = list(islice(_lines(file), 1, None))
    sources = _labels(["".join(words[:1]) for _, words in lines], is_bare=is_bare)
    fits = sources and all(len(words) == width for _, words in lines)
    fits = fits and all(is_cell(word) for _, words in lines[:SMALL] for word in words[1:])
    return _Matrix([(number, words[1:]) for number, words in lines], sources, targets) if fits else None


def _square(file: GraphFile, first: list[str], width: int) -> _Matrix | None:
    """Return a matrix of as many rows as columns; names of ranks, or their number, may precede the rows or a row."""
    lines = list(islice(_lines(file), width + 2))
    if width < 2:
        return None
    if first in ([str(width)], [str(width)] * 2):
        rows = lines[1:]
        fits = width > 2 and len(rows) == width and _are_cells(rows, width)
        return _Matrix(rows, range(width), range(width)) if fits else None
    if len(lines) == width + 1 and _count_up(first) and _are_cells(lines[1:], width):
        return _Matrix(lines[1:], range(width), range(width), width > SMALL)
    if len(lines) == width and _are_cells(lines, width):
        return _Matrix(lines, range(width), range(width), False)
    rows, names = [(number, words[1:]) for number, words in lines], ["".join(words[:1]) for _, words in lines]
    telling = any(name.endswith(":") for name in names)
    fits = width > 2 and len(rows) == width - 1 and _count_up(names) and _are_cells(rows, width - 1)
    return (
        _Matrix(rows, range(width - 1), range(width - 1))
        if fits and (telling or file.form or width > SMALL + 1)
        else None
    )


def _lines(file: GraphFile) -> Iterator[Row]:
    """Yield the cells of each line, without the brackets with which numpy prints a matrix.

    The last cell of lines that all end with a mark is left out, unless the caller says that they are a matrix.
    """
    rows = _cells(file)
    looked = list(islice(rows, SMALL + 2))
    ended = file.form != MATRIX and all(len(words) > 1 and not words[-1] for _, words in looked)
    for number, words in chain(looked, rows):
        yield number, words[:-1] if ended and not words[-1] else words


def _cells(file: GraphFile) -> Iterator[Row]:
    for number, line in file.lines(blanks=" \r\n\f\v"):
        bare = line.strip("[]").rstrip("],") if line[:1] == "[" else line
        if line.strip() and (bare is line or "..." not in line):
            yield number, cells(bare)


def _are_cells(rows: Sequence[Row], width: int) -> bool:
    """Whether all rows have a width, the first ones have cells of a matrix, and any cell has a number."""
    if any(len(words) != width for _, words in rows):
        return False
    are_cells = all(is_cell(word) for _, words in rows[:SMALL] for word in words)
    return are_cells and any(not is_hole(word) for _, words in rows for word in words)


def _labels(words: Sequence[str], *, is_bare: bool = True) -> list[int]:
    """Return the ranks that words name: numbers which may have one name before them; nothing if they name none.

    :param words: words that may name ranks.
    :param is_bare: whether numbers without a name could be bytes or neighbours; they are ranks if they ascend and leave
        out fewer ranks than they name.
    """
    told = [_LABEL.fullmatch(word) for word in words]
    numbers, names = [int(match[2]) for match in told if match], {match[1] for match in told if match}
    are_ranks = not is_bare or names != {""} or (numbers == sorted(numbers) and numbers[-1] < 2 * len(numbers) + 1)
    return numbers if len(set(numbers)) == len(told) and len(names) == 1 and are_ranks else []


def _count_up(words: Sequence[str]) -> bool:
    """Whether words name the ranks one after another, from 0 or 1."""
    numbers = _labels(words)
    return len(numbers) > 0 and numbers in (list(range(len(numbers))), list(range(1, len(numbers) + 1)))
