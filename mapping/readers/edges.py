"""The result of a reader: directed edges with volumes, and the number of ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...inputs import current_limits
from .text import GraphFile, GraphFileError

__all__ = ["EdgeList", "counted_from_zero", "halved", "table_of"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EdgeList:
    """The directed edges in a file; a pair may be repeated, because making the graph sums its volumes.

    :param name: name of the file, for error messages.
    :param size: number of ranks in the file.
    :param exact: whether the file states the number of ranks; otherwise ``size`` is the highest rank plus 1.
    :param source: sending rank of each edge, shape (edges,).
    :param target: receiving rank of each edge, shape (edges,).
    :param volume: bytes of each edge, shape (edges,).
    :param messages: number of messages of each edge, shape (edges,); None if unknown.
    :param hops: switches or links that a message crossed when it was recorded, shape (edges,); None if unknown.
    """

    name: str
    size: int
    exact: bool
    source: Integers
    target: Integers
    volume: Integers
    messages: Integers | None = None
    hops: Integers | None = None

    @classmethod
    def of_rows(
        cls, name: str, rows: Iterable[Sequence[int]], size: int | None = None, *, messages: bool = False
    ) -> EdgeList:
        """Make edges from rows of source, target, volume and, if ``messages``, number of messages.

        :param name: name of the file, for error messages.
        :param rows: rows of 3 numbers, or 4 with ``messages``; iterated once.
        :param size: number of ranks that the file states; if it is None, the highest rank plus 1 is taken.
        :param messages: whether the rows have a number of messages.
        Cost: 24 or 32 bytes per edge.
        """
        table = table_of(rows, 4 if messages else 3)
        source, target, volume = table[:, 0], table[:, 1], table[:, 2]
        known = int(table[:, :2].max(initial=-1)) + 1 if size is None else size
        return cls(name, known, size is not None, source, target, volume, table[:, 3] if messages else None)

    def checked_size(self, size: int | None) -> int:
        """The number of ranks: the requested number if the file allows it, by default the file's.

        :raises GraphFileError: if the file has more ranks, or states another number, or the number is 0.
        """
        if size is None:
            size = self.size
        if size < self.size or (self.exact and size != self.size):
            some = "exactly" if self.exact else "at least"
            raise GraphFileError(f"{self.name}: holds {some} {self.size} ranks, but {size} were asked for")
        current_limits().check("ranks", size, self.name, GraphFileError)
        if size < 1:
            raise GraphFileError(f"{self.name}: expecting at least one rank, got none")
        return size


def table_of(rows: Iterable[Sequence[int]], width: int) -> Integers:
    """The rows of ``width`` whole numbers as an array, shape (rows, width), filled while they are iterated."""
    table = np.fromiter(rows, dtype=np.dtype((np.int64, width)))  # type: ignore[call-overload, unused-ignore]
    return np.asarray(table, dtype=np.int64).reshape(-1, width)


def halved(pairs: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Split undirected pairs (u, v, volume) into two directed rows of half the volume; an odd byte goes from u to v.

    The file does not tell who sent the bytes, and the sum of each pair stays exact.
    """
    for u, v, volume in pairs:
        if u == v:
            yield (u, u, volume)
        else:
            yield (u, v, volume - volume // 2)
            yield (v, u, volume // 2)


def counted_from_zero(file: GraphFile, edges: EdgeList, base: int | None = None) -> EdgeList:
    """Return the edges with ranks from 0, if they count from 1: ranks from 1 on occur without a gap, and no rank 0.

    :param file: the file, which has the number of ranks that the caller expects, and the list for the note.
    :param edges: the edges as the file has them.
    :param base: number of the first rank, 0 or 1, if it is told; None if it is to be guessed.
    """
    ranks = np.unique(np.concatenate([edges.source, edges.target]))
    from_one = len(ranks) > 0 and ranks[0] == 1 and len(ranks) == ranks[-1] == edges.size - 1
    if base == 0 or not from_one or (base is None and file.size not in (None, len(ranks))):
        return edges
    if base is None:
        file.notes.append(f"{file.name}: rank 1 is the first, taken as rank 0; else --ranks {edges.size}")
    return replace(edges, size=edges.size - 1, source=edges.source - 1, target=edges.target - 1)
