"""Timing of compared implementations ("sides", for example two libraries) in turn, for trials, tuning, benchmarks."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from itertools import cycle
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["interleave", "slowest", "time_in_turn", "timed"]

Call = Callable[[], object]
Order = NDArray[np.int64]


def interleave(sides: int, rounds: int, turn: int = 1, before: int = 0) -> Order:
    """The order in which compared implementations ("sides") are called: A B C, C B A, A B C, and so on.

    In this order a drift of the machine's speed favours no side.

    :param sides: number of sides.
    :param rounds: number of timed calls of each side.
    :param turn: number of timed calls of a side in a row; the last turns may be shorter.
    :param before: number of untimed calls before each turn, which bring caches and network into the state that the
        side's own calls leave.
    :returns: number of the side of each call, shape (calls,); -1 - side for an untimed call.
    """
    order: list[int] = []
    for number, first in enumerate(range(0, rounds, turn)):
        length = min(turn, rounds - first)
        for side in range(sides)[:: -1 if number % 2 else 1]:
            order += [-1 - side] * before + [side] * length
    return np.array(order, dtype=np.int64)


def timed(ready: Call, call: Call) -> float:
    """Seconds that ``call`` takes, after ``ready``, for example a barrier, has returned."""
    ready()
    begin = perf_counter()
    call()
    return perf_counter() - begin


def time_in_turn(sides: Sequence[Sequence[Call]], order: Order, ready: Call) -> NDArray[np.float64]:
    """Time the calls of compared implementations ("sides") on this rank, with the garbage collector off.

    :param sides: functions of each side, which are called in turn, beginning again after the last one.
    :param order: number of the side of each call, as ``interleave`` returns it, shape (calls,).
    :param ready: function called before each call and not timed, for example a barrier, as in the OSU benchmarks.
    :returns: seconds of the timed calls, shape (sides, timed calls per side), in the order of the calls.
    """
    # Filling the array touches its pages now, and calls are looked up now, so that no timed call pays for either.
    seconds, calls = np.full(len(order), np.nan), [cycle(side) for side in sides]
    collecting = gc.isenabled()
    gc.disable()
    try:
        for number, side in enumerate(order.tolist()):
            seconds[number] = timed(ready, next(calls[side if side >= 0 else -1 - side]))
    finally:
        if collecting:
            gc.enable()
    return np.array([seconds[order == side] for side in range(len(sides))])


def slowest(comm: MPI.Intracomm, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The time of each call on its slowest rank, the same on all ranks; collective, one reduction.

    :param comm: communicator of the ranks.
    :param seconds: seconds of this rank's calls, in any shape; infinite for a call that failed.
    """
    from mpi4py import MPI  # all other functions work without MPI

    seconds = np.ascontiguousarray(seconds)
    most = np.empty_like(seconds)
    comm.Allreduce(seconds, most, MPI.MAX)
    return most
