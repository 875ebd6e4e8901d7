"""Dense matrices of bytes as text: row by row, the bytes from a rank to each rank, as Open MPI's profile2mat writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from .columns import split
from .edges import Edges
from .text import GraphFile

__all__ = ["NAME", "read", "recognise"]

NAME = "dense matrices of text"
SMALL = 4  # most ranks of a matrix that could also be a list of edges, whose lines have up to 4 numbers

_LABEL = re.compile(r"([A-Za-z_ -]*)([0-9]+):?")

Row = tuple[int, list[str]]  # line, and the words of the row


def recognise(file: GraphFile) -> bool:
    """Whether the file has n lines of n numbers each.

    A line with the ranks may precede, or with their number; the rows may begin with their rank.
    """
    if file.columns:
        return False
    found = _matrix(file)
    if found is None:
        return False
    rows, is_sure = found
    if not is_sure and not all(_is_zero(words[at]) for at, (_, words) in enumerate(rows)):
        return False
    if not is_sure:
        size, other = len(rows), ",".join(("src", "dst", "bytes", "hops")[: len(rows)])
        file.notes.append(f"{file.name}: {size} lines of {size} numbers taken as a matrix; else --columns {other}")
    return True


def read(file: GraphFile) -> Edges:
    """Read the matrix; row i has the bytes that rank i sends to each rank.

    :raises GraphFileError: if a number is wrong; the message names file and line.
    """
    rows, _ = _matrix(file) or ([], True)
    file.check_ranks(len(rows))
    return Edges.of_rows(file.name, _edges(file, rows), len(rows))


def _edges(file: GraphFile, rows: list[Row]) -> Iterator[tuple[int, int, int]]:
    for source, (number, words) in enumerate(rows):
        for target, word in enumerate(words):
            if volume := file.volume(number, word or "0"):
                yield source, target, volume


def _is_zero(word: str) -> bool:
    return word.strip("0.") == ""


def _matrix(file: GraphFile) -> tuple[list[Row], bool] | None:
    """Return the rows without labels of ranks, and whether they can be nothing but a matrix; None if they are none."""
    words = _words(file)
    head = list(islice(words, 2))
    if len(head) < 2:
        return None
    size = len(head[1][1])  # of the matrix, or one more if rows have labels
    if size > 1 and head[0][1] in ([str(size)], [str(size)] * 2):
        rows = [head[1], *islice(words, size)]
        return (rows, True) if size > 2 and _is_square(rows) else None
    rows = [*head, *islice(words, size)]
    for lines, named in ((rows[1:], True), (rows, False)):
        labelled = len(lines) == size - 1
        body = [(number, row[labelled:]) for number, row in lines]
        heading = rows[0][1][-len(body) :] if named else []
        labels = [row[0] for _, row in lines] if labelled else []
        if not _is_square(body) or not all(_are_labels(one, len(body)) for one in (heading, labels) if one):
            continue
        telling = bool(heading and labels) or any(word.endswith(":") for word in labels)
        if named or not labelled or telling or len(body) > SMALL:
            return body, telling or len(body) > SMALL
    return None


def _words(file: GraphFile) -> Iterator[Row]:
    """Yield the words of each line, without the brackets with which numpy prints a matrix."""
    for number, line in file.lines():
        bare = line.strip("[]").rstrip("],") if line[:1] == "[" else line
        if (words := split(bare)) and (bare is line or "..." not in line):
            yield number, words


def _is_square(rows: Sequence[Row]) -> bool:
    """Return whether there are as many rows as numbers in each, and the first ones have numbers or empty cells."""
    size = len(rows)
    if size < 2 or any(len(words) != size for _, words in rows):
        return False
    return all(not word or (word[0].isdigit() and word.isascii()) for _, words in rows[:SMALL] for word in words)


def _are_labels(words: Sequence[str], size: int) -> bool:
    """Return whether words name the ranks in their order: numbers from 0 or 1, which may have one name before them."""
    told = [_LABEL.fullmatch(word) for word in words]
    numbers = [int(match[2]) for match in told if match and len(match[2]) < 10]
    one_name = len({match[1] for match in told if match}) == 1
    return one_name and numbers in (list(range(size)), list(range(1, size + 1)))
