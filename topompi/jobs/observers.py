"""What watches a simulation as it goes."""

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
    """Is told of each start, end and pass, with the time and all jobs in the situation; this one does nothing."""

    def started(self, job: int, situation: Situation) -> None:
        """A job has started."""

    def ended(self, job: int, situation: Situation) -> None:
        """A job has ended."""

    def passed(self, situation: Situation) -> None:
        """A pass has ended."""


class Promises(Observer):
    """Whether each head of the queue starts when it was promised to, or before.

    A promise ends when another job comes ahead. ``made`` counts promises, ``broken`` has (job, promised, started).
    """

    def __init__(self) -> None:
        self.made = 0
        self.broken: list[tuple[int, int, int]] = []
        self._standing: tuple[int, int] | None = None  # the head, and the earliest time that it was promised

    def started(self, job: int, situation: Situation) -> None:
        """Compares with the promise, if the job has one."""
        if self._standing is None:
            return
        head, when = self._standing
        if situation.waiting[0] != head:  # a pass takes jobs out of the queue at its end
            self._standing = None
        elif head == job:
            self._standing = None
            if situation.now > when:
                self.broken.append((job, when, situation.now))

    def passed(self, situation: Situation) -> None:
        """Notes the earliest time that the head was promised."""
        head = situation.waiting[0] if situation.waiting else None
        if self._standing is not None and self._standing[0] != head:
            self._standing = None
        promise = situation.promise
        if promise is not None and promise.number == head:
            self.made += 1
            before = self._standing[1] if self._standing is not None else promise.when
            self._standing = promise.number, min(before, promise.when)


class IsolationCheck(Observer):
    """`isolation.check` of the running jobs after every pass that started one; ``found`` has (seconds, conflicts)."""

    def __init__(self) -> None:
        self.checks = 0
        self.found: list[tuple[int, Conflicts]] = []
        self._changed = False

    def started(self, job: int, situation: Situation) -> None:
        """A further check is due."""
        self._changed = True

    def passed(self, situation: Situation) -> None:
        """Checks the nodes that jobs use, not those that they only hold."""
        if not self._changed:
            return
        self._changed, self.checks = False, self.checks + 1
        if conflicts := situation.state.conflicts():
            self.found.append((situation.now, conflicts))


class PlacementCheck(Observer):
    """Whether each job gets free slots, as many as it needs, whatever the allocator's state says.

    :param cluster: where jobs run.
    :param allocator: the allocator that is watched.
    """

    def __init__(self, cluster: Cluster, allocator: Allocator) -> None:
        self._allocator, self._others = allocator, SlotOccupancy(cluster)

    def started(self, job: int, situation: Situation) -> None:
        """Compares with the slots of other jobs.

        :raises AllocationError: for a wrong placement.
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
        """Takes note of the free slots."""
        self._others.end(job)
