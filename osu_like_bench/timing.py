"""Timing of the compared implementations (sides): a loop in which sides take turns, and a summary over all ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import sleep

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from topompi.mpi.execution.timing import interleave, time_in_turn

__all__ = ["Call", "Times", "idle", "measure", "summarise"]

Call = Callable[[], object]
POLL = 0.002  # seconds that an idle rank sleeps between two polls, so that it leaves the processor to others


@dataclass(frozen=True, eq=False)
class Times:
    """The times of one side (one of the compared implementations) at one size, in seconds.

    :param average: mean over iterations and ranks.
    :param minimum: smallest of the ranks' means, as OSU prints it.
    :param maximum: largest of the ranks' means.
    :param samples: time of the slowest rank in each iteration, shape (iterations,).
    """

    average: float
    minimum: float
    maximum: float
    samples: NDArray[np.float64]


def measure(sides: Sequence[Sequence[Call]], ready: Call, iterations: int, warmup: int) -> NDArray[np.float64]:
    """Time the calls of compared implementations (sides) on this rank, in the order A B, B A, A B, and so on.

    In this order a drift of the machine's speed favours no side.

    :param sides: functions of each side that make a call; successive iterations use them in turn.
    :param ready: function called before each timed call and not timed, for example a barrier, as in OSU.
    :param iterations: number of timed calls of each side.
    :param warmup: number of untimed calls of each side before them.
    :returns: seconds, shape (sides, iterations).
    """
    # Warm-up and timing are one loop, because a call after a pause is slow; it would be the first side's first timed
    # call.
    return time_in_turn(sides, interleave(len(sides), warmup + iterations), ready)[:, warmup:]


def summarise(comm: MPI.Intracomm, times: NDArray[np.float64]) -> list[Times]:
    """Summarise the times of each side over all ranks; the result is valid on rank 0 only. Collective.

    :param comm: communicator of all ranks.
    :param times: seconds of this rank's calls, shape (sides, iterations).
    """
    times = np.ascontiguousarray(times)
    means, slowest = times.mean(axis=1), np.empty_like(times)
    total, extremes = np.empty(len(times)), np.empty((2, len(times)))
    comm.Reduce(times, slowest, MPI.MAX)
    comm.Reduce(means, total, MPI.SUM)
    comm.Reduce(np.stack([-means, means]), extremes, MPI.MAX)
    columns = zip(total / comm.size, -extremes[0], extremes[1], slowest, strict=True)
    return [Times(float(mean), float(low), float(high), samples) for mean, low, high, samples in columns]


def idle(comm: MPI.Intracomm) -> None:
    """Wait for all ranks in a barrier in which waiting ranks sleep, so that working ranks get the processor."""
    request = comm.Ibarrier()
    while not request.Test():
        sleep(POLL)
