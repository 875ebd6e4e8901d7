"""What a reader makes of a file: directed edges with volumes, and how many ranks there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...inputs import current_limits
from .text import GraphFileError

__all__ = ["Edges", "halved", "table_of"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Edges:
    """Directed edges; a pair that is there several times counts with its sum.

    :param name: the file, for messages.
    :param size: number of ranks that the file speaks of.
    :param exact: the file says how many ranks there are; else ``size`` is the highest rank in it plus 1.
    :param source: sending rank of each edge, shape (edges,); likewise ``target``, the receiving one.
    :param volume: bytes, shape (edges,).
    :param messages: number of messages, shape (edges,); None where the file does not say.
    :param hops: switches or links that a message crossed when it was recorded, shape (edges,); None likewise.
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
    ) -> Edges:
        """Edges from rows of source, target, volume and, where they are known, messages.

        :param name: of the file, for messages.
        :param rows: of 3 numbers each, of 4 with ``messages``; read once.
        :param size: number of ranks that the file says; None where it says none, and the highest rank decides.
        :param messages: whether the rows have messages.
        Cost: 24 or 32 bytes an edge.
        """
        table = table_of(rows, 4 if messages else 3)
        source, target, volume = table[:, 0], table[:, 1], table[:, 2]
        known = int(table[:, :2].max(initial=-1)) + 1 if size is None else size
        return cls(name, known, size is not None, source, target, volume, table[:, 3] if messages else None)

    def checked_size(self, size: int | None) -> int:
        """The number of ranks: the asked one where the file allows it.

        :raises GraphFileError: for fewer ranks than the file names, or another number than it says; for none at all.
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
    """Rows of ``width`` whole numbers as an array, shape (rows, width), made as they come."""
    table = np.fromiter(rows, dtype=np.dtype((np.int64, width)))  # type: ignore[call-overload, unused-ignore]
    return np.asarray(table, dtype=np.int64).reshape(-1, width)


def halved(pairs: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Directed rows of undirected pairs (u, v, volume): half of it each way, the odd byte from u to v.

    The file does not say who sent what; halves keep the sum of each pair exact, whatever it is.
    """
    for u, v, volume in pairs:
        if u == v:
            yield (u, u, volume)
        else:
            yield (u, v, volume - volume // 2)
            yield (v, u, volume // 2)
