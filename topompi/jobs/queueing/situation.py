"""What a pass over the queue sees and may do."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..allocation import Allocator, Job, Occupancy, Placement, Requests
from ..cluster import Cluster

__all__ = ["Promise", "Situation"]


class Promise(NamedTuple):
    """A job that waits at the head of the queue starts at this second or before, on these nodes if need be."""

    number: int
    when: int
    placement: Placement | None


class Situation:
    """The time, the nodes in use, running jobs by estimated end, and waiting jobs in the queue's order.

    :param cluster: where jobs run.
    :param allocator: who finds their nodes.
    :param requests: what each job of the workload asks the allocator for.
    :param estimates: seconds that each is estimated to run.
    :param on_start: told of each job that a pass starts, and of its placement.
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
        self.starts = 0  # of jobs, until now
        self.ended: list[int] = []  # jobs, since a pass has last asked
        self.shadow: object = None  # what the last pass with one reservation knew
        self._end_of: dict[int, int] = {}

    def job(self, index: int) -> Job:
        """What an allocator is told of a job."""
        return Job(index, self.sizes[index], self.estimates[index], self.asks[index])

    def find(self, job: Job, state: Occupancy) -> Placement | None:
        """Nodes for a job; where the allocator finds none any more, those promised, if they are still good."""
        found = self.allocator.place(job, state)
        promise = self.promise
        if found is not None or self.allocator.monotone or promise is None or promise.number != job.number:
            return found
        placement = promise.placement
        return placement if placement is not None and self.allocator.admits(placement, state) else None

    def start(self, job: Job, placement: Placement) -> None:
        """A job starts now; the caller takes it out of the queue."""
        self.starts += 1
        self.state.start(job, placement)
        self._end_of[job.number] = self.now + job.estimate
        insort(self.releases, (self.now + job.estimate, job.number))
        if self.promise is not None and self.promise.number == job.number:
            self.promise = None
        self._on_start(job.number, placement)

    def end(self, index: int) -> None:
        """A running job has ended."""
        self.ended.append(index)
        self.state.end(index)
        del self.releases[bisect_left(self.releases, (self._end_of.pop(index), index))]

    def frees(self, index: int) -> int:
        """Number of nodes that become free when a running job ends: closed ones do not."""
        if not self.state.any_closed or not self.allocator.names_nodes:
            return self.sizes[index]
        return int((~self.state.closed[self.state.running[index][1].nodes]).sum())

    def releases_by_time(self) -> Iterator[tuple[int, list[int]]]:
        """Estimated ends, ascending, and the jobs of each; an estimate of 0 holds nodes until the next second."""
        at, count = 0, len(self.releases)
        while at < count:
            when, jobs = max(self.releases[at][0], self.now + 1), []
            while at < count and max(self.releases[at][0], self.now + 1) == when:
                jobs.append(self.releases[at][1])
                at += 1
            yield when, jobs
