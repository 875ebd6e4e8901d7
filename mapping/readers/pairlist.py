"""Lists of undirected pairs: ``u , v = bytes``, as the pattern analyser of CNCA-CeNAT writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .edges import Edges, halved
from .text import GraphFile

__all__ = ["NAME", "read", "recognise"]

NAME = "lists 'u , v = bytes'"
RULE = "---"
_PAIR = re.compile(r"([^\s,]+)\s*,\s*([^\s=]+)\s*=\s*(\S+)")


def recognise(file: GraphFile) -> bool:
    """Whether the first line that is no heading ``--- text ---`` is ``u , v = bytes``."""
    lines = (line for _, line in file.lines() if line and not _is_heading(line))
    return bool(_PAIR.fullmatch(next(lines, "")))


def read(file: GraphFile) -> Edges:
    """The pairs, half of the bytes each way: the file does not say who sent them.

    They end at the second heading, after which come statistics of the graph.

    :raises GraphFileError: with file and line.
    """
    return Edges.of_rows(file.name, halved(_pairs(file)))


def _pairs(file: GraphFile) -> Iterator[tuple[int, int, int]]:
    begun = False
    for number, line in file.lines():
        if _is_heading(line):
            if begun:
                return
            continue
        match = _PAIR.fullmatch(line)
        if match:
            begun = True
            yield file.rank(number, match[1]), file.rank(number, match[2]), file.volume(number, match[3])
        elif line:
            file.fail(number, "'u , v = bytes'", line)


def _is_heading(line: str) -> bool:
    return len(line) >= 2 * len(RULE) and line.startswith(RULE) and line.endswith(RULE)
