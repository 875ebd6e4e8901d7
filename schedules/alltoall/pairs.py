"""Alltoalls with one message per pair of ranks, which differ only in the step of each message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..phases import Phase
from ..schedule import INPUT, OUTPUT, Schedule
from ..transfers import Rows, transfers

__all__ = ["PairPhase", "Permutations", "Shares", "StepTable", "of_pairs"]

Integers = NDArray[np.int64]
Messages = tuple[Integers, Integers, Integers]  # step, source and destination of each message


@dataclass(frozen=True, eq=False)
class Shares:
    """The number of blocks of each pair of ranks, and their places in the buffers.

    :param size: number of ranks, p.
    :param blocks: number of blocks of each pair, used if ``counts`` is None.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv; None if all have ``blocks``.
    """

    size: int
    blocks: int
    counts: Integers | None = None

    @classmethod
    def of(cls, size: int, blocks: int, counts: ArrayLike | None) -> Shares:
        """Make shares from counts, which are checked.

        :param size: number of ranks, p.
        :param blocks: number of blocks of each pair, used if ``counts`` is None.
        :param counts: blocks of each pair, shape (p, p), or None.
        :raises ValueError: if ``counts`` has another shape or a negative number.
        """
        if counts is None:
            return cls(size, blocks)
        given = np.asarray(counts, dtype=np.int64)
        if given.shape != (size, size) or (given < 0).any():
            raise ValueError(f"expecting counts of shape ({size}, {size}), each at least 0")
        return cls(size, blocks, given)

    def rows(self, step: Integers, source: Integers, destination: Integers) -> Rows:
        """The rows of messages, shape (rows, 9); a message of 0 blocks has no row.

        :param step: step of each message, shape (messages,).
        :param source: sending rank of each message, shape (messages,).
        :param destination: receiving rank of each message, shape (messages,).
        """
        if self.counts is None:
            here, there, count = self.blocks * destination, self.blocks * source, np.full_like(source, self.blocks)
        else:
            here, there, count = (table[source, destination] for table in (*self._places, self.counts))
        return transfers(step, source, destination, (INPUT, here), (OUTPUT, there), count)

    @cached_property
    def _places(self) -> tuple[Integers, Integers]:
        """The first block of each pair in the sender's input and in the receiver's output, each of shape (p, p)."""
        counts = np.asarray(self.counts)
        return np.cumsum(counts, axis=1) - counts, np.cumsum(counts, axis=0) - counts


@dataclass(frozen=True, eq=False)
class PairPhase(Phase):
    """A phase with one message per ordered pair of ranks; a rank's message to itself is a local move.

    :param share: number of blocks of each pair.
    :param uniform: whether all steps load the network so alike that the cost model (`schedules.analysis.cost`) may
        evaluate only a few and let these stand for the others.
    """

    share: Shares = field(kw_only=True)
    uniform: bool = field(default=True, kw_only=True)

    def pairs_of(self, rank: int) -> Messages:
        """The messages of a rank, its local move once, in any order."""
        raise NotImplementedError

    def pairs_at(self, steps: Integers) -> Messages:
        """The messages of the given steps, in any order."""
        raise NotImplementedError

    def rows(self) -> Rows:
        """The rows of all ranks, sorted by step, source and destination."""
        return self.at(np.arange(self.steps))

    def of_rank(self, rank: int) -> Rows:
        """The rows that a rank takes part in, sorted by step, source and destination."""
        return self._ordered(self.pairs_of(rank))

    def at(self, steps: Integers) -> Rows:
        """The rows of the given steps, sorted by step, source and destination."""
        return self._ordered(self.pairs_at(steps))

    def _ordered(self, messages: Messages) -> Rows:
        step, source, destination = messages
        order = np.argsort((step * self.share.size + source) * self.share.size + destination, kind="stable")
        return self.share.rows(step[order], source[order], destination[order])


@dataclass(frozen=True, eq=False)
class Permutations(PairPhase):
    """Messages of all pairs in steps in which every rank sends at most one and receives at most one.

    :param target: function of arrays of steps and ranks that returns each rank's receiver, -1 for none.
    :param origin: the inverse function, which returns each rank's sender, -1 for none.
    """

    target: Callable[[Integers, Integers], Integers] = field(kw_only=True)
    origin: Callable[[Integers, Integers], Integers] = field(kw_only=True)

    def pairs_of(self, rank: int) -> Messages:
        """The messages of a rank. Cost: O(steps)."""
        step, me = np.arange(self.steps), np.full(self.steps, rank)
        there, here = self.target(step, me), self.origin(step, me)
        sent, received = there >= 0, (here >= 0) & (here != rank)
        return (
            np.append(step[sent], step[received]),
            np.append(me[sent], here[received]),
            np.append(there[sent], me[received]),
        )

    def pairs_at(self, steps: Integers) -> Messages:
        """The messages of the given steps. Cost: O(p) per step."""
        step, source = np.repeat(steps, self.share.size), np.tile(np.arange(self.share.size), len(steps))
        destination = self.target(step, source)
        sent = destination >= 0
        return step[sent], source[sent], destination[sent]


@dataclass(frozen=True, eq=False)
class StepTable(PairPhase):
    """Messages of all pairs, whose steps come from a table.

    :param table: step of each pair, shape (p, p), by source and destination.
    """

    table: NDArray[np.integer] = field(kw_only=True)

    @classmethod
    def of(cls, table: NDArray[np.integer], share: Shares) -> StepTable:
        """Make the messages from a table of steps, which is stored in the smallest sufficient type of integers."""
        last = int(table.max(initial=-1))
        return cls(last + 1, share=share, table=table.astype(np.min_scalar_type(last)))

    def pairs_of(self, rank: int) -> Messages:
        """The messages of a rank. Cost: O(p)."""
        ranks = np.arange(self.share.size)
        others = np.delete(ranks, rank)
        step = np.append(self.table[rank], self.table[others, rank]).astype(np.int64)
        me = np.full_like(ranks, rank)
        return step, np.append(me, others), np.append(ranks, me[1:])

    def pairs_at(self, steps: Integers) -> Messages:
        """The messages of the given steps. Cost: O(p^2)."""
        wanted = np.zeros(self.steps, dtype=bool)
        wanted[steps] = True
        source, destination = np.nonzero(wanted[self.table])
        return self.table[source, destination].astype(np.int64), source, destination


def of_pairs(algorithm: str, pairs: PairPhase, window: int) -> Schedule:
    """An alltoall with one message per pair of ranks, whose steps may overlap.

    :param algorithm: name of the algorithm.
    :param pairs: the messages.
    :param window: largest number of steps that a rank has in flight; 0 for no limit.
    """
    share = pairs.share
    return Schedule.from_phases(
        "alltoall",
        share.size,
        algorithm,
        ((0, pairs),),
        blocks=share.blocks,
        counts=share.counts,
        independent=True,
        window=window,
    )
