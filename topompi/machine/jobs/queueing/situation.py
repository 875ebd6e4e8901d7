"""The state of a simulation that a pass over the queue reads and changes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..allocation import Allocator, Job, Occupancy, Placement, Requests
from ..cluster import Cluster

__all__ = ["Promise", "Situation"]


class Promise(NamedTuple):
    """A promise to the queue's head, job ``number``, that it starts at second ``when`` or earlier.

    If the allocator finds no nodes for the job then, the job starts on ``placement``, unless that is None.
    """

    number: int
    when: int
    placement: Placement | None


class Situation:
    """The state for a pass: the time, nodes in use, running jobs by estimated end, waiting jobs in the queue's order.

    :param cluster: the cluster that jobs run on.
    :param allocator: the allocator that finds their nodes.
    :param requests: sizes and further requests of all jobs of the workload.
    :param estimates: estimated run time of each job, in seconds.
    :param on_start: function that is called with each job that a pass starts, and with its nodes.
    """

    def __init__(
        self,
        cluster: Cluster,
        allocator: Allocator,
        requests: Requests,
        estimates: list[int],
        on_start: Callable[[int, Placement], None],
    ) -> None:
        self.allocator, self.state = allocator, allocator.state(cluster)
        self.sizes: list[int] = requests.sizes.tolist()
        self.kinds = self.sizes if requests.kinds is requests.sizes else requests.kinds.tolist()
        self.asks, self.estimates, self._on_start = requests.asks_of_jobs(), estimates, on_start
        self.now = 0
        self.releases: list[tuple[int, int]] = []  # (estimated end, job), ascending
        self.waiting: list[int] = []
        self.promise: Promise | None = None
        self.starts = 0  # number of starts so far
        self.arrived: list[int] = []  # jobs that arrived since the last pass
        self.ended: list[int] = []  # jobs that ended since the last pass of EASY backfilling
        self.shadow: object = None  # the head's reservation in the last pass of EASY backfilling
        self._end_of: dict[int, int] = {}

    def job(self, index: int) -> Job:
        """Return a job in the form that allocators take."""
        return Job(index, self.sizes[index], self.estimates[index], self.asks[index])

    def find(self, job: Job, state: Occupancy) -> Placement | None:
        """Return the nodes that the allocator finds for a job, else nodes promised to the job that are still free.

        The result is None if there are neither.
        """
        found = self.allocator.place(job, state)
        promise = self.promise
        if found is not None or self.allocator.monotone or promise is None or promise.number != job.number:
            return found
        placement = promise.placement
        return placement if placement is not None and self.allocator.admits(placement, state) else None

    def start(self, job: Job, placement: Placement) -> None:
        """Start a job now; the caller removes it from the queue."""
        self.starts += 1
        self.resume(job, placement, self.now + job.estimate)
        if self.promise is not None and self.promise.number == job.number:
            self.promise = None
        self._on_start(job.number, placement)

    def resume(self, job: Job, placement: Placement, end: int) -> None:
        """Record a job that runs already.

        :param job: the job.
        :param placement: its nodes.
        :param end: estimated end, in seconds.
        """
        self.state.start(job, placement)
        self._end_of[job.number] = end
        insort(self.releases, (end, job.number))

    def end(self, index: int) -> None:
        """Record the end of a running job."""
        self.ended.append(index)
        self.state.end(index)
        self._forget_end(index)

    def expect_end(self, index: int, end: int) -> None:
        """Change the estimated end of a running job.

        :param index: number of the job.
        :param end: estimated end, in seconds.
        """
        if self._end_of[index] != end:
            self._forget_end(index)
            self._end_of[index] = end
            insort(self.releases, (end, index))

    def _forget_end(self, index: int) -> None:
        del self.releases[bisect_left(self.releases, (self._end_of.pop(index), index))]

    def frees(self, index: int) -> int:
        """Return the number of nodes that become free when a running job ends; closed nodes are not counted."""
        if not self.state.any_closed or not self.allocator.names_nodes:
            return self.sizes[index]
        return int((~self.state.closed[self.state.running[index][1].nodes]).sum())

    def releases_by_time(self) -> Iterator[tuple[int, list[int]]]:
        """Yield the estimated ends of running jobs, ascending, with the jobs of each.

        A job that has run longer than its estimate counts as ending in the next second.
        """
        at, count = 0, len(self.releases)
        while at < count:
            when, jobs = max(self.releases[at][0], self.now + 1), []
            while at < count and max(self.releases[at][0], self.now + 1) == when:
                jobs.append(self.releases[at][1])
                at += 1
            yield when, jobs
