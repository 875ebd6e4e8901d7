"""Reduce-scatter by one message for each pair of ranks."""

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
    """What each pair exchanges: the destination's part of the source's vector.

    :param part: blocks of each rank's part, shape (p,).
    """

    part: Integers = field(kw_only=True)

    def rows(self, step: Integers, source: Integers, destination: Integers) -> Rows:
        """A rank's own part is copied, the others are added to it."""
        begin, operation = np.cumsum(self.part) - self.part, np.where(source == destination, COPY, REDUCE)
        place = (INPUT, begin[destination]), (OUTPUT, 0)
        return transfers(step, source, destination, *place, self.part[destination], operation)


def reduce_scatter_pairwise(size: int, *, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """In step k rank r sends rank r + k that one's part of its vector.

    Thakur, Rabenseifner, Gropp 2005, section 4.2.2. Messages: p (p - 1), one in and one out for each rank and step;
    bytes: (1 - 1/p) of the vector out of each rank, the least there is. For commutative operations only. It wins for
    long vectors on full bisection.

    :param size: number of ranks, p.
    :param blocks: blocks of each rank's part where there are no counts.
    :param counts: blocks of each rank, shape (p,).
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
