"""Allgather by exchanges with neighbours in rank order, as MPI libraries run it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exchanges import starts
from ..phases import GridPhase, sequence
from ..schedule import INPUT, OUTPUT, Schedule
from ..transfers import Rows, local_moves, shares, transfers

__all__ = ["allgather_neighbours"]

Integers = NDArray[np.int64]


def allgather_neighbours(size: int, *, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """An allgather in which each rank exchanges the shares of two ranks with its next and its previous rank in turns.

    J. Chen and others 2005, "Performance evaluation of allgather algorithms on terascale Linux cluster with fast
    Ethernet".
    Messages: p^2 / 2 in p / 2 steps, half as many as on a ring. Bytes: the blocks of each rank are sent p - 1 times.

    :param size: number of ranks, p.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for allgatherv.
    :raises ValueError: if the number of ranks is odd.
    """
    if size % 2:
        raise ValueError(f"expecting an even number of ranks, got {size}")
    share, ranks, half = shares(size, blocks, counts), np.arange(size), size // 2
    begin = starts(share)

    def make(step: Integers, rank: Integers) -> Rows:
        # Ranks 2 q and 2 q + 1 hold pair q after step 0. In later steps pairs arrive alternately from either side.
        side = np.where((rank + step) % 2, -1, 1)
        came = np.where(step % 2, 1, -1) * np.where(rank % 2, -1, 1) * (step // 2)
        first = np.where(step == 0, rank, 2 * ((rank // 2 + came) % half))
        count = begin[first + np.where(step == 0, 1, 2)] - begin[first]
        return transfers(step, rank, (rank + side) % size, (OUTPUT, begin[first]), (OUTPUT, begin[first]), count)

    def near(rank: int) -> Integers:
        return np.unique(np.array([rank - 1, rank, rank + 1]) % size)

    phases = sequence(
        local_moves(0, ranks, (INPUT, 0), (OUTPUT, begin[:-1]), share),
        GridPhase(half, members=size, make=make, near=near),
    )
    given = None if counts is None else share
    return Schedule.from_phases("allgather", size, "neighbour exchange", phases, blocks=blocks, counts=given)
