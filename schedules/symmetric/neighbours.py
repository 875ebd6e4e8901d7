"""Allgathers in rank order that MPI libraries run: Bruck's, and the exchange with neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exchanges import starts
from ..phases import Grid, Phases, sequence
from ..schedule import INPUT, OUTPUT, SCRATCH, Schedule
from ..transfers import Rows, local_moves, shares, transfers

__all__ = ["allgather_bruck", "allgather_neighbours"]

Integers = NDArray[np.int64]


def allgather_bruck(size: int, *, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """In step k each rank sends all that it has, up to what is missing, to the one 2^k before it.

    Bruck and others 1997, the concatenation algorithm, for any p. Shares lie in the order from the own one on, and are
    moved to their places at the end. Messages: p ceil(log2 p); bytes: each share p - 1 times, the least there is.

    :param size: number of ranks, p.
    :param blocks: blocks of each rank where there are no counts.
    :param counts: blocks of each rank for allgatherv, shape (p,).
    """
    share = shares(size, blocks, counts)
    begin, ranks = starts(np.tile(share, 2)), np.arange(size)
    total = int(share.sum())

    def make(step: Integers, rank: Integers) -> Rows:
        distance = 1 << step
        to = (rank - distance) % size
        # The receiver's own share and the distance - 1 behind it come before what it is sent.
        count = begin[rank + np.minimum(distance, size - distance)] - begin[rank]
        return transfers(step, rank, to, (SCRATCH, 0), (SCRATCH, begin[to + distance] - begin[to]), count)

    def near(rank: int) -> Integers:
        return np.unique(np.append(rank, rank + (1 << np.arange(steps))) % size)

    steps = (size - 1).bit_length()
    phases = sequence(
        local_moves(0, ranks, (INPUT, 0), (SCRATCH, 0), share),
        Grid(steps, members=size, make=make, near=near),
        np.concatenate(
            (
                local_moves(0, ranks, (SCRATCH, 0), (OUTPUT, begin[ranks]), total - begin[ranks]),
                local_moves(0, ranks, (SCRATCH, total - begin[ranks]), (OUTPUT, 0), begin[ranks]),
            )
        ),
    )
    return _schedule(size, "Bruck", phases, blocks, counts)


def allgather_neighbours(size: int, *, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """Each rank exchanges with the one after it and the one before it in turns, two shares at a time.

    J. Chen and others 2005, "Performance evaluation of allgather algorithms on terascale Linux cluster with fast
    Ethernet". Messages: p^2 / 2 in p / 2 steps, half as many as a ring has; bytes: each share p - 1 times.

    :param size: number of ranks, p.
    :param blocks: blocks of each rank where there are no counts.
    :param counts: blocks of each rank for allgatherv, shape (p,).
    :raises ValueError: for an odd number of ranks.
    """
    if size % 2:
        raise ValueError(f"expecting an even number of ranks, got {size}")
    share, ranks, half = shares(size, blocks, counts), np.arange(size), size // 2
    begin = starts(share)

    def make(step: Integers, rank: Integers) -> Rows:
        # Ranks 2 q and 2 q + 1 hold pair q after step 0. In later steps pairs come from one side and the other.
        side = np.where((rank + step) % 2, -1, 1)
        came = np.where(step % 2, 1, -1) * np.where(rank % 2, -1, 1) * (step // 2)
        first = np.where(step == 0, rank, 2 * ((rank // 2 + came) % half))
        count = begin[first + np.where(step == 0, 1, 2)] - begin[first]
        return transfers(step, rank, (rank + side) % size, (OUTPUT, begin[first]), (OUTPUT, begin[first]), count)

    def near(rank: int) -> Integers:
        return np.unique(np.array([rank - 1, rank, rank + 1]) % size)

    phases = sequence(
        local_moves(0, ranks, (INPUT, 0), (OUTPUT, begin[:-1]), share),
        Grid(half, members=size, make=make, near=near),
    )
    return _schedule(size, "neighbour exchange", phases, blocks, counts)


def _schedule(size: int, algorithm: str, phases: Phases, blocks: int, counts: ArrayLike | None) -> Schedule:
    given = None if counts is None else np.asarray(counts, dtype=np.int64)
    return Schedule.from_phases("allgather", size, algorithm, phases, blocks=blocks, counts=given)
