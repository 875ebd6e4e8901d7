"""What a reader makes of a file: directed edges with volumes, and how many ranks there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .text import GraphFileError

__all__ = ["Edges", "halved"]

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
    def of_rows(cls, name: str, rows: Sequence[Sequence[int]], size: int | None = None) -> Edges:
        """Edges from rows of source, target, volume and, where they are known, messages.

        :param name: of the file, for messages.
        :param rows: of 3 or 4 numbers each.
        :param size: number of ranks that the file says; None where it says none, and the highest rank decides.
        """
        table = np.array(rows, dtype=np.int64) if len(rows) else np.empty((0, 3), dtype=np.int64)
        source, target, volume = table[:, 0], table[:, 1], table[:, 2]
        messages = table[:, 3] if table.shape[1] > 3 else None
        known = int(table[:, :2].max(initial=-1)) + 1 if size is None else size
        return cls(name, known, size is not None, source, target, volume, messages)

    def checked_size(self, size: int | None) -> int:
        """The number of ranks: the asked one where the file allows it.

        :raises GraphFileError: for fewer ranks than the file names, or another number than it says; for none at all.
        """
        if size is None:
            size = self.size
        if size < self.size or (self.exact and size != self.size):
            some = "exactly" if self.exact else "at least"
            raise GraphFileError(f"{self.name}: holds {some} {self.size} ranks, but {size} were asked for")
        if size < 1:
            raise GraphFileError(f"{self.name}: expecting at least one rank, got none")
        return size


def halved(pairs: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Directed rows of undirected pairs (u, v, volume): half of it each way, the odd byte from u to v.

    The file does not say who sent what; halves keep the sum of each pair exact, whatever it is.
    """
    rows: list[tuple[int, int, int]] = []
    for u, v, volume in pairs:
        if u == v:
            rows.append((u, u, volume))
        else:
            rows += ((u, v, volume - volume // 2), (v, u, volume // 2))
    return rows
