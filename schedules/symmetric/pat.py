"""Allgather and reduce-scatter along binomial trees of all ranks at once, far ranks first (PAT)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exchanges import checked_order, starts
from ..phases import Grid, sequence
from ..schedule import COPY, INPUT, OUTPUT, REDUCE, SCRATCH, Schedule
from ..transfers import Rows, local_moves, shares, transfers

__all__ = ["allgather_pat", "reduce_scatter_pat"]

Integers = NDArray[np.int64]


def allgather_pat(
    size: int, *, order: ArrayLike | None = None, blocks: int = 1, counts: ArrayLike | None = None
) -> Schedule:
    """An allgather in which ranks send few shares far at first, then more and more to nearer ranks.

    Parallel aggregated trees (Jeaugey 2025, arXiv:2506.20252), with all trees in one message. Messages: one in and one
    out per rank and step, in ceil(log2 p) steps; two if p is no power of two. Bytes: all shares but its own into each
    rank, the least possible; half of them come from the neighbour in the order. It is fast for short and medium shares
    where links between clusters are scarce.

    :param size: number of ranks, p.
    :param order: ranks in an order that keeps near ranks together, shape (p,), by default ascending.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for allgatherv.
    """
    share = shares(size, blocks, counts)
    trees = _Trees(checked_order(size, order), share)
    phases = sequence(
        local_moves(0, np.arange(size), (INPUT, 0), (SCRATCH, 0), share),
        trees.exchange(backwards=False),
        trees.moves(SCRATCH, OUTPUT),
    )
    given = None if counts is None else share
    return Schedule.from_phases("allgather", size, "pat", phases, blocks=blocks, counts=given)


def reduce_scatter_pat(
    size: int, *, order: ArrayLike | None = None, blocks: int = 1, counts: ArrayLike | None = None
) -> Schedule:
    """A reduce-scatter in which ranks send many parts to near ranks at first, then fewer and fewer to farther ones.

    The allgather of that name backwards (Jeaugey 2025, arXiv:2506.20252). Messages: one in and one out per rank and
    step, in ceil(log2 p) steps; two if p is no power of two. Bytes: (1 - 1/p) of the vector from each rank if all parts
    are equal, the least possible; half of them go to the neighbour in the order. It is fast for short and medium
    vectors where links between clusters are scarce. It requires a commutative operation.

    :param size: number of ranks, p.
    :param order: ranks in an order that keeps near ranks together, shape (p,), by default ascending.
    :param blocks: number of blocks of each rank's part, used if ``counts`` is None.
    :param counts: blocks of each rank's part, shape (p,).
    """
    share = shares(size, blocks, counts)
    trees = _Trees(checked_order(size, order), share)
    phases = sequence(
        trees.moves(INPUT, SCRATCH),
        trees.exchange(backwards=True),
        local_moves(0, np.arange(size), (SCRATCH, 0), (OUTPUT, 0), share),
    )
    given = None if counts is None else share
    return Schedule.from_phases("reduce_scatter", size, "pat", phases, blocks=blocks, counts=given)


class _Trees:
    """The binomial trees of p ranks, one for each rank's share, whose edges of the same length belong to one step.

    Step k, for k from high to low, has the edges of 2^k places in the order. Let d be the distance from a share's owner
    to a rank. If d is a multiple of 2^(k+1), and the rank 2^k places further is not beyond all p ranks, then the rank
    sends the share there. Each rank stores its shares in the order of their distances d with reversed bits. Then the
    shares that it has before a step lie side by side, and so do those that it gets.

    :param ranks: ranks in their order, shape (p,).
    :param share: blocks of each rank, shape (p,).
    """

    def __init__(self, ranks: Integers, share: Integers) -> None:
        size = len(ranks)
        self.ranks, self.share, self.bits = ranks, share, (size - 1).bit_length()
        every = np.arange(1 << self.bits)
        turned = (every[:, None] >> np.arange(self.bits) & 1) @ (1 << np.arange(self.bits)[::-1])
        self.behind = turned[turned < size]  # reversing bits twice changes nothing

    def _begins(self, member: Integers) -> Integers:
        """First block of each stored share, and the end, at some members of the order, shape (members, p + 1)."""
        owner = self.ranks[(member[:, None] - self.behind) % len(self.ranks)]
        return np.pad(np.cumsum(self.share[owner], axis=1), ((0, 0), (1, 0)))

    def exchange(self, *, backwards: bool) -> Grid:
        """The messages along the edges of all trees: a copy of shares, or backwards sums of them."""
        size = len(self.ranks)
        length = 1 << np.arange(self.bits)[::-1]
        many = -(-size // (2 * length))  # shares that a rank has before each step
        beyond = (many - 1) * 2 * length + length >= size  # whether the last share of the longest way has no edge left
        left_out = np.array([int(np.flatnonzero(self.behind == d)[0]) for d in (many - 1) * 2 * length], dtype=np.int64)
        first = np.where(beyond, left_out, many)

        def make(step: Integers, member: Integers) -> Rows:
            at = self.bits - 1 - step if backwards else step
            target = (member + length[at]) % size
            ends = np.unique(np.concatenate((member, target)))
            begins = self._begins(ends)
            here, there = np.searchsorted(ends, member), np.searchsorted(ends, target)
            runs = []
            for low, high in ((np.zeros_like(at), first[at]), (first[at] + 1, many[at])):
                to = many[at] + low - (low > 0)
                begin, count = begins[here, low], begins[here, np.maximum(high, low)] - begins[here, low]
                away, back = (self.ranks[member], (SCRATCH, begin)), (self.ranks[target], (SCRATCH, begins[there, to]))
                (source, start), (sink, end) = (back, away) if backwards else (away, back)
                runs.append(transfers(step, source, sink, start, end, count, REDUCE if backwards else COPY))
            rows = np.concatenate(runs)
            return rows[np.argsort(rows[:, 0], kind="stable")]

        def near(rank: int) -> Integers:
            own = int(np.flatnonzero(self.ranks == rank)[0])
            return np.unique(np.append((own - length) % size, own))

        return Grid(self.bits, members=size, make=make, near=near)

    def moves(self, source: int, destination: int) -> Grid:
        """The local moves between the scratch, in the order of storage, and another buffer in rank order."""
        there = starts(self.share)

        def make(step: Integers, member: Integers) -> Rows:
            owner = self.ranks[(member[:, None] - self.behind) % len(self.ranks)]
            places = {SCRATCH: self._begins(member)[:, :-1], source + destination - SCRATCH: there[owner]}
            return local_moves(
                step[:, None],
                self.ranks[member][:, None],
                (source, places[source]),
                (destination, places[destination]),
                self.share[owner],
            )

        def near(rank: int) -> Integers:
            return np.flatnonzero(self.ranks == rank)

        return Grid(int(self.share.any()), members=len(self.ranks), make=make, near=near, local=True)
