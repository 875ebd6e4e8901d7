"""Dense matrices of bytes as text: row by row, the bytes from a rank to each rank, as Open MPI's profile2mat writes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from .columns import split
from .edges import Edges
from .text import GraphFile

__all__ = ["NAME", "read", "recognise"]

NAME = "dense matrices of text"
SMALL = 4  # most ranks of a matrix that could also be a list of edges, whose lines have up to 4 numbers


def recognise(file: GraphFile) -> bool:
    """Whether the file has n lines of n numbers each.

    Up to four lines could also be a list of edges, so their diagonal must be 0, as it is in few lists. A line with the
    numbers of the ranks may precede if each further line begins with its rank.
    """
    if file.columns:
        return False
    lines = [split(line) for _, line in islice(((at, line) for at, line in file.lines() if line), 2)]
    if len(lines) < 2:
        return False
    size = len(lines[1]) - 1 if _is_heading(lines[0], lines[1]) else len(lines[0])
    rows = list(islice(_rows(file), size + 1))
    if len(rows) != size or any(len(words) != size for _, words in rows):
        return False
    if not all(word[:1].isdigit() and word.isascii() for _, words in rows[:SMALL] for word in words):
        return False
    if size > SMALL or _is_heading(lines[0], lines[1]):
        return True
    is_zero = all(_is_zero(words[at]) for at, (_, words) in enumerate(rows))
    if is_zero:
        other = ",".join(("src", "dst", "bytes", "hops")[:size])
        file.notes.append(f"{file.name}: {size} lines of {size} numbers taken as a matrix; else --columns {other}")
    return is_zero


def read(file: GraphFile) -> Edges:
    """Read the matrix; row i has the bytes that rank i sends to each rank.

    :raises GraphFileError: if a number is wrong; the message names file and line.
    """
    rows = list(_rows(file))
    file.check_ranks(len(rows))
    return Edges.of_rows(file.name, _edges(file, rows), len(rows))


def _edges(file: GraphFile, rows: list[tuple[int, list[str]]]) -> Iterator[tuple[int, int, int]]:
    for source, (number, words) in enumerate(rows):
        for target, word in enumerate(words):
            if volume := file.volume(number, word):
                yield source, target, volume


def _is_zero(word: str) -> bool:
    return word.strip("0.") == ""


def _is_heading(first: list[str], second: list[str]) -> bool:
    numbers = first[-len(second) + 1 :] if len(second) > 1 else []
    return len(numbers) > 0 and numbers == [str(at) for at in range(len(second) - 1)] and second[0] == "0"


def _rows(file: GraphFile) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the words of each row; if there is a heading, without the rank that begins the row."""
    rows = ((number, split(line)) for number, line in file.lines() if line)
    head = list(islice(rows, 2))
    marked = len(head) == 2 and _is_heading(head[0][1], head[1][1])
    for number, words in chain(head[marked:], rows):
        yield number, words[marked:]
