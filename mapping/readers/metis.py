"""METIS graph files: one line per vertex with its neighbours, which are numbered from 1.

Format: G. Karypis, METIS 5.1 manual, section 4.1. The profiler of Subramoni 2013 writes it, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .edges import EdgeList, table_of
from .text import GraphFile

__all__ = ["NAME", "read", "recognise"]

NAME = "METIS graphs"
_SUFFIXES = (".graph", ".metis")
_DIGITS = 18  # most digits of a number in the header, which then fits into 64 bits; no file has larger numbers

Integers = NDArray[np.int64]


class _Header(NamedTuple):
    line: int
    vertices: int
    edges: int
    sizes: bool  # whether each line begins with a vertex size
    weights: int  # number of vertex weights that follow
    weighted: bool  # whether each neighbour is followed by the weight of the edge

    def neighbour_words(self, words: int) -> int:
        return words - self.sizes - self.weights


def recognise(file: GraphFile) -> bool:
    """Whether the first line is ``n m [fmt [ncon]]``, and n lines with 2 m neighbours follow.

    Some files count as METIS even if their lines do not match the first line, so that errors are reported as those of a
    METIS graph: a file with a name in .graph or .metis, or with a format of three digits that begins with 0; also a
    file with two numbers in the first line, or with a format from 100 on, unless all its lines have the same number of
    words, because it then is a list of edges.
    """
    if file.is_told:
        return False
    lines = _lines(file)
    number, line = next(lines, (0, ""))
    words = line.split()
    if not 2 <= len(words) <= 4 or not all(word.isascii() and word.isdigit() for word in words):
        return False
    stem = file.name.removesuffix(".xz").removesuffix(".gz")
    if len(words) > 2 and (len(words[2]) > 3 or not set(words[2]) <= set("01")):
        return False
    if stem.endswith(_SUFFIXES) or (len(words) > 2 and len(words[2]) == 3 and words[2][0] == "0"):
        return True
    if any(len(word) > _DIGITS for word in words):
        return len(words) == 2
    kept, listed = _fits(lines, _header(file, number, line), len(words))
    if len(words) == 2:
        if kept and listed:
            file.notes.append(f"{file.name}: taken as a METIS graph; else --columns src,dst")
        return kept or not listed
    return kept or (len(words[2]) == 3 and not listed)


def _fits(lines: Iterator[tuple[int, str]], header: _Header, words: int) -> tuple[bool, bool]:
    """Whether the lines after a header have the vertices and edges that it gives; whether each has ``words`` words."""
    vertices, ends, listed = 0, 0.0, True
    for vertex, (_, line) in enumerate(lines, 1):
        if line or vertex <= header.vertices:
            count = len(line.split())
            listed = listed and count in (0, words)
            vertices = vertex
            ends += header.neighbour_words(count) / (1 + header.weighted)
    return vertices == header.vertices and ends == 2 * header.edges, listed


def read(file: GraphFile) -> EdgeList:
    """Read the edges; each direction of an edge gets half of its weight, because the weight counts both directions.

    Vertex sizes and weights are ignored, because every vertex is one rank. Edges without weights count 1.

    :raises GraphFileError: if the header is wrong, a neighbour does not exist, or an edge is missing at one end or has
        another weight there; the message names file and line.
    """
    lines = _lines(file)
    header = _header(file, *next(lines, (1, "")))
    file.check_ranks(header.vertices, header.line)
    source, target, weight, line = table_of(_ends(file, lines, header), 4).T
    _check_both_ends(file, header.vertices, source, target, weight, line)
    loops = int((source == target).sum())
    if len(source) + loops != 2 * header.edges:
        file.fail(header.line, f"{header.edges} edges, as it says", (len(source) + loops) / 2)
    half = weight // 2
    volume = np.where(source < target, weight - half, np.where(source > target, half, weight))
    return EdgeList(file.name, header.vertices, True, source, target, volume)


def _ends(file: GraphFile, lines: Iterator[tuple[int, str]], header: _Header) -> Iterator[tuple[int, int, int, int]]:
    """Yield the vertex, its neighbour (both from 0), the weight and the line of each edge at each of its ends."""
    vertices, last = 0, header.line
    for vertex, (number, line) in enumerate(lines, 1):
        if vertex <= header.vertices:
            yield from ((vertex - 1, *end, number) for end in _neighbours(file, number, line, header))
        if vertex <= header.vertices or line:
            vertices, last = vertex, number
    if vertices != header.vertices:
        file.fail(last, f"{header.vertices} lines of vertices, as line {header.line} says", vertices)


def _check_both_ends(
    file: GraphFile, vertices: int, source: Integers, target: Integers, weight: Integers, line: Integers
) -> None:
    """Refuse a neighbour that is listed twice, and an edge that is missing at one end or has another weight there."""
    key, back = source * vertices + target, target * vertices + source
    order = np.argsort(key, kind="stable")
    again = order[1:][np.diff(key[order]) == 0]
    if len(again):
        at = int(again.min())
        file.fail(int(line[at]), f"neighbour {target[at] + 1} of vertex {source[at] + 1} once", "it twice")
    place = order[np.minimum(np.searchsorted(key[order], back), max(len(key) - 1, 0))]
    there = key[place] == back
    wrong = np.flatnonzero(~there | (weight[place] != weight))
    if len(wrong):
        at = int(wrong[0])
        wanted = f"edge {source[at] + 1} {target[at] + 1} at both ends with one weight"
        file.fail(int(line[at]), wanted, int(weight[place[at]]) if there[at] else "one end")


def _lines(file: GraphFile) -> Iterator[tuple[int, str]]:
    """Yield the header, then a line per vertex; blank lines are vertices without neighbours, or trail the last."""
    begun = False
    for number, line in file.lines("%", empty=True):
        begun = begun or bool(line)
        if begun:
            yield number, line


def _header(file: GraphFile, number: int, line: str) -> _Header:
    words = line.split()
    fmt = words[2].zfill(3) if len(words) > 2 else "000"
    if not 2 <= len(words) <= 4 or not all(word.isascii() and word.isdigit() for word in words):
        file.fail(number, "'n m', 'n m fmt' or 'n m fmt ncon'", line)
    if len(fmt) != 3 or set(fmt) - set("01"):
        file.fail(number, "a format of at most three digits 0 and 1", words[2])
    long = next((word for word in words if len(word) > _DIGITS), None)
    if long is not None:
        file.fail(number, f"numbers of at most {_DIGITS} digits", long)
    weights = int(fmt[1]) * (int(words[3]) if len(words) > 3 else 1)
    return _Header(number, int(words[0]), int(words[1]), fmt[0] == "1", weights, fmt[2] == "1")


def _neighbours(file: GraphFile, number: int, line: str, header: _Header) -> list[tuple[int, int]]:
    """The neighbour (from 0) and the weight of each edge on a line."""
    words = line.split()
    lead, step = header.sizes + header.weights, 1 + header.weighted
    if len(words) < lead or (len(words) - lead) % step:
        weights = f"{lead} sizes and weights of the vertex, then " if lead else ""
        file.fail(number, f"{weights}neighbours{' with their weights' * header.weighted}", line)
    found = []
    for at in range(lead, len(words), step):
        neighbour = file.rank(number, words[at])
        if not 1 <= neighbour <= header.vertices:
            file.fail(number, f"a neighbour from 1 to {header.vertices}", words[at])
        found.append((neighbour - 1, file.volume(number, words[at + 1]) if header.weighted else 1))
    return found
