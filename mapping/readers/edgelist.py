"""Lists of directed edges, ``src dst bytes [hops]``, as profilers and par-comm-data write them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .edges import Edges
from .text import GraphFile

__all__ = ["NAME", "read", "recognise"]

NAME = "lists 'src dst bytes [hops]'"
_WANTED = "'src dst bytes' or 'src dst bytes hops'"


def recognise(file: GraphFile) -> bool:
    """Whether the first line that is no comment consists of three or four numbers, separated by blanks or commas."""
    words = next((_words(line) for _, line in file.lines() if line), [])
    return len(words) in (3, 4) and all(word[0].isdigit() and word.isascii() for word in words)


def read(file: GraphFile) -> Edges:
    """Read a list of edges; lines that begin with ``#`` or ``%`` are comments.

    A volume may be written as ``5.954e+05``. Hops are those measured where the file was recorded.

    :raises GraphFileError: if a line is wrong; the message names file and line.
    """
    hops = array("q")
    edges = Edges.of_rows(file.name, _rows(file, hops))
    return replace(edges, hops=np.array(hops, dtype=np.int64)) if hops else edges


def _rows(file: GraphFile, hops: array[int]) -> Iterator[tuple[int, int, int]]:
    """Yield source, target and bytes of each line, and append its hops to ``hops``."""
    rows = 0
    for number, line in file.lines():
        words = _words(line)
        if not words:
            continue
        if len(words) not in (3, 4):
            file.fail(number, _WANTED, line)
        rows += 1
        yield file.rank(number, words[0]), file.rank(number, words[1]), file.volume(number, words[2])
        if len(words) == 4:
            hops.append(file.rank(number, words[3]))
        if len(hops) not in (0, rows):
            file.fail(number, "hops on every line or on none", line)


def _words(line: str) -> list[str]:
    return line.replace(",", " ").split()
