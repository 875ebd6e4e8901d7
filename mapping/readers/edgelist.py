"""Lists of directed edges: ``src dst``, with bytes, and hops or a number of messages, as profilers write them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .columns import COUNT, DST, HOPS, OTHER, SRC, VOLUME, Columns, heading, named, split
from .edges import EdgeList, counted_from_zero, halved, table_of
from .tables import bare_value
from .text import GraphFile

__all__ = ["NAME", "read", "recognise"]

NAME = "lists 'src dst bytes [hops]'"
_WANTED = "'src dst bytes' or 'src dst bytes hops'"
_MANY = "2 to 4 numbers, names of the columns in a first line or by --columns, or as many numbers as lines"
MOST_HOPS = 64  # of a route in any network; larger numbers in a fourth column are bytes
UNDIRECTED = "undirected"  # in a column Type, as Gephi writes it

Kinds = tuple[str, ...]


def recognise(file: GraphFile) -> bool:
    """Whether columns are named, or the first line that is no comment consists of two numbers or more."""
    if file.is_told:
        return True
    words = next((split(line) for _, line in file.lines() if line), [])
    numbers = len(words) > 1 and all(word[:1].isdigit() and word.isascii() for word in words)
    return numbers or bool(_heading_of(file))


def read(file: GraphFile) -> EdgeList:
    """Read a list of edges; lines that begin with ``#``, ``%`` or ``//`` are comments.

    Columns have the caller's names, else those of a heading, which may be a comment. Without names, four columns are
    sender, receiver, bytes and hops, or, if the last is too large for hops or never below the third, sender, receiver,
    messages and bytes. A volume may be written as ``5.954e+05`` or ``1.5K``; without volumes the messages count, else
    each edge 1. Hops are those measured where the file was recorded. If ranks from 1 on occur without a gap, and the
    caller gives neither columns nor another number of ranks, they count from 1.

    :raises GraphFileError: if a line is wrong; the message names file and line.
    """
    columns = named(file) or _heading_of(file)
    guessed = not columns
    kinds = columns.kinds or _guess(file)
    further = {word: array("q") for word in (COUNT, HOPS) if word in kinds}
    edges = EdgeList.of_rows(file.name, _rows(file, columns._replace(kinds=kinds), further, guessed))
    _tell(file, columns, kinds, guessed)
    found = {word: np.array(values, dtype=np.int64) for word, values in further.items() if len(values)}
    edges = replace(edges, hops=found.get(HOPS), messages=found.get(COUNT))
    if VOLUME not in kinds and COUNT in found:
        edges = replace(edges, volume=found[COUNT])
    return counted_from_zero(file, _directed(file, edges, columns), columns.base)


def _directed(file: GraphFile, edges: EdgeList, columns: Columns) -> EdgeList:
    """Halve the volumes of undirected edges, which a column ``Type`` tells."""
    names = [word.lower() for word in _first_words(file)]
    if "type" not in names or names.index("type") >= len(columns.kinds):
        return edges
    at, rows = names.index("type"), (split(line) for _, line in file.lines() if line)
    types = [words[at].lower() for words in rows if len(words) == len(columns.kinds)][1:]
    if len(types) != len(edges.source) or set(types) != {UNDIRECTED}:
        return edges
    pairs = zip(edges.source.tolist(), edges.target.tolist(), edges.volume.tolist(), strict=True)
    source, target, volume = table_of(halved(pairs), 3).T
    return replace(edges, source=source, target=target, volume=volume, messages=None, hops=None)


def _first_words(file: GraphFile) -> list[str]:
    return split(next((line for _, line in file.lines() if line), ""))


def _tell(file: GraphFile, columns: Columns, kinds: Kinds, guessed: bool) -> None:
    """Note what is guessed, or not read, although it can be the volume."""
    if guessed and len(kinds) == 4:
        other = "src,dst,bytes,hops" if COUNT in kinds else "src,dst,count,bytes"
        file.notes.append(f"{file.name}: columns without names taken as {','.join(kinds)}; else --columns {other}")
    elif VOLUME not in kinds and COUNT in kinds:
        file.notes.append(f"{file.name}: a list without bytes: its numbers of messages count")
    elif VOLUME not in kinds and not file.columns:
        unread = f" ({', '.join(columns.unread)} is not read: --columns src,dst,bytes)" if columns.unread else ""
        file.notes.append(f"{file.name}: a list without bytes: each line counts 1{unread}")
    elif columns.unread and not file.columns:
        file.notes.append(f"{file.name}: {', '.join(columns.unread)} is not read; else --columns")


def _guess(file: GraphFile) -> Kinds:
    number, words = next(
        ((at, split(line)) for at, line in file.lines() if line and split(line)[0][:1].isdigit()), (1, [])
    )
    if len(words) > 4:
        file.fail(number, _MANY, " ".join(words))
    return _fourth(file) if len(words) == 4 else (SRC, DST, VOLUME)[: max(len(words), 2)]


def _heading_of(file: GraphFile) -> Columns:
    """Return the columns by the first line, or by a comment at the beginning with as many words as columns."""
    first = heading(_first_words(file))
    if first:
        return first
    width = _width(file)
    return next((columns for columns in _comments(file) if len(columns.kinds) == width), Columns(()))


def _comments(file: GraphFile) -> Iterator[Columns]:
    """Yield the columns that comments at the beginning name."""
    for line in file.head.splitlines():
        if line.startswith(("#", "%", "//")) and (columns := heading(split(line.lstrip("#%/ ")))):
            yield columns


def _width(file: GraphFile) -> int:
    """Return the number of words of the first line that begins with a number."""
    words = (split(line) for _, line in file.lines() if line)
    return next((len(one) for one in words if one and one[0][:1].isdigit()), 0)


def _fourth(file: GraphFile) -> Kinds:
    """Return the columns of four: a route has few hops, and messages have as many bytes as messages, or more.

    A comment that names only three decides what the third is.
    """
    is_hops = any(columns.kinds[:3] == (SRC, DST, VOLUME) for columns in _comments(file))
    for words in (split(line) for _, line in file.lines() if line):
        third, *last = map(bare_value, words[2:4] or [""])
        if last and not (last[0].is_integer() and 0 <= last[0] <= MOST_HOPS):
            return SRC, DST, COUNT, VOLUME
        is_hops = is_hops or not last or not third <= last[0]
    return (SRC, DST, VOLUME, HOPS) if is_hops else (SRC, DST, COUNT, VOLUME)


def _rows(
    file: GraphFile, columns: Columns, further: dict[str, array[int]], guessed: bool
) -> Iterator[tuple[int, int, int]]:
    """Yield sender, receiver and bytes of each line, and append its messages and hops to ``further``."""
    kinds, factor = columns.kinds, columns.factor
    at = {kind: place for place, kind in enumerate(kinds) if kind != OTHER}
    rows, hops = 0, further.get(HOPS, array("q"))
    for number, line in file.lines():
        words = split(line)
        if not words or (not rows and not words[0][:1].isdigit() and (file.columns or heading(words))):
            continue
        if len(words) != len(kinds) and not (guessed and {len(words), len(kinds)} == {3, 4}):
            file.fail(number, _WANTED if guessed else f"'{' '.join(kinds)}'", line)
        rows += 1
        volume = file.volume(number, words[at[VOLUME]], factor) if VOLUME in at and at[VOLUME] < len(words) else 1
        yield file.rank(number, words[at[SRC]]), file.rank(number, words[at[DST]]), volume
        if COUNT in at:
            further[COUNT].append(file.volume(number, words[at[COUNT]]))
        if at.get(HOPS, len(words)) < len(words):
            hops.append(file.rank(number, words[at[HOPS]]))
        if guessed and (len(words) != len(kinds) or (HOPS in at and len(hops) != rows)):
            file.fail(number, "hops on every line or on none", line)
