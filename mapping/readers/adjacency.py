"""Adjacency lists as networkx writes them: a node and its neighbours per line, or a line per neighbour."""

from __future__ import annotations

from collections.abc import Iterator

from .columns import split
from .edges import EdgeList, counted_from_zero
from .text import GraphFile

__all__ = ["NAME", "is_headed", "read", "recognise"]

NAME = "adjacency lists of networkx"
_STAMP = "GMT "  # in the second comment, which networkx writes before adjacency lists and nothing else

Line = tuple[int, list[str]]


def recognise(file: GraphFile) -> bool:
    """Whether numbers follow networkx's heading, or lines of unequal lengths begin with each of their nodes once."""
    if file.is_told:
        return False
    if is_headed(file):
        return next((words[0].isdecimal() for _, words in _lines(file)), False)
    nodes, others, widths = set[str](), set[str](), set[int]()
    for _, words in _lines(file):
        if words[0] in nodes:
            return False
        nodes.add(words[0])
        others.update(words)
        widths.add(len(words))
    return len(widths) > 1 and "0" in nodes and others <= nodes


def is_headed(file: GraphFile) -> bool:
    """Whether a file begins with the comments that networkx writes before adjacency lists; it is no matrix then."""
    head = [line.lstrip("# ") for line in file.head.splitlines()[:3] if line.startswith("#")]
    return any(line.startswith(_STAMP) for line in head)


def read(file: GraphFile) -> EdgeList:
    """Read the list; a neighbour without a weight counts 1.

    :raises GraphFileError: if a node is no rank or a line is missing; the message names file and line.
    """
    lines = list(_lines(file))
    rows = _of_blocks(file, lines)
    edges = counted_from_zero(file, EdgeList.of_rows(file.name, _of_lines(file, lines) if rows is None else rows))
    if not len(edges.volume) or (edges.volume == 1).all():
        file.notes.append(f"{file.name}: an adjacency list: each neighbour counts 1; else --columns src,dst,bytes")
    return edges


def _lines(file: GraphFile) -> Iterator[Line]:
    return ((number, words) for number, line in file.lines() if line and (words := split(line)))


def _of_lines(file: GraphFile, lines: list[Line]) -> Iterator[tuple[int, int, int]]:
    for number, words in lines:
        node, *others = (file.rank(number, word) for word in words)
        yield from ((node, other, 1) for other in others)


def _of_blocks(file: GraphFile, lines: list[Line]) -> list[tuple[int, int, int]] | None:
    """Return the edges of lines with a node and the number of its neighbours, before a line for each; else None."""
    rows: list[tuple[int, int, int]] = []
    at = 0
    while at < len(lines):
        number, words = lines[at]
        if (
            len(words) != 2
            or not all(word.isdecimal() and len(word) < 11 for word in words)
            or at + int(words[1]) >= len(lines)
        ):
            return None
        block = lines[at + 1 : at + 1 + int(words[1])]
        if any(len(other) > 2 for _, other in block):
            return None
        node = file.rank(number, words[0])
        rows += [
            (node, file.rank(line, other), file.volume(line, weight[0]) if weight else 1)
            for line, (other, *weight) in block
        ]
        at += 1 + len(block)
    return rows
