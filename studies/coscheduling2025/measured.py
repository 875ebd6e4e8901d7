"""A scheduler that learns the rates of pairs from measurements, and separates the programs of bad pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.scheduling.allocators import Matched
from topompi.machine.colocation.scheduling.occupancy import HALVES, HalfOccupancy
from topompi.machine.colocation.scheduling.preferences import THRESHOLD, favoured
from topompi.machine.colocation.scheduling.table import RateTable
from topompi.machine.jobs import Cluster, Observer
from topompi.machine.jobs.allocation import Job, Occupancy, Placement
from topompi.machine.jobs.queueing import Situation

__all__ = ["Measured", "Measurements"]

MARGIN = 0.2  # share by which unmeasured rates are taken to be higher than predicted
WINDOW = 60  # seconds that two jobs run beside each other before their rates count as measured
Rate = Callable[[str, str], float]


class _Learning(HalfOccupancy):
    """A state with the rates that the scheduler knows by now, and the cells of the table that have been measured.

    :param cluster: a cluster whose nodes have two slots.
    :param table: rates before any measurement; they stay as they are.
    :param threshold: least rate of each of two jobs that may share nodes.
    """

    def __init__(self, cluster: Cluster, table: RateTable, threshold: float) -> None:
        super().__init__(cluster, favoured(table, threshold))
        self.table, self.threshold = table, threshold
        self.seen = np.zeros((len(table.programs),) * 2, dtype=bool)

    def learn(self, program: int, beside: int, rate: float) -> None:
        """Put a measured rate into the table, which copies of the state share no longer.

        :param program: number of the program.
        :param beside: number of the program on the other half.
        :param rate: measured rate.
        """
        rates = self.table.rates.copy()
        rates[program, beside], self.seen[program, beside] = rate, True
        self.table = RateTable(self.table.programs, rates)
        self.preferences = favoured(self.table, self.threshold)


class Measured(Matched):
    """`Matched` on a table that changes during a run, as `Measurements` brings measured rates into the run's state.

    A pair that turns out to be slow is refused from then on. A job that was promised a start keeps the halves that were
    found then, even if its neighbours are refused by now, so that what was learned breaks no promise.

    A pair that is refused is never measured. Therefore rates that are not measured yet are taken to be higher than
    predicted, so that pairs of which the prediction may be too low are tried once.

    :param table: rates as predicted before any measurement.
    :param threshold: least rate of each of two jobs that may share nodes.
    :param margin: share by which unmeasured rates are taken to be higher.
    """

    name = "measured"
    monotone = False  # a job may find no halves later, because a pair has been refused since

    def __init__(self, table: RateTable, threshold: float = THRESHOLD, margin: float = MARGIN) -> None:
        hoped = table.rates.copy()
        hoped[:, : len(table.programs)] *= 1 + margin
        super().__init__(RateTable(table.programs, hoped), threshold)

    def state(self, cluster: Cluster) -> Occupancy:
        """Return the state of the cluster without jobs and measurements.

        :raises ColocationError: if a node has not two slots.
        """
        return _Learning(cluster, self.table, self.threshold)


class Measurements(Observer):
    """An observer of one run that measures neighbours when one of them ends, as a shutter on each node does.

    :param rate: function that returns the measured rate of a program beside another one, by their names.
    :param window: least seconds for which two jobs run beside each other before they count as measured.
    :ivar learned: the run's state, with ``table``, the rates known by now, and ``seen``, the cells measured by now;
        None before the first start.
    """

    def __init__(self, rate: Rate, window: int = WINDOW) -> None:
        self._rate, self._window = rate, window
        self.learned: _Learning | None = None
        self._placed: dict[int, tuple[Job, Placement, int]] = {}
        self._owner: NDArray[np.int64] | None = None

    def started(self, job: int, situation: Situation) -> None:
        """Note the halves on which the job runs, and since when.

        :raises ColocationError: if the run has another allocator than `Measured`.
        """
        if not isinstance(situation.state, _Learning):
            raise ColocationError(f"expecting the allocator {Measured.name}, got {situation.allocator.name}")
        self.learned = situation.state
        asked, placement = situation.state.running[job]
        self._placed[job] = asked, placement, situation.now
        self._own(situation.state, placement, job)

    def ended(self, job: int, situation: Situation) -> None:
        """Measure the job and each job that ran beside it for long enough."""
        asked, placement, since = self._placed.pop(job)
        owner = self._own(situation.state, placement, -1)
        slots = situation.state.cluster.slots_of(placement.nodes, placement.slots)
        for other in np.unique(owner[slots ^ (HALVES - 1)]).tolist():
            if other >= 0 and situation.now - max(since, self._placed[other][2]) >= self._window:
                self._measure(asked, self._placed[other][0])

    def _own(self, state: Occupancy, placement: Placement, job: int) -> NDArray[np.int64]:
        if self._owner is None:
            self._owner = np.full(state.cluster.num_slots, -1, dtype=np.int64)
        self._owner[state.cluster.slots_of(placement.nodes, placement.slots)] = job
        return self._owner

    def _measure(self, one: Job, other: Job) -> None:
        state = self.learned
        assert state is not None  # both jobs have started
        names, codes = state.table.programs, [state.code_of(job) - 1 for job in (one, other)]
        if min(codes) < 0:
            return
        for program, beside in (codes, codes[::-1]):
            if not state.seen[program, beside]:
                state.learn(program, beside, self._rate(names[program], names[beside]))
