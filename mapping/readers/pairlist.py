"""Lists of undirected pairs, ``u , v = bytes``, as written by the pattern analyser of CNCA-CeNAT."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .edges import EdgeList, halved
from .text import GraphFile

__all__ = ["NAME", "read", "recognise"]

NAME = "lists 'u , v = bytes'"
RULE = "---"
_PAIR = re.compile(r"([^\s,]+)\s*,\s*([^\s=]+)\s*=\s*(\S+)")


def recognise(file: GraphFile) -> bool:
    """Whether the first line that is no heading (``--- text ---``) is ``u , v = bytes``."""
    lines = (line for _, line in file.lines() if line and not _is_heading(line))
    return bool(_PAIR.fullmatch(next(lines, "")))


def read(file: GraphFile) -> EdgeList:
    """Read the pairs; half of the bytes goes in each direction, because the file does not tell who sent them.

    The pairs end at the second heading, which is followed by statistics of the graph.

    :raises GraphFileError: if a line is wrong; the message names file and line.
    """
    return EdgeList.of_rows(file.name, halved(_pairs(file)))


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
