"""Queues with several reservations: every pass makes a new plan of future starts, job by job in the queue's order.

Conservative backfilling is the plan with a reservation for every waiting job (Mu'alem and Feitelson, IEEE TPDS 12(6),
2001).
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import NamedTuple, Protocol

from ..allocation import Job, Placement
from .situation import Promise, Situation

__all__ = ["plan"]


class _Slot(NamedTuple):
    when: int
    placement: Placement | None


class _Plan(Protocol):
    def earliest(self, job: Job, only_now: bool) -> _Slot | None:
        """Return when the job can start at the earliest without delaying a job with a reservation, and on which nodes.

        The result is None if it can never start, or if ``only_now`` is set and it cannot start now.
        """
        ...

    def reserve(self, job: Job, slot: _Slot) -> None:
        """Reserve nodes for a job from the start that `earliest` has found until its estimated end."""
        ...


def plan(situation: Situation, depth: int | None) -> None:
    """Start the jobs that can start now, and reserve a later start for other jobs in the order of the queue.

    :param situation: the state of the simulation.
    :param depth: number of waiting jobs, from the first that cannot start now, that get a reservation; None for all.
    """
    waiting, kept, blocked = situation.waiting, list[int](), 0
    last = _last_that_fits(situation)
    if last < 0:
        return
    made: _Plan = (_CountedPlan if situation.allocator.by_count else _PlacedPlan)(situation)
    least = list(accumulate((situation.sizes[index] for index in waiting[last::-1]), min))[::-1]
    for place, index in enumerate(waiting[: last + 1]):
        if blocked and least[place] > situation.state.free:
            kept += waiting[place : last + 1]
            break
        job = situation.job(index)
        has_reservation = depth is None or blocked < depth
        slot = made.earliest(job, only_now=not has_reservation)
        if slot is not None and slot.when == situation.now:
            placement = slot.placement or situation.find(job, situation.state)
            assert placement is not None  # an earliest time of now means that enough nodes are free
            made.reserve(job, slot)
            situation.start(job, placement)
            continue
        kept.append(index)
        blocked += 1
        if slot is not None and has_reservation:
            if blocked == 1:
                situation.promise = Promise(index, slot.when, slot.placement)
            made.reserve(job, slot)
    waiting[: last + 1] = kept


def _last_that_fits(situation: Situation) -> int:
    """Return the position of the last waiting job that could start now; -1 if there is none.

    A plan may end there, because no job behind this one can start in the present pass.
    """
    for place in range(len(situation.waiting) - 1, -1, -1):
        index = situation.waiting[place]
        if situation.sizes[index] > situation.state.free:
            continue
        if situation.allocator.by_count or situation.find(situation.job(index), situation.state) is not None:
            return place
    return -1


class _CountedPlan:
    """A plan with numbers of free nodes: ``free[i]`` from second ``times[i]`` to ``times[i + 1]``."""

    def __init__(self, situation: Situation) -> None:
        self.times, self.free = [situation.now], [situation.state.free]
        for when, jobs in situation.releases_by_time():
            self.times.append(when)
            self.free.append(self.free[-1] + sum(situation.frees(job) for job in jobs))

    def earliest(self, job: Job, only_now: bool) -> _Slot | None:
        """Return the first time from which enough nodes are free during the job's whole estimated run time.

        The result is None if ``only_now`` is set and this time is later than now.
        """
        first, length = 0, max(job.estimate, 1)
        for at, free in enumerate(self.free):
            if at > first and self.times[at] >= self.times[first] + length:
                break
            if free < job.size:
                if only_now:
                    return None
                first = at + 1
        return _Slot(self.times[first], None)

    def reserve(self, job: Job, slot: _Slot) -> None:
        """Subtract the job's nodes from the free nodes during its estimated run time."""
        first = bisect_left(self.times, slot.when)
        end = slot.when + max(job.estimate, 1)
        last = bisect_left(self.times, end)
        if last == len(self.times) or self.times[last] != end:
            self.times.insert(last, end)
            self.free.insert(last, self.free[last - 1])
        for at in range(first, last):
            self.free[at] -= job.size


class _PlacedPlan:
    """A plan with named nodes: a job can start if the allocator finds nodes that no other job holds or has reserved."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.reserved: list[tuple[int, int, Job, Placement]] = []

    def earliest(self, job: Job, only_now: bool) -> _Slot | None:
        """Return the first time, with nodes that no other job has during this job's estimated run time from then on."""
        situation, length = self.situation, max(job.estimate, 1)
        state, now = situation.state.copy(), situation.now
        ends: dict[int, list[int]] = {now: [], **dict(situation.releases_by_time())}
        for _, end, other, _ in self.reserved:
            ends.setdefault(end, []).append(other.number)
        for when in sorted(ends):
            for index in ends[when]:
                if index in state.running:
                    state.end(index)
            for begin, end, other, placement in self.reserved:
                if begin < when + length and end > when and other.number not in state.running:
                    state.start(other, placement)
            found = situation.find(job, state)
            if found is not None:
                return _Slot(when, found)
            if only_now:
                break
        return None

    def reserve(self, job: Job, slot: _Slot) -> None:
        """Reserve the nodes of a job that starts later; for one that starts now, and holds its nodes, do nothing."""
        if slot.when > self.situation.now and slot.placement is not None:
            self.reserved.append((slot.when, slot.when + max(job.estimate, 1), job, slot.placement))
