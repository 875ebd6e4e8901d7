"""What allgathers and reductions are made of: rings and hypercubes over any ranks, as rows with steps from 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..rooted.trees import Tree, depth_first
from ..schedule import COPY, OUTPUT, REDUCE, SCRATCH
from ..transfers import local_moves, transfers

__all__ = [
    "Cube",
    "checked_order",
    "checked_root",
    "clustered",
    "combine",
    "doubling",
    "halving",
    "ring",
    "runs",
    "sequence",
    "starts",
    "working",
]

Integers = NDArray[np.int64]
Rows = NDArray[np.int64]


def sequence(*parts: Rows) -> Rows:
    """Rows of several parts one after the other: the steps of each begin behind those of the part before."""
    shifted, step = [], 0
    for part in parts:
        if len(part):
            moved = part.copy()
            moved[:, 0] += step - part[:, 0].min()
            step = int(moved[:, 0].max()) + 1
            shifted.append(moved)
    return np.concatenate(shifted) if shifted else np.empty((0, 9), dtype=np.int64)


def checked_order(size: int, order: ArrayLike | None) -> Integers:
    """An order of ranks, by default ascending.

    :raises ValueError: unless it holds each rank once.
    """
    ranks = np.arange(size)
    given = ranks if order is None else np.asarray(order, dtype=np.int64)
    if given.shape != ranks.shape or (np.sort(given) != ranks).any():
        raise ValueError(f"expecting an order that holds each rank of range({size}) once")
    return given


def checked_root(size: int, root: int) -> int:
    """A root.

    :raises ValueError: unless it is a rank.
    """
    if not 0 <= root < size:
        raise ValueError(f"expecting root in range({size}), got {root}")
    return root


def clustered(tree: Tree, clusters: Sequence[ArrayLike]) -> tuple[Integers, Integers, NDArray[np.intp]]:
    """The ranks in depth-first order, those that lead an outermost cluster in the same order, and those whose parent
    lies in their own outermost cluster.

    A level that is one cluster is passed over; where no level is left, every rank is a cluster.
    """
    apart = [label for label in map(np.asarray, clusters) if (label != label[0]).any()]
    label = apart[0] if apart else np.arange(tree.size)
    inside = (tree.parent >= 0) & (label[tree.parent] == label)
    layout = depth_first(clusters, tree.size)
    return layout, layout[~inside[layout]], np.flatnonzero(inside)


def working(layout: Integers) -> Integers:
    """Buffer in which each rank keeps shares in the order of a layout: the output, if that is the order of ranks."""
    ordered = (layout == np.arange(len(layout))).all()
    return np.full(len(layout), OUTPUT if ordered else SCRATCH)


def starts(counts: Integers) -> Integers:
    """First place of each of several ranges that lie side by side, and behind the last one's end."""
    return np.append(0, np.cumsum(counts))


def runs(layout: Integers, counts: Integers) -> tuple[Integers, Integers, Integers]:
    """The moves from the order of a layout to the order of ranks: places here, places there, blocks.

    :param layout: ranks in the order in which their shares lie; ranks that follow each other make one move.
    :param counts: blocks of each rank's share, shape (p,).
    """
    first = np.flatnonzero(np.diff(layout, prepend=-2) != 1)
    here, there = starts(counts[layout])[first], starts(counts)[layout[first]]
    return here, there, np.add.reduceat(counts[layout], first)


@dataclass(frozen=True, eq=False)
class Cube:
    """A hypercube over any number of ranks: a power of two of heads, some of which stand for a surplus rank as well.

    :param heads: a rank at each corner, shape (n,).
    :param surplus: the rank that each head also stands for, -1 for none, shape (n,).
    """

    heads: Integers
    surplus: Integers

    @classmethod
    def over(cls, order: Integers, *, reverse: bool = False, head: int = -1) -> Cube:
        """Ranks folded in pairs of neighbours in an order, the first p - n positions being folded.

        :param reverse: number the corners by their bits reversed, so that dimension 0 joins the far ends of the order
            and the last dimension joins neighbours.
        :param head: a rank that must be a head.
        """
        dimensions = len(order).bit_length() - 1
        folded = len(order) - (1 << dimensions)
        pairs = np.full((1 << dimensions, 2), -1)
        pairs[:folded] = order[: 2 * folded].reshape(-1, 2)
        pairs[folded:, 0] = order[2 * folded :]
        swapped = pairs[:, 1] == head if head >= 0 else np.zeros(len(pairs), dtype=bool)
        pairs[swapped] = pairs[swapped, ::-1]
        if reverse:
            bits = np.arange(len(pairs))[:, None] >> np.arange(dimensions) & 1
            pairs = pairs[bits @ (1 << np.arange(dimensions)[::-1])]
        return cls(pairs[:, 0], pairs[:, 1])

    @cached_property
    def layout(self) -> Integers:
        """All ranks, corner by corner."""
        pairs = np.stack((self.heads, self.surplus), axis=1).ravel()
        return pairs[pairs >= 0]

    def bounds(self, counts: Integers) -> Integers:
        """First block of each corner's ranks where the shares of all lie in the order of the layout, and the end."""
        folded = np.where(self.surplus >= 0, counts[self.surplus], 0)
        return starts(counts[self.heads] + folded)

    def inward(self, buffer: Integers, begin: ArrayLike, count: ArrayLike, operation: int = COPY) -> Rows:
        """Each surplus rank sends to its head; ``begin`` and ``count`` by corner, ``buffer`` by rank."""
        return self._fold(self.surplus, self.heads, buffer, begin, count, operation)

    def outward(self, buffer: Integers, begin: ArrayLike, count: ArrayLike) -> Rows:
        """Each head sends to its surplus rank."""
        return self._fold(self.heads, self.surplus, buffer, begin, count, COPY)

    def _fold(
        self,
        source: Integers,
        destination: Integers,
        buffer: Integers,
        begin: ArrayLike,
        count: ArrayLike,
        operation: int,
    ) -> Rows:
        has = np.flatnonzero(self.surplus >= 0)
        source, destination = source[has], destination[has]
        at, blocks = (np.broadcast_to(column, len(self.heads))[has] for column in (begin, count))
        return transfers(0, source, destination, (buffer[source], at), (buffer[destination], at), blocks, operation)


def doubling(heads: Integers, bounds: Integers, buffer: Integers) -> Rows:
    """Recursive doubling: each corner begins with its own range, and all end with all; dimension 0 first.

    :param bounds: first block of each corner's range and the end, shape (n + 1,).
    :param buffer: working buffer of each rank.
    """
    corner = np.arange(len(heads))
    parts = [np.empty((0, 9), dtype=np.int64)]
    for step in range(len(heads).bit_length() - 1):
        other = heads[corner ^ (1 << step)]
        low = corner >> step << step
        begin, count = bounds[low], bounds[low + (1 << step)] - bounds[low]
        parts.append(transfers(step, heads, other, (buffer[heads], begin), (buffer[other], begin), count))
    return np.concatenate(parts)


def halving(heads: Integers, bounds: Integers, buffer: Integers) -> Rows:
    """Recursive halving: ``doubling`` backwards, so the last dimension first; each corner ends with the sum of all in
    its own range."""
    rows = doubling(heads, bounds, buffer)[:, [0, 2, 1, 5, 6, 3, 4, 7, 8]]
    rows[:, 0] = rows[:, 0].max(initial=0) - rows[:, 0]
    rows[:, 8] = REDUCE
    return rows


def combine(heads: Integers, buffer: Integers, count: int, spare: int = 0) -> Rows:
    """Recursive doubling of whole vectors: all corners end with the sum of all, dimension 0 first.

    What arrives waits in the scratch from block ``spare`` on until the vector itself has been sent.
    """
    corner = np.arange(len(heads))
    parts = [np.empty((0, 9), dtype=np.int64)]
    for dimension in range(len(heads).bit_length() - 1):
        other = heads[corner ^ (1 << dimension)]
        parts.append(transfers(2 * dimension, heads, other, (buffer[heads], 0), (SCRATCH, spare), count))
        own = local_moves(2 * dimension + 1, heads, (SCRATCH, spare), (buffer[heads], 0), count)
        own[:, 8] = REDUCE
        parts.append(own)
    return np.concatenate(parts)


def ring(ranks: Integers, begin: Integers, count: Integers, buffer: Integers, operation: int = COPY) -> Rows:
    """Each sends to the next, n - 1 times: own range first to gather all, or the one that ends here last to reduce.

    :param begin: first block of each member's range; likewise ``count``.
    :param operation: ``COPY`` to end with all ranges everywhere, ``REDUCE`` to end with the sum of one's own range.
    """
    size = len(ranks)
    step, member = np.arange(size - 1)[:, None], np.arange(size)
    part = (member - step - (operation == REDUCE)) % size
    target = np.roll(ranks, -1)
    here, there = (buffer[ranks], begin[part]), (buffer[target], begin[part])
    return transfers(step, ranks, target, here, there, count[part], operation)
