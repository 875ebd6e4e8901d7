"""The model of run times ``colocated``: jobs on half nodes run at the rates of a matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...jobs import Cluster, Workload
from ...jobs.allocation import Occupancy
from ...jobs.speed import Speed
from ..errors import ColocationError
from .occupancy import HALVES, check_halves
from .table import ALONE, ITSELF, RateTable, program_numbers

__all__ = ["ColocatedSpeed"]

FREE = -1


class ColocatedSpeed(Speed):
    """A model in which a job on half nodes runs at the lowest of the rates of its halves.

    The rate of a half depends on the program on the other half: it is the matrix's speed-up; on a node of which the job
    has both halves it is 1. Rates change at each start and end of a job. Jobs on whole nodes run as logged.

    :param table: true rates of the programs.
    """

    steady = False

    def __init__(self, table: RateTable) -> None:
        self.table, self.name, self.slowest = table, "colocated", table.slowest

    def on(self, workload: Workload, cluster: Cluster) -> Speed:
        """Return the model of one simulation.

        :param workload: the jobs, with the columns ``program`` and ``shared``.
        :param cluster: the cluster, whose nodes have two slots.
        :raises ColocationError: if a node has another number of slots, or a job that shares no known program.
        """
        check_halves(cluster)
        return RunningPairs(self.table, program_numbers(workload, self.table.programs), cluster)


class RunningPairs(Speed):
    """The jobs on each half node of a simulation, and the rates other than 1.

    :param table: true rates of the programs.
    :param programs: number of each job's program, shape (jobs,).
    :param cluster: the cluster.
    """

    steady = False
    name = "colocated"

    def __init__(self, table: RateTable, programs: NDArray[np.int64], cluster: Cluster) -> None:
        self.table, self.slowest, self._cluster, self.programs = table, table.slowest, cluster, programs
        self.owner = np.full(cluster.num_slots, FREE, dtype=np.int64)  # job on each half
        self._slots: dict[int, NDArray[np.int64]] = {}
        self._rates: dict[int, float] = {}

    def rates(self, state: Occupancy) -> dict[int, float]:
        """Return the rates other than 1. Cost: that of the jobs that started, and of the neighbours of changed jobs.

        :raises ColocationError: if the allocator counts nodes and does not name them.
        """
        running = state.running
        changed = [self._end(job) for job in self._slots.keys() - running.keys()]
        started = running.keys() - self._slots.keys()
        changed += [self._start(job, state) for job in started]
        if changed:
            beside = self.owner[np.concatenate(changed) ^ 1]
            for job in started | set(beside[beside != FREE].tolist()):
                self._compute(job)
        return self._rates

    def _start(self, job: int, state: Occupancy) -> NDArray[np.int64]:
        placement = state.running[job][1]
        if not len(placement.nodes):
            raise ColocationError(
                f"speed: {self.name}: expecting an allocator that names nodes, got one that counts them"
            )
        slots = self._slots[job] = self._cluster.slots_of(placement.nodes, placement.slots)
        self.owner[slots] = job
        return slots

    def _end(self, job: int) -> NDArray[np.int64]:
        slots = self._slots.pop(job)
        self.owner[slots] = FREE
        self._rates.pop(job, None)
        return slots

    def _compute(self, job: int) -> None:
        row, slots = int(self.programs[job]), self._slots[job]
        if row < 0:  # on whole nodes
            return
        other = self.owner[slots ^ (HALVES - 1)]
        columns = self.programs[other]
        columns[other == FREE] = ALONE
        columns[other == job] = ITSELF
        rate = float(self.table.rates[row, columns].min())
        self._rates.pop(job, None)
        if rate != 1:
            self._rates[job] = rate
