"""EASY: one reservation, for the head of the queue; its time is called the shadow time (D. Lifka, JSSPP 1995)."""

from __future__ import annotations

from typing import Protocol

from ..allocation import Job, Placement, State
from .situation import Promise, Situation

__all__ = ["start_behind_head", "start_heads"]


class _Shadow(Protocol):
    def admit(self, job: Job) -> Placement | None:
        """Nodes for a job that starts now without delaying the head; None for none."""
        ...


def start_heads(situation: Situation) -> bool:
    """Start jobs in their turn until one does not fit; whether one is left."""
    waiting, started = situation.waiting, 0
    for index in waiting:
        job = situation.job(index)
        placement = situation.find(job, situation.state)
        if placement is None:
            break
        situation.start(job, placement)
        started += 1
    del waiting[:started]
    return bool(waiting)


def start_behind_head(situation: Situation) -> None:
    """Start the jobs behind the head that do not delay it, each on the nodes that the allocator finds first."""
    waiting = situation.waiting
    head = situation.job(waiting[0])
    shadow: _Shadow = (_CountedShadow if situation.allocator.by_count else _PlacedShadow)(situation, head)
    kept = waiting[:1]
    for index in waiting[1:]:
        if situation.sizes[index] > situation.state.free:
            kept.append(index)
            continue
        job = situation.job(index)
        placement = shadow.admit(job)
        if placement is None:
            kept.append(index)
        else:
            situation.start(job, placement)
    waiting[:] = kept


class _CountedShadow:
    """Where a job fits wherever enough nodes are free: at the shadow time some are left over beside the head's."""

    def __init__(self, situation: Situation, head: Job) -> None:
        self.situation, self.head = situation, head
        self.when: int | None = None
        self.extra = 0

    def _find(self) -> int:
        free, when = self.situation.state.free, self.situation.now
        for when, jobs in self.situation.releases_by_time():  # noqa: B007  (the last one counts)
            free += sum(self.situation.sizes[job] for job in jobs)
            if free >= self.head.size:
                break
        self.extra = free - self.head.size
        self.situation.promise = Promise(self.head.number, when, None)
        return when

    def admit(self, job: Job) -> Placement | None:
        """Nodes for a job that ends before the shadow time, or leaves enough."""
        if self.when is None:
            self.when = self._find()
        if self.situation.now + job.estimate > self.when:
            if job.size > self.extra:
                return None
            self.extra -= job.size
        return self.situation.find(job, self.situation.state)


class _PlacedShadow:
    """Where it matters which nodes are free: the state at the shadow time, tried with each job that would still run."""

    def __init__(self, situation: Situation, head: Job) -> None:
        self.situation, self.head = situation, head
        self.later: State | None = None
        self.when = 0

    def _find(self) -> State:
        later, found = self.situation.state.copy(), None
        for when, jobs in self.situation.releases_by_time():
            for index in jobs:
                later.end(index)
            found = self.situation.find(self.head, later) if later.free >= self.head.size else None
            if found is not None:
                self.when = when
                break
        self.situation.promise = Promise(self.head.number, self.when, found)
        return later

    def admit(self, job: Job) -> Placement | None:
        """The allocator's nodes, where the head still finds nodes at the shadow time."""
        placement = self.situation.find(job, self.situation.state)
        if placement is None:
            return None
        if self.later is None:
            self.later = self._find()
        if self.situation.now + job.estimate <= self.when:
            return placement
        self.later.start(job, placement)
        found = self.situation.find(self.head, self.later)
        if found is None:
            self.later.end(job.number)
            return None
        self.situation.promise = Promise(self.head.number, self.when, found)
        return placement
