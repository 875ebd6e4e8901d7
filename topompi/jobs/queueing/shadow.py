"""EASY: one reservation, for the head of the queue; its time is called the shadow time (D. Lifka, JSSPP 1995)."""

from __future__ import annotations

from bisect import bisect_left

from ..allocation import Job, Occupancy, Placement
from .situation import Promise, Situation

__all__ = ["start_behind_head", "start_heads"]


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
    waiting, sizes, kinds, state = situation.waiting, situation.sizes, situation.kinds, situation.state
    shadow, started = _shadow_of(situation), set[int]()
    refused = shadow.refused
    for index in waiting[1:]:
        if kinds[index] in refused or sizes[index] > state.free:
            continue
        placement = shadow.admit(job := situation.job(index))
        if placement is not None:
            shadow.start(job, placement)
            started.add(index)
    if started:
        waiting[:] = [index for index in waiting if index not in started]


def _shadow_of(situation: Situation) -> _Shadow:
    """The shadow of the head: that of the last pass where it still holds."""
    head, known = situation.job(situation.waiting[0]), situation.shadow
    if not isinstance(known, _Shadow) or known.head != head or not known.holds():
        situation.shadow = known = (_CountedShadow if situation.allocator.by_count else _PlacedShadow)(situation, head)
    situation.ended.clear()
    return known


class _Shadow:
    """What jobs behind the head may use; those that start there leave the head's time as it is.

    ``refused`` has the kinds of jobs for which no nodes are found now.
    """

    def __init__(self, situation: Situation, head: Job) -> None:
        self.situation, self.head, self.starts = situation, head, situation.starts
        self.refused: set[int] = set()

    def holds(self) -> bool:
        """Whether it is the head's shadow still, after jobs may have ended and arrived."""
        return self.starts == self.situation.starts and not self.situation.ended

    def admit(self, job: Job) -> Placement | None:
        """Nodes for a job that can start now without delaying the head; None for none."""
        raise NotImplementedError

    def start(self, job: Job, placement: Placement) -> None:
        """The job starts there."""
        self.situation.start(job, placement)
        self.starts = self.situation.starts
        self.refused.clear()


class _CountedShadow(_Shadow):
    """Where a job fits wherever enough nodes are free: at the shadow time some are left over beside the head's."""

    def __init__(self, situation: Situation, head: Job) -> None:
        super().__init__(situation, head)
        self.when: int | None = None
        self.extra = 0

    def _find(self) -> int:
        free, when = self.situation.state.free, self.situation.now
        for when, jobs in self.situation.releases_by_time():  # noqa: B007  (the last one counts)
            free += sum(self.situation.frees(job) for job in jobs)
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


class _PlacedShadow(_Shadow):
    """Where it matters which nodes are free: the state at the shadow time, tried with each job that would still run.

    ``delaying`` has the kinds of jobs whose nodes the head needs then.
    """

    def __init__(self, situation: Situation, head: Job) -> None:
        super().__init__(situation, head)
        self.later: Occupancy | None = None
        self.when = 0
        self.delaying: set[int] = set()

    def holds(self) -> bool:
        """Whether it holds, moved to an earlier time where jobs that have ended make room for the head there."""
        situation = self.situation
        if self.later is None or not situation.ended:
            return super().holds()
        overdue = bool(situation.releases) and situation.releases[0][0] <= situation.now  # of no estimate
        if self.starts != situation.starts or not situation.allocator.monotone or overdue:
            return False
        for index in situation.ended:
            if index in self.later.running:
                self.later.end(index)
        self.refused.clear()
        self.delaying.clear()
        self._move_back(self.later)
        return True

    def _move_back(self, later: Occupancy) -> None:
        """Go from release to release towards now while the head fits; before the first one it does not."""
        releases, running = self.situation.releases, self.situation.state.running
        while first := bisect_left(releases, (self.when, -1)):
            group = [job for _, job in releases[first : bisect_left(releases, (self.when + 1, -1))]]
            for job in group:
                later.start(*running[job])
            if not self._fits(later):
                for job in group:
                    later.end(job)
                break
            self.when = releases[first - 1][0]
        self.situation.promise = Promise(self.head.number, self.when, None)

    def _find(self) -> Occupancy:
        state = self.situation.state
        later = state.preview() if self.situation.allocator.monotone else state.copy()
        for when, jobs in self.situation.releases_by_time():
            for index in jobs:
                later.end(index)
            self.when = when
            if later.free >= self.head.size and self._fits(later):
                break
        return later

    def _fits(self, later: Occupancy) -> bool:
        """Whether the head finds nodes then; it is promised these where it may not find any again."""
        situation, found = self.situation, None
        if situation.allocator.monotone:
            fits = situation.allocator.feasible(self.head, later)
        else:
            found = situation.find(self.head, later)
            fits = found is not None
        if fits:
            situation.promise = Promise(self.head.number, self.when, found)
        return fits

    def admit(self, job: Job) -> Placement | None:
        """The allocator's nodes, where the head still finds nodes at the shadow time."""
        kind = self.situation.kinds[job.number]
        if self.later is not None and kind in self.delaying and self.situation.now + job.estimate > self.when:
            return None
        placement = self.situation.find(job, self.situation.state)
        if placement is None:
            self.refused.add(kind)
            return None
        if self.later is None:
            self.later = self._find()
        if self.situation.now + job.estimate <= self.when:
            return placement
        self.later.start(job, placement)
        if self._fits(self.later):
            return placement
        self.later.end(job.number)
        self.delaying.add(kind)
        return None

    def start(self, job: Job, placement: Placement) -> None:
        """The job starts there; others find other nodes now."""
        super().start(job, placement)
        self.delaying.clear()
