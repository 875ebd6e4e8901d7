"""What allgathers and reductions are made of: rings and hypercubes over any ranks, as phases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .phases import Grid
from .schedule import COPY, OUTPUT, REDUCE, SCRATCH
from .transfers import local_moves, transfers
from .trees import Tree, depth_first

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

Integers = NDArray[np.int64]
Rows = NDArray[np.int64]


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


def turned(order: Integers, root: int) -> Integers:
    """An order gone round so that the root comes first."""
    return np.roll(order, -int(np.flatnonzero(order == root)[0]))


def clustered(tree: Tree, clusters: Sequence[ArrayLike]) -> tuple[Integers, Integers, NDArray[np.intp]]:
    """The ranks in depth-first order, the outermost clusters' leaders in that order, and the ranks below a leader.

    The last are those whose parent lies in their own outermost cluster. A level that is one cluster is passed over;
    where no level is left, every rank is a cluster.
    """
    dividing = [label for label in map(np.asarray, clusters) if (label != label[0]).any()]
    label = dividing[0] if dividing else np.arange(tree.size)
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

        :param order: the ranks, shape (p,).
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
        """Each surplus rank sends to its head.

        :param buffer: working buffer of each rank, shape (p,).
        :param begin: first block by corner.
        :param count: blocks by corner.
        :param operation: ``COPY`` or ``REDUCE``, at the head.
        """
        return self._fold(self.surplus, self.heads, buffer, begin, count, operation)

    def outward(self, buffer: Integers, begin: ArrayLike, count: ArrayLike) -> Rows:
        """Each head sends to its surplus rank.

        :param buffer: working buffer of each rank, shape (p,).
        :param begin: first block by corner.
        :param count: blocks by corner.
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
    """An order for ``Cube.over`` in which the second rank of each folded pair is the head, and not the first.

    :param order: the ranks, shape (p,).
    """
    folded = len(order) - (1 << len(order).bit_length() - 1)
    turned = order.copy()
    turned[: 2 * folded] = order[: 2 * folded].reshape(-1, 2)[:, ::-1].ravel()
    return turned


def doubling(heads: Integers, bounds: Integers, buffer: Integers) -> Grid:
    """Recursive doubling: each corner begins with its own range, and all end with all; dimension 0 first.

    :param heads: rank at each corner of the cube, shape (n,).
    :param bounds: first block of each corner's range and the end, shape (n + 1,).
    :param buffer: working buffer of each rank.
    """

    def make(step: Integers, corner: Integers) -> Rows:
        here, there = heads[corner], heads[corner ^ (1 << step)]
        low = corner >> step << step
        begin, count = bounds[low], bounds[low + (1 << step)] - bounds[low]
        return transfers(step, here, there, (buffer[here], begin), (buffer[there], begin), count)

    return _over_cube(heads, _dimensions(heads) if bounds[-1] > bounds[0] else 0, make)


def halving(heads: Integers, bounds: Integers, buffer: Integers) -> Grid:
    """Recursive halving: each corner ends with the sum of all in its own range.

    It is ``doubling`` backwards, so the last dimension comes first.

    :param heads: rank at each corner of the cube, shape (n,).
    :param bounds: first block of each corner's range and the end, shape (n + 1,).
    :param buffer: working buffer of each rank, shape (p,).
    """
    forwards = doubling(heads, bounds, buffer)

    def make(step: Integers, corner: Integers) -> Rows:
        rows = forwards.make(forwards.steps - 1 - step, corner)[:, [0, 2, 1, 5, 6, 3, 4, 7, 8]]
        rows[:, 0] = forwards.steps - 1 - rows[:, 0]
        rows[:, 8] = REDUCE
        return rows

    return _over_cube(heads, forwards.steps, make)


def combine(heads: Integers, buffer: Integers, count: int) -> Grid:
    """Recursive doubling of whole vectors: all corners end with the sum of all, dimension 0 first.

    What arrives waits in the scratch until the vector itself has been sent: each dimension takes a second step.

    :param heads: rank at each corner of the cube, shape (n,).
    :param buffer: working buffer of each rank, shape (p,).
    :param count: blocks of the vector.
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


def _over_cube(heads: Integers, steps: int, make: Callable[[Integers, Integers], Rows]) -> Grid:
    """Rows whose ends are corners of a hypercube that differ in one dimension at most."""

    def near(rank: int) -> Integers:
        own = np.flatnonzero(heads == rank)
        return np.sort(np.append(own, own[:, None] ^ (1 << np.arange(_dimensions(heads)))))

    return Grid(steps, members=len(heads), make=make, near=near)


def ring(
    ranks: Integers,
    begin: Integers,
    count: Integers,
    buffer: Integers,
    operation: int = COPY,
    *,
    wanted: Callable[[Integers, Integers], NDArray[np.bool_]] | None = None,
) -> Grid:
    """Each sends to the next, n - 1 times: own range first to gather all, or the one that ends here last to reduce.

    :param ranks: the members in their order, shape (n,).
    :param begin: first block of each member's range; likewise ``count``.
    :param buffer: working buffer of each rank.
    :param operation: ``COPY`` to end with all ranges everywhere, ``REDUCE`` to end with the sum of one's own range.
    :param wanted: by member and range, whether the next one has a use for it; by default it always has.
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

    return Grid(size - 1 if count.any() else 0, members=size, make=make, near=near, uniform=True)


def moves(ranks: Integers, source: int, here: Integers, destination: int, there: Integers, count: Integers) -> Grid:
    """The same local moves at each of some ranks.

    :param ranks: the ranks, shape (n,).
    :param source: buffer from which each moves; likewise ``destination``.
    :param here: block at which each move begins, shape (moves,); likewise ``there`` and ``count``.
    """

    def make(step: Integers, member: Integers) -> Rows:
        return local_moves(step[:, None], ranks[member][:, None], (source, here), (destination, there), count)

    def near(rank: int) -> Integers:
        return np.flatnonzero(ranks == rank)

    return Grid(int(count.any()), members=len(ranks), make=make, near=near, local=True)
