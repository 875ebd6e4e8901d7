"""Allgather by Bruck's algorithm: a logarithm of messages for any number of ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..phases import Grid, sequence
from ..schedule import INPUT, OUTPUT, SCRATCH, Schedule
from ..transfers import Rows, local_moves, shares, transfers

__all__ = ["allgather_bruck"]

Integers = NDArray[np.int64]


def allgather_bruck(size: int, *, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """In step k rank r sends what it has, of up to 2^k ranks from itself on, to rank r - 2^k.

    Bruck and others 1997, the concatenation algorithm. What a rank has lies in its scratch from its own share on, and
    is moved to the places of the ranks at the end. Messages: p ceil(log2 p), for any p; bytes: (1 - 1/p) of the whole
    into each rank. It wins for short vectors where p is no power of two.

    :param size: number of ranks, p.
    :param blocks: blocks of each rank where there are no counts.
    :param counts: blocks of each rank for allgatherv, shape (p,).
    """
    share = shares(size, blocks, counts)
    # Where the share of each rank begins if the ranks are gone round twice.
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
        Grid(steps if share.any() else 0, members=size, make=send, near=near),
        np.concatenate(
            (
                local_moves(0, ranks, (SCRATCH, 0), (OUTPUT, begin[ranks]), begin[size] - begin[ranks]),
                local_moves(0, ranks, (SCRATCH, begin[size] - begin[ranks]), (OUTPUT, 0), begin[ranks]),
            )
        ),
    )
    given = None if counts is None else share
    return Schedule.from_phases("allgather", size, "Bruck", phases, blocks=blocks, counts=given)
