"""Lists of directed edges: ``src dst``, with bytes, and hops or a number of messages, as profilers write them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .columns import COUNT, DST, HOPS, SRC, VOLUME, heading, named, split
from .edges import Edges
from .text import GraphFile

__all__ = ["NAME", "read", "recognise"]

NAME = "lists 'src dst bytes [hops]'"
_WANTED = "'src dst bytes' or 'src dst bytes hops'"
MOST_HOPS = 1024  # most hops of a route; a fourth column with a larger number has bytes, because no network needs more

Kinds = tuple[str, ...]


def recognise(file: GraphFile) -> bool:
    """Whether columns are named, or the first line that is no comment consists of two to four numbers."""
    if file.columns:
        return True
    words = next((split(line) for _, line in file.lines() if line), [])
    numbers = len(words) in (2, 3, 4) and all(word[:1].isdigit() and word.isascii() for word in words)
    return numbers or bool(_heading_of(file))


def read(file: GraphFile) -> Edges:
    """Read a list of edges; lines that begin with ``#`` or ``%`` are comments.

    Columns have the names that the caller gives, else those of a heading, which may be a comment. Without names, four
    columns are sender, receiver, bytes and hops; but if a number in the last column is too large for hops, they are
    sender, receiver, messages and bytes. A volume may be written as ``5.954e+05``. In a file without volumes each edge
    counts 1. Hops are those of the network on which the file was recorded.

    :raises GraphFileError: if a line is wrong; the message names file and line.
    """
    kinds, guessed = _kinds(file)
    further = {word: array("q") for word in (COUNT, HOPS) if word in kinds}
    edges = Edges.of_rows(file.name, _rows(file, kinds, further, guessed))
    if guessed and len(kinds) != 3:
        _tell(file, kinds)
    columns = {word: np.array(values, dtype=np.int64) for word, values in further.items() if len(values)}
    return replace(edges, hops=columns.get(HOPS), messages=columns.get(COUNT))


def _tell(file: GraphFile, kinds: Kinds) -> None:
    if len(kinds) == 2:
        file.notes.append(f"{file.name}: a list without bytes: each line counts 1")
        return
    other = "src,dst,bytes,hops" if COUNT in kinds else "src,dst,count,bytes"
    file.notes.append(f"{file.name}: columns without names taken as {','.join(kinds)}; else --columns {other}")


def _kinds(file: GraphFile) -> tuple[Kinds, bool]:
    """Return the kind of each column (sender, receiver, ...), and whether the kinds are guessed from the numbers."""
    given = named(file) or _heading_of(file)
    if given:
        return given, False
    return ((SRC, DST), (SRC, DST, VOLUME), _fourth(file))[min(max(_width(file), 2), 4) - 2], True


def _heading_of(file: GraphFile) -> Kinds:
    """Return the kinds of columns that a heading names; empty without a heading.

    The heading is the first line that is no comment, or a comment at the beginning with as many words as columns.
    """
    first = heading(split(next((line for _, line in file.lines() if line), "")))
    if first:
        return first
    width, lines = _width(file), file.head.splitlines()
    told = (heading(split(line.lstrip("#% "))) for line in lines if line[:1] in ("#", "%"))
    return next((kinds for kinds in told if len(kinds) == width), ())


def _width(file: GraphFile) -> int:
    """Return the number of words of the first line that begins with a number."""
    words = (split(line) for _, line in file.lines() if line)
    return next((len(one) for one in words if one and one[0][0].isdigit()), 0)


def _fourth(file: GraphFile) -> Kinds:
    for _, line in file.lines():
        last = split(line)[3:]
        if last and (len(last[0]) > 4 or not last[0].isdigit() or int(last[0]) > MOST_HOPS):
            return SRC, DST, COUNT, VOLUME
    return SRC, DST, VOLUME, HOPS


def _rows(
    file: GraphFile, kinds: Kinds, further: dict[str, array[int]], guessed: bool
) -> Iterator[tuple[int, int, int]]:
    """Yield sender, receiver and bytes of each line, and append its messages and hops to ``further``."""
    at = {kind: place for place, kind in enumerate(kinds)}
    rows, hops = 0, further.get(HOPS, array("q"))
    for number, line in file.lines():
        words = split(line)
        if not words or (not rows and not words[0][0].isdigit() and (file.columns or heading(words))):
            continue
        if len(words) != len(kinds) and not (guessed and {len(words), len(kinds)} == {3, 4}):
            file.fail(number, _WANTED if guessed else f"'{' '.join(kinds)}'", line)
        rows += 1
        volume = file.volume(number, words[at[VOLUME]]) if VOLUME in at and at[VOLUME] < len(words) else 1
        yield file.rank(number, words[at[SRC]]), file.rank(number, words[at[DST]]), volume
        if COUNT in at:
            further[COUNT].append(file.volume(number, words[at[COUNT]]))
        if at.get(HOPS, len(words)) < len(words):
            hops.append(file.rank(number, words[at[HOPS]]))
        if guessed and (len(words) != len(kinds) or (HOPS in at and len(hops) != rows)):
            file.fail(number, "hops on every line or on none", line)
