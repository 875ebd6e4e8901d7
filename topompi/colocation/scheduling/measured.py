"""A scheduler that learns the rates of pairs from measurements, and separates the programs of bad pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...jobs import Observer
from ...jobs.allocation import Job, Occupancy, Placement
from ...jobs.queueing import Situation
from .allocators import Matched
from .occupancy import HALVES, as_halves
from .preferences import THRESHOLD, favoured
from .table import RateTable

__all__ = ["Measured", "Measurements"]

MARGIN = 0.2  # share by which unmeasured rates are taken to be higher than predicted
WINDOW = 60  # seconds that two jobs run beside each other before their rates count as measured
Rate = Callable[[str, str], float]


class Measured(Matched):
    """`Matched` whose table changes as `Measurements` brings measured rates in.

    A pair that turns out to be slow is refused from then on. A job that was promised a start keeps the halves that were
    found then, even if its neighbours are refused by now, so that what was learned breaks no promise.

    A pair that is refused is never measured. Therefore rates that are not measured yet are taken to be higher than
    predicted, so that pairs of which the prediction may be too low are tried once.

    :param table: rates as predicted before any measurement; it stays as it is.
    :param threshold: least rate of each of two jobs that may share nodes.
    :param margin: share by which unmeasured rates are taken to be higher.
    """

    name = "measured"
    monotone = False  # a job may find no halves later, because a pair has been refused since

    def __init__(self, table: RateTable, threshold: float = THRESHOLD, margin: float = MARGIN) -> None:
        hoped = table.rates.copy()
        hoped[:, : len(table.programs)] *= 1 + margin
        super().__init__(RateTable(table.programs, hoped), threshold)
        self.seen = np.zeros((len(table.programs),) * 2, dtype=bool)  # cells that have been measured

    def take(self, program: int, beside: int, rate: float) -> None:
        """Put a measured rate into the table.

        :param program: number of the program.
        :param beside: number of the program on the other half.
        :param rate: measured rate.
        """
        self.table.rates[program, beside], self.seen[program, beside] = rate, True
        self.preferences = favoured(self.table, self.threshold)

    def neighbour_tables(self, workload: object) -> None:
        """Return None, because the loop in C has fixed tables."""
        return


class Measurements(Observer):
    """An observer that measures the rates of neighbours, as a shutter on each node does, when one of them ends.

    :param allocator: the allocator that learns.
    :param rate: function that returns the measured rate of a program beside another one, by their names.
    :param window: least seconds for which two jobs run beside each other before they count as measured.
    """

    def __init__(self, allocator: Measured, rate: Rate, window: int = WINDOW) -> None:
        self.allocator, self._rate, self._window = allocator, rate, window
        self._placed: dict[int, tuple[Job, Placement, int]] = {}
        self._owner: NDArray[np.int64] | None = None

    def started(self, job: int, situation: Situation) -> None:
        """Note the halves on which the job runs, and since when."""
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
                self._measure(situation.state, asked, self._placed[other][0])

    def _own(self, state: Occupancy, placement: Placement, job: int) -> NDArray[np.int64]:
        if self._owner is None:
            self._owner = np.full(state.cluster.num_slots, -1, dtype=np.int64)
        self._owner[state.cluster.slots_of(placement.nodes, placement.slots)] = job
        return self._owner

    def _measure(self, state: Occupancy, one: Job, other: Job) -> None:
        names, codes = self.allocator.table.programs, [as_halves(state).code_of(job) - 1 for job in (one, other)]
        if min(codes) < 0:
            return
        for program, beside in (codes, codes[::-1]):
            if not self.allocator.seen[program, beside]:
                self.allocator.take(program, beside, self._rate(names[program], names[beside]))
