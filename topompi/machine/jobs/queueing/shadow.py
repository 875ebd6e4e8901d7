"""EASY backfilling (D. Lifka, JSSPP 1995): only the first waiting job (head) has a reserved start, the shadow time."""

from __future__ import annotations

from bisect import bisect_left

from ..allocation import Job, Occupancy, Placement
from .situation import Promise, Situation

__all__ = ["start_behind_head", "start_heads"]


def start_heads(situation: Situation) -> bool:
    """Start jobs in the order of the queue until a job finds no nodes; return whether a job is still waiting."""
    waiting, started = situation.waiting, 0
    for index in waiting:
        if situation.allocator.by_count and situation.sizes[index] > situation.state.free:
            break
        job = situation.job(index)
        placement = situation.find(job, situation.state)
        if placement is None:
            break
        situation.start(job, placement)
        started += 1
    del waiting[:started]
    return bool(waiting)


def start_behind_head(situation: Situation) -> None:
    """Start jobs behind the head of the queue, in the queue's order, if they do not delay the head.

    For each job only the nodes that the allocator finds are tried, although on other nodes it might not delay the head.
    """
    waiting, sizes, kinds, state = situation.waiting, situation.sizes, situation.kinds, situation.state
    shadow, candidates = _shadow_of(situation)
    started, refused, free = set[int](), shadow.refused, state.free
    for index in candidates:
        if sizes[index] > free or kinds[index] in refused or not shadow.may_admit(index):
            continue
        placement = shadow.admit(job := situation.job(index))
        if placement is not None:
            shadow.start(job, placement)
            started.add(index)
            free = state.free
    if started:
        waiting[:] = [index for index in waiting if index not in started]
    shadow.refused_all = not started or situation.allocator.by_count


def _shadow_of(situation: Situation) -> tuple[_Shadow, list[int]]:
    """Return the reservation of the queue's head, that of the last pass if it is still valid, and jobs to be tried.

    A job that has arrived since is the only one to be tried if the last pass refused all others and no job has ended.
    """
    waiting, known, ended = situation.waiting, situation.shadow, bool(situation.ended)
    if isinstance(known, _Shadow) and known.head.number == waiting[0] and known.holds():
        one = known.refused_all and not ended and len(situation.arrived) == 1
        candidates = situation.arrived if one else waiting[1:]
    else:
        kind = _CountedShadow if situation.allocator.by_count else _PlacedShadow
        situation.shadow = known = kind(situation, situation.job(waiting[0]))
        candidates = waiting[1:]
    situation.ended.clear()
    return known, candidates


class _Shadow:
    """The reservation of the queue's head, which admits jobs behind the head that do not delay it.

    ``refused`` is the set of the kinds of jobs (jobs with equal requests) for which the allocator finds no nodes now.
    ``refused_all`` is true if a further try of the jobs of the last pass would start none of them.
    """

    def __init__(self, situation: Situation, head: Job) -> None:
        self.situation, self.head, self.starts = situation, head, situation.starts
        self.refused: set[int] = set()
        self.refused_all = False

    def holds(self) -> bool:
        """Return whether the reservation is still valid after the starts and ends of jobs since the last pass."""
        return self.starts == self.situation.starts and not self.situation.ended

    def may_admit(self, index: int) -> bool:
        """Return false if it is clear, without a search for nodes, that this job cannot start now."""
        return True

    def admit(self, job: Job) -> Placement | None:
        """Return nodes for a job if it can start now without delaying the head, else None."""
        raise NotImplementedError

    def start(self, job: Job, placement: Placement) -> None:
        """Start a job behind the head on these nodes."""
        self.situation.start(job, placement)
        self.starts = self.situation.starts
        self.refused.clear()


class _CountedShadow(_Shadow):
    """The head's reservation for allocators that count nodes: its time, and the number of nodes left over then."""

    def __init__(self, situation: Situation, head: Job) -> None:
        super().__init__(situation, head)
        self.when: int | None = None
        self.extra = 0

    def _find(self) -> int:
        situation, free, when = self.situation, self.situation.state.free, self.situation.now
        for end, job in situation.releases:
            at = max(end, situation.now + 1)  # a job that outlives its estimate counts as ending in the next second
            if at > when and free >= self.head.size:
                break
            free, when = free + situation.frees(job), at
        self.extra = free - self.head.size
        self.situation.promise = Promise(self.head.number, when, None)
        return when

    def may_admit(self, index: int) -> bool:
        """Return whether the job ends before the head starts, or the nodes left over then suffice for it."""
        if self.when is None:
            self.when = self._find()
        situation = self.situation
        return situation.now + situation.estimates[index] <= self.when or situation.sizes[index] <= self.extra

    def admit(self, job: Job) -> Placement | None:
        """Return nodes for a job that `may_admit` has found harmless."""
        if self.when is not None and self.situation.now + job.estimate > self.when:
            self.extra -= job.size
        return self.situation.find(job, self.situation.state)


class _PlacedShadow(_Shadow):
    """The head's reservation for allocators that name nodes: its time, and the state of the cluster then.

    A job that would still run at that time is first started in that state, to see whether the head still finds nodes.

    ``delaying`` is the set of the kinds of jobs that would take nodes that the head needs then.
    """

    def __init__(self, situation: Situation, head: Job) -> None:
        super().__init__(situation, head)
        self.later: Occupancy | None = None
        self.when = 0
        self.delaying: set[int] = set()

    def holds(self) -> bool:
        """Return whether the reservation is still valid.

        If jobs have ended early, move it first to the earliest time at which the head finds nodes.
        """
        situation = self.situation
        if self.later is None or not situation.ended:
            return super().holds()
        overdue = bool(situation.releases) and situation.releases[0][0] <= situation.now  # a job outlived its estimate
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
        """Move the reservation back, from one estimated end to the one before, as long as the head finds nodes."""
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
        """Return whether the head finds nodes in this later state; if so, promise it a start then, on these nodes."""
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
        """Return nodes on which a job can start so that the head still finds nodes at its reserved time, else None."""
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
        """Start the job on these nodes, and forget ``delaying``, because it may be different in the new state."""
        super().start(job, placement)
        self.delaying.clear()
