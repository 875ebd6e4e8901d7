"""The event loop, for any queue, allocator, model of run times and observers.

Within one second all ends of jobs come first, then changes of nodes' states, then all arrivals, then one pass over the
queue, which starts jobs; a job of 0 seconds ends before a further pass in the same second.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Sequence
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from .allocation import Allocator, Placement, requests_of
from .cluster import Cluster
from .nodestates import DOWN, UP, Capable, NodeStates
from .observers import Observer
from .queueing import Order, Queue, Situation, find_order
from .speed import Speed
from .workload import Workload

__all__ = ["Loop"]

EVENTS_A_REPORT = 2**12
NEVER = 2**62  # seconds; a time that no event has, because logs end before it
Integers = NDArray[np.int64]


class Loop:
    """One simulation.

    :param workload: the jobs, all of which fit the cluster.
    :param cluster: the cluster.
    :param queue: the queue discipline.
    :param allocator: the policy of allocation.
    :param speed: the model of run times.
    :param observers: objects whose methods are called at each start and end of a job, and after each pass over the
        queue.
    :param node_states: changes of nodes between up, drained and down; None if all nodes stay up.
    """

    def __init__(
        self,
        workload: Workload,
        cluster: Cluster,
        queue: Queue,
        allocator: Allocator,
        speed: Speed,
        observers: Sequence[Observer],
        node_states: NodeStates | None = None,
    ) -> None:
        self.workload, self.queue, self.speed, self.observers = workload, queue, speed, observers
        self.order: Order = find_order(queue.order)
        self.submit: list[int] = [*workload.submit.tolist(), NEVER]
        self.estimates: list[int] = speed.estimates(workload).tolist()
        self._limits: list[int] = np.where(workload.request > 0, workload.request, NEVER).tolist()
        asked = requests_of(workload, cluster, allocator)
        self.situation = Situation(cluster, allocator, asked, self.estimates, self._started)
        self.start, self.start_pass, self.end = ([-1] * len(workload) for _ in range(3))
        self._users: list[int] = workload.user.tolist()
        self._passes = 0
        self._changes = [*(node_states.changes if node_states is not None else ()), (NEVER, UP, asked.sizes[:0])]
        self._capable, self._put_off = Capable(allocator, cluster), list[int]()
        self.lost: list[int] = []  # jobs that ended because one of their nodes went down
        self.nodes: list[NDArray[np.integer]] = [np.empty(0, dtype=np.int32)] * len(workload)
        self.slots: dict[int, NDArray[np.integer]] = {}  # jobs that hold less than whole nodes
        self._durations: list[int] = speed.durations(workload).tolist()
        self._ends: list[tuple[int, int]] = []  # heap of (second, job); entries that differ from ``end`` are outdated
        self._work = _Work() if not speed.steady else None
        self._rank: list[int] = []
        if self.order.fixed:
            keys = self.order.keys(workload, 0)
            rank = np.empty(len(workload), dtype=np.int64)
            rank[np.argsort(keys, kind="stable")] = np.arange(len(workload))
            self._rank = rank.tolist()

    def run(self, progress: Callable[[int], None] | None) -> None:
        """Run until no job can start any more; ``progress`` is called now and then with the number of ended jobs."""
        arrived, ended, changed, total = 0, 0, 0, len(self.workload)
        situation, end, submit = self.situation, self.end, self.submit
        next_change = self._changes[0][0]
        while ended < total:
            while self._ends and end[self._ends[0][1]] != self._ends[0][0]:
                heappop(self._ends)
            now = min(submit[arrived], next_change, self._ends[0][0] if self._ends else NEVER)
            if now == NEVER:  # too few nodes are up for the waiting jobs
                break
            situation.now = now
            for index in self._pop_ended(now):
                self._ended(index)
                ended += 1
            while next_change == now:
                ended += self._change_nodes(*self._changes[changed][1:])
                changed += 1
                next_change = self._changes[changed][0]
            while submit[arrived] == now:
                self._enqueue(arrived)
                arrived += 1
            self._pass()
            self._passes += 1
            if progress is not None and self._passes % EVENTS_A_REPORT == 0:
                progress(ended)

    def _pop_ended(self, now: int) -> list[int]:
        found: list[int] = []
        while self._ends and self._ends[0][0] == now:
            _, index = heappop(self._ends)
            if self.end[index] == now and (not found or found[-1] != index):
                found.append(index)
        return found

    def _pass(self) -> None:
        situation = self.situation
        if not self.order.fixed and len(situation.waiting) > 1:
            jobs = np.sort(np.array(situation.waiting))
            keys = self.order.keys(self.workload.select(jobs), situation.now)
            situation.waiting[:] = jobs[np.argsort(keys, kind="stable")].tolist()
        self.queue.start_jobs(situation)
        situation.arrived.clear()
        if self._work is not None:
            self._change_rates(self._work)
        for observer in self.observers:
            observer.passed(situation)

    def _change_nodes(self, state: str, nodes: NDArray[np.integer]) -> int:
        """Set nodes up, drained or down; return the number of jobs that end because of it."""
        situation, lost = self.situation, list[int]()
        if state == UP:
            situation.state.reopen(nodes)
        else:
            situation.state.close(nodes)
        if state == DOWN:
            held = situation.state.running.items()
            lost = [index for index, (_, placement) in held if np.isin(placement.nodes, nodes).any()]
        for index in lost:
            self.end[index] = situation.now
            self._ended(index)
        self.lost += lost
        situation.shadow = situation.promise = None  # they were computed with the former nodes
        self._capable.change(situation.state)
        again = sorted((*situation.waiting, *self._put_off))
        situation.waiting.clear()
        situation.arrived.clear()
        self._put_off.clear()
        for index in again:
            self._enqueue(index)
        return len(lost)

    def _enqueue(self, index: int) -> None:
        if self._capable.limited and not self._capable.holds(self.situation.job(index), self.situation.kinds[index]):
            self._put_off.append(index)
            return
        self.situation.arrived.append(index)
        if self._rank:
            insort(self.situation.waiting, index, key=self._rank.__getitem__)
        else:
            self.situation.waiting.append(index)

    def _started(self, index: int, placement: Placement) -> None:
        now = self.situation.now
        self.start[index], self.start_pass[index], self.nodes[index] = now, self._passes, placement.nodes
        if placement.slots is not None:
            self.slots[index] = placement.slots
        self._ends_at(index, now + self._durations[index])
        if self._work is not None:
            self._work.begin(index, now, self._durations[index])
        for observer in self.observers:
            observer.started(index, self.situation)

    def _ended(self, index: int) -> None:
        now = self.situation.now
        self.situation.end(index)
        if self._work is not None:
            self._work.left.pop(index)
        used = (now - self.start[index]) * self.situation.sizes[index]
        self.order.ended(self._users[index], used, now)
        for observer in self.observers:
            observer.ended(index, self.situation)

    def _ends_at(self, index: int, when: int) -> None:
        if self.end[index] != when:
            self.end[index] = when
            heappush(self._ends, (when, index))

    def _change_rates(self, work: _Work) -> None:
        now = self.situation.now
        for index, when in work.ends(now, self.speed.rates(self.situation.state)):
            self._ends_at(index, min(when, self.start[index] + self._limits[index]))


class _Work:
    """For each running job, the second of the last change of its rate, the work then left in seconds, and the rate."""

    def __init__(self) -> None:
        self.left: dict[int, tuple[float, int, float]] = {}

    def begin(self, index: int, now: int, seconds: int) -> None:
        """Record the start of a job at rate 1.

        :param index: position of the job in the workload.
        :param now: second of the start.
        :param seconds: work of the job, in seconds at rate 1.
        """
        self.left[index] = seconds, now, 1.0

    def ends(self, now: int, rates: dict[int, float]) -> list[tuple[int, int]]:
        """Set the rates of jobs; return each job whose rate changes, with its new end in whole seconds, rounded up."""
        changed = []
        for index, (seconds, since, before) in self.left.items():
            rate = rates.get(index, 1.0)
            if rate != before:
                seconds = max(0.0, seconds - before * (now - since))
                self.left[index] = seconds, now, rate
                changed.append((index, now + math.ceil(round(seconds / rate, 6))))
        return changed
