"""Phases that several generators share: rings and hypercubes over given ranks, for allgathers and reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .phases import GridPhase
from .schedule import COPY, OUTPUT, REDUCE, SCRATCH
from .transfers import Rows, local_moves, transfers
from .trees import Integers, Tree, depth_first

__all__ = [
    "Cube",
    "checked_order",
    "checked_root",
    "clustered",
    "combine",
    "doubling",
    "halving",
    "moves",
    "ring",
    "runs",
    "starts",
    "turned",
    "with_second_heads",
    "working",
]


def checked_order(size: int, order: ArrayLike | None) -> Integers:
    """Check that an order contains each rank once, and return it; None stands for ascending order.

    :raises ValueError: if it does not contain each rank once.
    """
    ranks = np.arange(size)
    given = ranks if order is None else np.asarray(order, dtype=np.int64)
    if given.shape != ranks.shape or (np.sort(given) != ranks).any():
        raise ValueError(f"expecting an order that holds each rank of range({size}) once")
    return given


def checked_root(size: int, root: int) -> int:
    """Check that a root is a rank, and return it.

    :raises ValueError: if it is not in range(size).
    """
    if not 0 <= root < size:
        raise ValueError(f"expecting root in range({size}), got {root}")
    return root


def turned(order: Integers, root: int) -> Integers:
    """Rotate an order cyclically to begin with the root."""
    return np.roll(order, -int(np.flatnonzero(order == root)[0]))


def clustered(tree: Tree, clusters: Sequence[ArrayLike]) -> tuple[Integers, Integers, NDArray[np.intp]]:
    """The ranks in depth-first order, the leaders of the outermost clusters in this order, and all non-leaders.

    A non-leader is a rank whose parent lies in its own outermost cluster. Levels with a single cluster are ignored; if
    no level remains, every rank is a cluster.
    """
    dividing = [label for label in map(np.asarray, clusters) if (label != label[0]).any()]
    label = dividing[0] if dividing else np.arange(tree.size)
    inside = (tree.parent >= 0) & (label[tree.parent] == label)
    layout = depth_first(clusters, tree.size)
    return layout, layout[~inside[layout]], np.flatnonzero(inside)


def working(layout: Integers) -> Integers:
    """The buffer in which each rank stores shares in the order of a layout, shape (p,).

    It is the output if the layout is rank order, because nothing must be moved at the end, else the scratch.

    :param layout: ranks in the order in which their shares lie, shape (p,).
    """
    ordered = (layout == np.arange(len(layout))).all()
    return np.full(len(layout), OUTPUT if ordered else SCRATCH)


def starts(counts: Integers) -> Integers:
    """The first block of each of several adjacent ranges of ``counts`` blocks, and the end of the last range."""
    return np.append(0, np.cumsum(counts))


def runs(layout: Integers, counts: Integers) -> tuple[Integers, Integers, Integers]:
    """The moves that bring shares from a layout to rank order.

    Return the first block of each move in the layout, its first block in rank order, and its number of blocks.

    :param layout: ranks in the order in which their shares lie; shares of consecutive ranks move together.
    :param counts: number of blocks of each rank's share, shape (p,).
    """
    first = np.flatnonzero(np.diff(layout, prepend=-2) != 1)
    here, there = starts(counts[layout])[first], starts(counts)[layout[first]]
    return here, there, np.add.reduceat(counts[layout], first)


@dataclass(frozen=True, eq=False)
class Cube:
    """A hypercube over any number of ranks: each corner has a rank that exchanges, the head, and some a second one.

    :param heads: rank at each corner, shape (n,), n a power of two.
    :param surplus: second rank of each corner, which sends its data to the head and receives the result from it, -1 for
        none, shape (n,).
    """

    heads: Integers
    surplus: Integers

    @classmethod
    def over(cls, order: Integers, *, reverse: bool = False, head: int = -1) -> Cube:
        """Make a hypercube of p ranks with n corners, where n is the largest power of two up to p.

        :param order: the ranks, shape (p,). Of the first 2 (p - n) ranks each two neighbours share a corner; each later
            rank has a corner of its own.
        :param reverse: whether to number the corners with their bits reversed, so that dimension 0 joins ranks far
            apart in the order and the last dimension joins neighbours.
        :param head: rank that must exchange for its corner; -1 for none.
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
        """All ranks, corner by corner, each head before its surplus rank, shape (p,)."""
        pairs = np.stack((self.heads, self.surplus), axis=1).ravel()
        return pairs[pairs >= 0]

    def bounds(self, counts: Integers) -> Integers:
        """The first block of each corner's shares, and the end, if shares lie in the order of `layout`, shape (n + 1,).

        :param counts: number of blocks of each rank's share, shape (p,).
        """
        folded = np.where(self.surplus >= 0, counts[self.surplus], 0)
        return starts(counts[self.heads] + folded)

    def inward(self, buffer: Integers, begin: ArrayLike, count: ArrayLike, operation: int = COPY) -> Rows:
        """The rows by which each surplus rank sends to its head.

        :param buffer: working buffer of each rank, shape (p,).
        :param begin: first block of each corner, shape (n,) or a scalar.
        :param count: number of blocks of each corner, shape (n,) or a scalar.
        :param operation: ``COPY`` or ``REDUCE`` at the head.
        """
        return self._fold(self.surplus, self.heads, buffer, begin, count, operation)

    def outward(self, buffer: Integers, begin: ArrayLike, count: ArrayLike) -> Rows:
        """The rows by which each head sends to its surplus rank.

        :param buffer: working buffer of each rank, shape (p,).
        :param begin: first block of each corner, shape (n,) or a scalar.
        :param count: number of blocks of each corner, shape (n,) or a scalar.
        """
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


def with_second_heads(order: Integers) -> Integers:
    """Reorder ranks for `Cube.over`, so that of two ranks that share a corner the second is the head, not the first.

    :param order: the ranks, shape (p,).
    """
    folded = len(order) - (1 << len(order).bit_length() - 1)
    turned = order.copy()
    turned[: 2 * folded] = order[: 2 * folded].reshape(-1, 2)[:, ::-1].ravel()
    return turned


def doubling(heads: Integers, bounds: Integers, buffer: Integers) -> GridPhase:
    """An allgather by recursive doubling: each corner begins with its own range of blocks and ends with all ranges.

    In step k corners exchange that differ in dimension k of the cube.

    :param heads: rank at each corner of the cube, shape (n,).
    :param bounds: first block of each corner's range, and the end, shape (n + 1,).
    :param buffer: working buffer of each rank, shape (p,).
    """

    def make(step: Integers, corner: Integers) -> Rows:
        here, there = heads[corner], heads[corner ^ (1 << step)]
        low = corner >> step << step
        begin, count = bounds[low], bounds[low + (1 << step)] - bounds[low]
        return transfers(step, here, there, (buffer[here], begin), (buffer[there], begin), count)

    return _over_cube(heads, _dimensions(heads) if bounds[-1] > bounds[0] else 0, make)


def halving(heads: Integers, bounds: Integers, buffer: Integers) -> GridPhase:
    """A reduce-scatter by recursive halving: each corner ends with the sum of all corners' data in its own range.

    It is ``doubling`` in reverse: corners that differ in the last dimension of the cube exchange first.

    :param heads: rank at each corner of the cube, shape (n,).
    :param bounds: first block of each corner's range, and the end, shape (n + 1,).
    :param buffer: working buffer of each rank, shape (p,).
    """
    forwards = doubling(heads, bounds, buffer)

    def make(step: Integers, corner: Integers) -> Rows:
        rows = forwards.make(forwards.steps - 1 - step, corner)[:, [0, 2, 1, 5, 6, 3, 4, 7, 8]]
        rows[:, 0] = forwards.steps - 1 - rows[:, 0]
        rows[:, 8] = REDUCE
        return rows

    return _over_cube(heads, forwards.steps, make)


def combine(heads: Integers, buffer: Integers, count: int) -> GridPhase:
    """An allreduce by recursive doubling: corners exchange and add whole vectors, dimension 0 of the cube first.

    A received vector waits in the scratch buffer until the own vector is sent, so each dimension takes a second step.

    :param heads: rank at each corner of the cube, shape (n,).
    :param buffer: working buffer of each rank, shape (p,).
    :param count: number of blocks of the vector.
    """

    def make(step: Integers, corner: Integers) -> Rows:
        dimension, adds = step // 2, step % 2 == 1
        here = heads[corner]
        there = np.where(adds, here, heads[corner ^ (1 << dimension)])
        source, destination = np.where(adds, SCRATCH, buffer[here]), np.where(adds, buffer[here], SCRATCH)
        return transfers(step, here, there, (source, 0), (destination, 0), count, np.where(adds, REDUCE, COPY))

    return _over_cube(heads, 2 * _dimensions(heads) if count > 0 else 0, make)


def _dimensions(heads: Integers) -> int:
    return len(heads).bit_length() - 1


def _over_cube(heads: Integers, steps: int, make: Callable[[Integers, Integers], Rows]) -> GridPhase:
    """A phase over a cube in which rows connect a corner to itself or to corners that differ in one dimension.

    :param heads: rank at each corner of the cube, shape (n,).
    :param steps: number of steps.
    :param make: function that takes a step and a corner for each cell, and returns the rows of these cells.
    """

    def near(rank: int) -> Integers:
        own = np.flatnonzero(heads == rank)
        return np.sort(np.append(own, own[:, None] ^ (1 << np.arange(_dimensions(heads)))))

    return GridPhase(steps, members=len(heads), make=make, near=near)


def ring(
    ranks: Integers,
    begin: Integers,
    count: Integers,
    buffer: Integers,
    operation: int = COPY,
    *,
    wanted: Callable[[Integers, Integers], NDArray[np.bool_]] | None = None,
) -> GridPhase:
    """A ring of n - 1 steps in which each member sends one range to the next member.

    With ``COPY``, a member first sends its own range, then each range that it has just received. With ``REDUCE``, it
    first sends its data in the range of the member before it, then each range to which it has just added its data; the
    last range that it receives is its own.

    :param ranks: members in the order of the ring, shape (n,).
    :param begin: first block of each member's range, shape (n,).
    :param count: number of blocks of each member's range, shape (n,).
    :param buffer: working buffer of each rank, shape (p,).
    :param operation: ``COPY`` for all members to end with all ranges, ``REDUCE`` for each to end with its range's sum.
    :param wanted: function of arrays of members and ranges that returns whether the next member needs the range from
        this one; by default it always does.
    """
    size, target = len(ranks), np.roll(ranks, -1)

    def make(step: Integers, member: Integers) -> Rows:
        part = (member - step - (operation == REDUCE)) % size
        if wanted is not None:
            new = wanted(member, part)
            step, member, part = step[new], member[new], part[new]
        here, there = ranks[member], target[member]
        return transfers(
            step, here, there, (buffer[here], begin[part]), (buffer[there], begin[part]), count[part], operation
        )

    def near(rank: int) -> Integers:
        own = np.flatnonzero(ranks == rank)
        return np.unique(np.append(own, own - 1) % size)

    return GridPhase(size - 1 if count.any() else 0, members=size, make=make, near=near, uniform=True)


def moves(
    ranks: Integers, source: int, here: Integers, destination: int, there: Integers, count: Integers
) -> GridPhase:
    """Identical local moves at each of the given ranks.

    :param ranks: the ranks, shape (n,).
    :param source: buffer that the blocks leave.
    :param here: first block of each move in the source buffer, shape (moves,).
    :param destination: buffer that the blocks enter.
    :param there: first block of each move in the destination buffer, shape (moves,).
    :param count: number of blocks of each move, shape (moves,).
    """

    def make(step: Integers, member: Integers) -> Rows:
        return local_moves(step[:, None], ranks[member][:, None], (source, here), (destination, there), count)

    def near(rank: int) -> Integers:
        return np.flatnonzero(ranks == rank)

    return GridPhase(int(count.any()), members=len(ranks), make=make, near=near, local=True)
