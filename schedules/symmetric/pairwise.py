"""Reduce-scatter with one message per pair of ranks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..alltoall.pairs import Permutations, Shares
from ..schedule import COPY, INPUT, OUTPUT, REDUCE, Schedule
from ..transfers import Rows, shares, transfers

__all__ = ["reduce_scatter_pairwise"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Parts(Shares):
    """The blocks that each pair of ranks exchanges: the part of the source's vector that the destination adds up.

    :param part: number of blocks of each rank's part, shape (p,).
    """

    part: Integers = field(kw_only=True)

    def rows(self, step: Integers, source: Integers, destination: Integers) -> Rows:
        """The rows of messages: a rank copies its own part, and adds the received parts to it."""
        begin, operation = np.cumsum(self.part) - self.part, np.where(source == destination, COPY, REDUCE)
        place = (INPUT, begin[destination]), (OUTPUT, 0)
        return transfers(step, source, destination, *place, self.part[destination], operation)


def reduce_scatter_pairwise(size: int, *, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """A reduce-scatter in which rank r sends to rank r + k in step k the receiver's part of r's vector.

    Thakur, Rabenseifner, Gropp 2005, section 4.2.2. Messages: p (p - 1), one in and one out per rank and step. Bytes:
    (1 - 1/p) of the vector from each rank, the least possible. It requires a commutative operation. It is fast for long
    vectors on networks of full bisection.

    :param size: number of ranks, p.
    :param blocks: number of blocks of each rank's part, used if ``counts`` is None.
    :param counts: blocks of each rank's part, shape (p,).
    """
    part = shares(size, blocks, counts)
    pairs = Permutations(
        size,
        share=_Parts(size, blocks, part=part),
        target=lambda step, rank: (rank + step) % size,
        origin=lambda step, rank: (rank - step) % size,
    )
    given = None if counts is None else part
    return Schedule.from_phases("reduce_scatter", size, "pairwise", ((0, pairs),), blocks=blocks, counts=given)
