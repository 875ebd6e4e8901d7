"""METIS graph files: the neighbours of one vertex a line, vertices counted from 1.

Format: G. Karypis, METIS 5.1 manual, section 4.1. It is what the reference's profiler writes, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .edges import Edges
from .text import GraphFile

__all__ = ["NAME", "read", "recognise"]

NAME = "METIS graphs"
_SUFFIXES = (".graph", ".metis")


class _Header(NamedTuple):
    vertices: int
    edges: int
    sizes: bool  # a vertex size leads each line
    weights: int  # then so many vertex weights
    weighted: bool  # each neighbour is followed by the weight of the edge

    def neighbour_words(self, words: int) -> int:
        return words - self.sizes - self.weights


def recognise(file: GraphFile) -> bool:
    """Whether the first line is ``n m [fmt [ncon]]`` and what follows has n lines and 2 m neighbours.

    A first line of two numbers, or with a format of three digits, or in a file whose name ends with .graph or
    .metis, is taken at its word, so that what is wrong after it is said as of a METIS graph.
    """
    lines = _lines(file)
    words = lines[0][1].split() if lines else []
    if not 2 <= len(words) <= 4 or not all(word.isascii() and word.isdigit() for word in words):
        return False
    stem = file.name.removesuffix(".xz").removesuffix(".gz")
    if len(words) > 2 and (len(words[2]) > 3 or not set(words[2]) <= set("01")):
        return False
    if stem.endswith(_SUFFIXES) or len(words) == 2 or len(words[2]) == 3:
        return True
    header = _header(file, *lines[0])
    ends = sum(header.neighbour_words(len(line.split())) for _, line in lines[1:]) / (1 + header.weighted)
    return len(lines) - 1 == header.vertices and ends == 2 * header.edges


def read(file: GraphFile) -> Edges:
    """The edges: half of an undirected edge's weight goes each way, because the weight is what both ends exchange.

    Vertex sizes and weights are read over: every rank is one rank. Edges without weights count 1.

    :raises GraphFileError: with file and line: for a header that lies, a neighbour that there is not, an edge that one
        end lacks or weighs otherwise.
    """
    lines = _lines(file)
    header = _header(file, *lines[0])
    body = lines[1:]
    if len(body) != header.vertices:
        line = body[-1][0] if body else lines[0][0]
        file.fail(line, f"{header.vertices} lines of vertices, as line {lines[0][0]} says", len(body))
    weight = _weights(file, body, header)
    loops = sum(u == v for u, v in weight)
    if len(weight) + loops != 2 * header.edges:
        file.fail(lines[0][0], f"{header.edges} edges, as it says", (len(weight) + loops) / 2)
    rows = [(u, v, w - w // 2 if u < v else w // 2 if u > v else w) for (u, v), w in weight.items()]
    return Edges.of_rows(file.name, rows, header.vertices)


def _weights(file: GraphFile, body: Sequence[tuple[int, str]], header: _Header) -> dict[tuple[int, int], int]:
    """Weight of each edge from each of its ends."""
    weight: dict[tuple[int, int], int] = {}
    for vertex, (number, line) in enumerate(body):
        for neighbour, one in _neighbours(file, number, line, header):
            if (vertex, neighbour) in weight:
                file.fail(number, f"neighbour {neighbour + 1} of vertex {vertex + 1} once", "it twice")
            weight[vertex, neighbour] = one
    for (u, v), one in weight.items():
        if weight.get((v, u)) != one:
            other = weight.get((v, u), "one end")
            file.fail(body[u][0], f"edge {u + 1} {v + 1} at both ends with one weight", other)
    return weight


def _lines(file: GraphFile) -> list[tuple[int, str]]:
    """The header and a line for each vertex; blank ones are vertices without neighbours."""
    lines = list(file.lines("%"))
    while lines and not lines[0][1]:
        lines.pop(0)
    header = lines[0][1].split() if lines else []
    vertices = int(header[0]) if header and header[0].isascii() and header[0].isdigit() else 0
    while len(lines) > vertices + 1 and not lines[-1][1]:
        lines.pop()
    return lines


def _header(file: GraphFile, number: int, line: str) -> _Header:
    words = line.split()
    fmt = words[2].zfill(3) if len(words) > 2 else "000"
    if not 2 <= len(words) <= 4 or not all(word.isascii() and word.isdigit() for word in words):
        file.fail(number, "'n m', 'n m fmt' or 'n m fmt ncon'", line)
    if len(fmt) != 3 or set(fmt) - set("01"):
        file.fail(number, "a format of at most three digits 0 and 1", words[2])
    weights = int(fmt[1]) * (int(words[3]) if len(words) > 3 else 1)
    return _Header(int(words[0]), int(words[1]), fmt[0] == "1", weights, fmt[2] == "1")


def _neighbours(file: GraphFile, number: int, line: str, header: _Header) -> list[tuple[int, int]]:
    """Neighbour (from 0) and weight of each edge on a line."""
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
