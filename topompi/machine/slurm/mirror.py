"""The simulator's situation, kept equal to a running Slurm from one snapshot to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..jobs import Cluster
from ..jobs.allocation import Allocator, Job, Occupancy, Placement
from ..jobs.allocation.requests import Requests
from ..jobs.nodestates import Capable
from ..jobs.queueing import Situation

__all__ = ["HeldNodes", "Mirror", "Request"]

Nodes = NDArray[np.integer]
MOST_OLD = 10_000  # maximum number of entries of ended jobs; then the situation is built anew
_AMONG = "among"


class Request(NamedTuple):
    """The request of a waiting job.

    :param id: name of the job.
    :param size: number of nodes.
    :param seconds: time limit in seconds.
    :param among: numbers of the nodes that it may run on, if Slurm itself places it; None if the allocator does.
    """

    id: str
    size: int
    seconds: int
    among: tuple[int, ...] | None = None


class HeldNodes(NamedTuple):
    """Nodes that a job holds.

    :param request: the job's request.
    :param nodes: ascending numbers of its nodes, none of which another job holds.
    :param end: estimated end, in seconds since 1970.
    :param ours: whether the bridge placed it.
    """

    request: Request
    nodes: tuple[int, ...]
    end: int
    ours: bool


class Beside(Allocator):
    """An allocator, and beside it jobs that Slurm places itself: these take the first free nodes that they may use.

    :param inner: the allocator.
    """

    def __init__(self, inner: Allocator) -> None:
        self.inner = inner
        self.name, self.monotone, self.holds_more = inner.name, inner.monotone, inner.holds_more

    def state(self, cluster: Cluster) -> Occupancy:
        """Return the state of the cluster without jobs."""
        return self.inner.state(cluster)

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        """Return nodes on which a job can start now, or None if it has to wait."""
        among = job.asks.get(_AMONG)
        if among is None:
            return self.inner.place(job, state)
        free = among[state.busy[among] == 0][: job.size]
        return self.inner.adopt(job, free, state.cluster) if len(free) == job.size else None

    def adopt(self, job: Job, nodes: Nodes, cluster: Cluster, slots: Nodes | None = None) -> Placement:
        """Return the placement of a job that runs already, by the inner allocator."""
        return self.inner.adopt(job, nodes, cluster, slots)

    def resume(self, job: Job, nodes: Nodes, cluster: Cluster) -> Placement:
        """Return the placement of a job that the inner allocator placed on these nodes."""
        return self.inner.resume(job, nodes, cluster)

    def admits(self, placement: Placement, state: Occupancy) -> bool:
        """Return whether a job may start now on nodes that were found for it in an earlier state."""
        return self.inner.admits(placement, state)


class Mirror:
    """A situation of the simulator that follows a running Slurm.

    :param cluster: the machine.
    :param allocator: the allocator of its jobs.
    :ivar started: requests that the present pass has started, with the numbers of their nodes, in order.
    """

    def __init__(self, cluster: Cluster, allocator: Allocator) -> None:
        self.cluster, self.allocator = cluster, Beside(allocator)
        self.started: list[tuple[Request, tuple[int, ...]]] = []
        self.capable = Capable(self.allocator, cluster)
        self._empty = Capable(self.allocator, cluster)
        self._begin()

    def _begin(self) -> None:
        none = np.empty(0, dtype=np.int64)
        self.requests: list[Request] = []
        self._number: dict[Request, int] = {}
        self._held: dict[int, HeldNodes] = {}
        self.situation = Situation(self.cluster, self.allocator, Requests(none, none.copy()), [], self._start)

    def _start(self, index: int, placement: Placement) -> None:
        request = self.requests[index]
        nodes = tuple(sorted(placement.used(request.size).tolist()))
        self.started.append((request, nodes))
        self._held[index] = HeldNodes(request, nodes, self.situation.now + request.seconds, request.among is None)

    def number(self, request: Request) -> int:
        """Return the situation's number of a job with this request; a new one if it has none yet."""
        known = self._number.get(request)
        if known is not None:
            return known
        number = self._number[request] = len(self.requests)
        self.requests.append(request)
        situation = self.situation
        situation.sizes.append(request.size)
        situation.estimates.append(request.seconds)
        situation.kinds.append(request.size if request.among is None else -1 - number)
        asks: Mapping[str, Any] = {} if request.among is None else {_AMONG: np.array(request.among, dtype=np.int64)}
        situation.asks.append(asks)
        return number

    def wait(self, queue: Sequence[int]) -> None:
        """Set the numbers of the waiting jobs, in their order.

        If Slurm itself places one of them, it does not suffice to count free nodes.
        """
        self.situation.waiting[:] = queue
        own = (self.requests[number].among is None for number in queue)
        self.allocator.by_count = self.allocator.inner.by_count and all(own)

    def can_ever_run(self, number: int) -> bool:
        """Return whether the allocator finds nodes for a job on the empty machine."""
        return self._empty.holds(self.situation.job(number), self.situation.kinds[number])

    def can_run(self, number: int) -> bool:
        """Return whether the allocator would find nodes among those that are not closed, if no other job ran."""
        return not self.capable.limited or self.capable.holds(self.situation.job(number), self.situation.kinds[number])

    def follow(self, now: int, held: Iterable[HeldNodes], closed: NDArray[np.bool_]) -> None:
        """Make the situation equal to Slurm's state; only differences to the state before cost time.

        :param now: seconds since 1970.
        :param held: the jobs that hold nodes.
        :param closed: whether each node takes no job.
        """
        if len(self.requests) > MOST_OLD + 2 * len(self._held):
            self._begin()
        situation, wanted = self.situation, {self.number(one.request): one for one in held}
        state, self.started = situation.state, []
        situation.now, situation.promise, situation.shadow = now, None, None
        for index in list(state.running):
            one = wanted.get(index)
            if one is None or index not in self._held or self._held[index].nodes != one.nodes:
                situation.end(index)
        if (closed != state.closed).any():
            state.reopen(np.flatnonzero(state.closed & ~closed))
            state.close(np.flatnonzero(closed & ~state.closed))
            self.capable.change(state)
        for index, one in wanted.items():
            if index in state.running:
                situation.expect_end(index, one.end)
                continue
            job = situation.job(index)
            place = self.allocator.resume if one.ours else self.allocator.adopt
            situation.resume(job, place(job, np.array(one.nodes), self.cluster), one.end)
        self._held = wanted
        situation.ended.clear()
