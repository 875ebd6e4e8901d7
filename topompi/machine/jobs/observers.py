"""Observers that check a simulation while it runs."""

from __future__ import annotations

import numpy as np

from .allocation import Allocator, SlotOccupancy
from .allocation.proving import wrong_placement
from .cluster import Cluster
from .errors import AllocationError
from .isolation import Conflicts
from .queueing import Situation

__all__ = ["IsolationCheck", "Observer", "PlacementCheck", "Promises"]


class Observer:
    """The base class of observers, whose methods do nothing.

    A simulation calls them at each start and end of a job (``job`` is its position in the workload), and at the end of
    each pass over the queue.
    """

    def started(self, job: int, situation: Situation) -> None:
        """React to the start of a job."""

    def ended(self, job: int, situation: Situation) -> None:
        """React to the end of a job."""

    def passed(self, situation: Situation) -> None:
        """React to the end of a pass over the queue."""


class Promises(Observer):
    """A check that the first job of the queue (its head) starts at or before the second that it was promised.

    A promise ends when another job becomes the head. ``made`` is the number of promises; ``broken`` lists each broken
    one as (job, promised second, start second).
    """

    def __init__(self) -> None:
        self.made = 0
        self.broken: list[tuple[int, int, int]] = []
        self._standing: tuple[int, int] | None = None  # the head, and the earliest second that it was promised

    def started(self, job: int, situation: Situation) -> None:
        """Compare the second of the job's start with the second that was promised, if there was a promise."""
        if self._standing is None:
            return
        head, when = self._standing
        if situation.waiting[0] != head:  # a started job may still be first, because a pass removes jobs at its end
            self._standing = None
        elif head == job:
            self._standing = None
            if situation.now > when:
                self.broken.append((job, when, situation.now))

    def passed(self, situation: Situation) -> None:
        """Record the earliest second at which a start has been promised to the first waiting job (head)."""
        head = situation.waiting[0] if situation.waiting else None
        if self._standing is not None and self._standing[0] != head:
            self._standing = None
        promise = situation.promise
        if promise is not None and promise.number == head:
            self.made += 1
            before = self._standing[1] if self._standing is not None else promise.when
            self._standing = promise.number, min(before, promise.when)


class IsolationCheck(Observer):
    """A check, after every pass that started jobs, whether running jobs share links, by `isolation.check`.

    ``found`` lists the second and the conflicts of each check that found some.
    """

    def __init__(self) -> None:
        self.checks = 0
        self.found: list[tuple[int, Conflicts]] = []
        self._changed = False

    def started(self, job: int, situation: Situation) -> None:
        """Note that a check is due at the end of this pass."""
        self._changed = True

    def passed(self, situation: Situation) -> None:
        """If a job has started in this pass, check the nodes that jobs use, without nodes that they only hold."""
        if not self._changed:
            return
        self._changed, self.checks = False, self.checks + 1
        if conflicts := situation.state.conflicts():
            self.found.append((situation.now, conflicts))


class PlacementCheck(Observer):
    """A check of each placement, independent of the allocator's state: the slots are free, and as many as needed.

    :param cluster: the cluster that jobs run on.
    :param allocator: the allocator that is checked.
    """

    def __init__(self, cluster: Cluster, allocator: Allocator) -> None:
        self._allocator, self._others = allocator, SlotOccupancy(cluster)

    def started(self, job: int, situation: Situation) -> None:
        """Check that the job got as many slots as it needs, none of them closed or held by another job.

        :raises AllocationError: if the placement is wrong.
        """
        told, placement = situation.state.running[job]
        changed = np.flatnonzero(situation.state.closed != self._others.closed)
        if len(changed):
            self._others.close(changed[situation.state.closed[changed]])
            self._others.reopen(changed[~situation.state.closed[changed]])
        wrong = wrong_placement(self._allocator, self._others, told, placement)
        if wrong:
            where = f"job {job} of {told.size} nodes at {situation.now} s"
            raise AllocationError(f"{self._allocator.name}: {wrong}; {where}")
        self._others.start(told, placement)

    def ended(self, job: int, situation: Situation) -> None:
        """Record that the job's slots are free again."""
        self._others.end(job)
