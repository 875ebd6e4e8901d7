"""A kernel in the simulator: each phase is a schedule, and the kernel's time is the sum of its phases' times."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import gcd

import numpy as np
from numpy.typing import NDArray

from topompi.machine.interference.kernels.kernel import Alltoalls, Burst, Kernel, Phase, Sums, pairs_within
from topompi.schedules import Network, Schedule, make
from topompi.schedules.alltoall import direct

from ..simulate.ground import Failure, Ground

__all__ = ["JOINT", "PLAIN", "Replay"]

Integers = NDArray[np.int64]
# The alltoalls that MPI libraries run on a row or column, without regard to the other rows and columns, which run one
# at the same time; topompi's ``joint`` takes them into account.
PLAIN = {
    "pairwise": direct.alltoall_pairwise,
    "shift": direct.alltoall_shift,
    "scatter_destination": direct.alltoall_scatter_destination,
    "at_once": direct.alltoall_at_once,
}
JOINT = "joint"
ACCURACY = 1e-4  # greatest relative error of a simulated time, because times and rates are rounded
REDUCTIONS = ("doubling", "leaders")


class Replay:
    """The simulation of a kernel on an arena (a simulated network), with its ranks in a given order.

    Phases are timed one by one, as if a barrier separated them, so that no rank begins a phase before all ranks have
    ended the previous phase.

    :param arena: the simulated network.
    :param kernel: the kernel, with as many ranks as the arena.
    :param process: number of the arena's process that takes each rank, shape (ranks,).
    """

    def __init__(self, arena: Ground, kernel: Kernel, process: Integers) -> None:
        self.arena, self.kernel, self.process = arena, kernel, process
        # The network as the kernel sees it: its rank r is on the host of process ``process[r]``.
        self.network = replace(arena.network, rank_host=arena.network.rank_host[process])

    def time(self, nbytes: int, alltoall: str = JOINT) -> float | Failure:
        """Return the simulated seconds of an iteration, or the reason why there are none.

        :param nbytes: message size in bytes.
        :param alltoall: algorithm in rows and columns: ``joint``, or a name in ``PLAIN``.
        """
        phases, total = self.kernel.phases(nbytes), 0.0
        found = {id(phase): self._phase(phase, alltoall) for phase in {id(one): one for one in phases}.values()}
        for phase in phases:
            seconds = found[id(phase)]
            if isinstance(seconds, Failure):
                return seconds
            if seconds < (1 - ACCURACY) * self._busiest(phase):
                return Failure(f"impossible: {seconds * 1e6:.2f} us, less than the busiest link needs")
            total += seconds
        return total

    def bound(self, nbytes: int) -> float:
        """Return the lower bound of an iteration's seconds in this order of ranks.

        It is the sum, over the phases, of the time that the phase's busiest link needs for its bytes.

        :param nbytes: message size in bytes.
        """
        return sum(self._busiest(phase) for phase in self.kernel.phases(nbytes))

    def _phase(self, phase: Phase, alltoall: str) -> float | Failure:
        if isinstance(phase, Burst):
            return self._messages(phase)
        if isinstance(phase, Sums):
            return self._sums(phase)
        try:
            schedule = _joint(self.network, phase) if alltoall == JOINT else _tiled(alltoall, phase)
        except ValueError as error:  # a generator refuses, for example, a number of ranks that is not a power of two
            return Failure(f"left out: {error}")
        return self._run(schedule, phase.nbytes)

    def _messages(self, phase: Burst) -> float | Failure:
        unit = gcd(*phase.nbytes.tolist()) if len(phase.nbytes) else 1
        zero = np.zeros_like(phase.source)
        columns = (zero, phase.source, phase.target, zero, zero, zero + 1, phase.source, phase.nbytes // unit, zero)
        return self._run(Schedule.from_rows("alltoall", self.kernel.ranks, "messages", np.stack(columns, axis=1)), unit)

    def _sums(self, phase: Sums) -> float | Failure:
        """Return the seconds of an allreduce by the fastest algorithm, because all compared sides can run it."""
        times = [self._run(make("allreduce", name, self.network, blocks=1), phase.nbytes) for name in REDUCTIONS]
        return min((one for one in times if isinstance(one, float)), default=times[0])

    def _run(self, schedule: Schedule, block_bytes: int) -> float | Failure:
        columns = {name: column.astype(np.int64) for name, column in schedule.columns().items()}
        for end in ("source", "destination"):
            columns[end] = self.process[columns[end]]
        return self.arena.time(_alltoall(schedule.size, columns, schedule), block_bytes)

    def _busiest(self, phase: Phase) -> float:
        if isinstance(phase, Sums):
            return 0.0
        ends = (phase.source, phase.target) if isinstance(phase, Burst) else pairs_within(phase.groups)
        here, there = (self.network.rank_host[end] for end in ends)
        loads = self.network.loads_of(here, there, np.broadcast_to(phase.nbytes, here.shape))
        return float((loads / self.network.capacity).max(initial=0.0))


def _joint(network: Network, phase: Alltoalls) -> Schedule:
    rows = len(phase.groups) if phase.name == "rows" else phase.groups.shape[1]
    return make("fft", phase.name, network, rows=rows)


@cache
def _plain(name: str, size: int) -> Schedule:
    return PLAIN[name](size)


def _tiled(name: str, phase: Alltoalls) -> Schedule:
    """Return a schedule in which all groups of a phase run the alltoall algorithm ``name`` at the same time."""
    groups, one = phase.groups, _plain(name, phase.groups.shape[1])
    columns = {key: np.tile(column.astype(np.int64), len(groups)) for key, column in one.columns().items()}
    of = np.repeat(np.arange(len(groups)), one.num_rows)
    for end in ("source", "destination"):
        columns[end] = groups[of, columns[end]]
    return _alltoall(groups.size, columns, one)


def _alltoall(ranks: int, columns: dict[str, Integers], like: Schedule) -> Schedule:
    """Make a schedule from columns of transfers; steps may overlap as in the schedule ``like``."""
    rows = np.stack(list(columns.values()), axis=1)
    return Schedule.from_rows("alltoall", ranks, like.algorithm, rows, independent=like.independent, window=like.window)
