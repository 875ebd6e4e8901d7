"""Allgather by Bruck's algorithm, in a logarithmic number of steps for any number of ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..phases import GridPhase, sequence
from ..schedule import INPUT, OUTPUT, SCRATCH, Schedule
from ..transfers import Rows, local_moves, shares, transfers

__all__ = ["allgather_bruck"]

Integers = NDArray[np.int64]


def allgather_bruck(size: int, *, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """An allgather in which rank r sends all its shares, up to 2^k of them, to rank r - 2^k in step k.

    Bruck and others 1997, the concatenation algorithm. A share is the blocks of one rank; a rank stores shares in its
    scratch buffer, its own first, and moves them to rank order at the end. Messages: p ceil(log2 p), for any p. Bytes:
    (1 - 1/p) of all shares into each rank. It is fast for short vectors if p is no power of two.

    :param size: number of ranks, p.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for allgatherv.
    """
    share = shares(size, blocks, counts)
    # First block of each rank's share in two concatenated copies of all shares, so that ranges may wrap around.
    begin = np.append(0, np.cumsum(np.tile(share, 2)))
    ranks, steps = np.arange(size), (size - 1).bit_length()

    def send(step: Integers, rank: Integers) -> Rows:
        has = np.minimum(1 << step, size - (1 << step))
        target = (rank - (1 << step)) % size
        place = begin[target + (1 << step)] - begin[target]
        return transfers(step, rank, target, (SCRATCH, 0), (SCRATCH, place), begin[rank + has] - begin[rank])

    def near(rank: int) -> Integers:
        return np.unique(np.append(rank, rank + (1 << np.arange(steps))) % size)

    phases = sequence(
        local_moves(0, ranks, (INPUT, 0), (SCRATCH, 0), share),
        GridPhase(steps if share.any() else 0, members=size, make=send, near=near),
        np.concatenate(
            (
                local_moves(0, ranks, (SCRATCH, 0), (OUTPUT, begin[ranks]), begin[size] - begin[ranks]),
                local_moves(0, ranks, (SCRATCH, begin[size] - begin[ranks]), (OUTPUT, 0), begin[ranks]),
            )
        ),
    )
    given = None if counts is None else share
    return Schedule.from_phases("allgather", size, "Bruck", phases, blocks=blocks, counts=given)
