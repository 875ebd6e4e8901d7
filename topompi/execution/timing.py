"""Timing calls of several sides in turns, for trials, tuning and the benchmarks."""

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
    """The side of each call, in turns A B C, C B A, A B C, so that drift favours none.

    :param sides: how many take turns.
    :param rounds: timed calls of each side.
    :param turn: timed calls of a side in a row; the last turns may be shorter.
    :param before: calls before each turn that do not count, in which a side finds the caches and the network as its own
        calls leave them; their entries are -1 - side.
    :returns: shape (calls,).
    """
    order: list[int] = []
    for number, first in enumerate(range(0, rounds, turn)):
        length = min(turn, rounds - first)
        for side in range(sides)[:: -1 if number % 2 else 1]:
            order += [-1 - side] * before + [side] * length
    return np.array(order, dtype=np.int64)


def timed(ready: Call, call: Call) -> float:
    """Seconds of a call, which begins when ``ready``, such as a barrier, is over."""
    ready()
    begin = perf_counter()
    call()
    return perf_counter() - begin


def time_in_turn(sides: Sequence[Sequence[Call]], order: Order, ready: Call) -> NDArray[np.float64]:
    """Time calls on this rank; the garbage collector rests meanwhile.

    :param sides: for each side the calls that it makes one after the other, over and over.
    :param order: of the sides, as ``interleave`` gives it.
    :param ready: called before each call and not timed; a barrier, as in OSU.
    :returns: seconds of the calls that count, shape (sides, rounds).
    """
    # The pages of what is written are there before the first call, and calls are looked up before the clock starts.
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
    """The slowest rank's time of each call, the same on all ranks; collective, one reduction.

    :param comm: the ranks.
    :param seconds: of this rank's calls, in any shape; infinite for a call that failed.
    """
    from mpi4py import MPI  # the rest works without

    seconds = np.ascontiguousarray(seconds)
    most = np.empty_like(seconds)
    comm.Allreduce(seconds, most, MPI.MAX)
    return most
