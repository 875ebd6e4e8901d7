"""Who runs beside whom: intervals of jobs and partners, and a simple schedule of jobs on halves of nodes.

Prices need only the intervals, so another schedule may take the place of this one.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ColocationError
from ..speedups.matrix import Speedups

__all__ = ["NOBODY", "OWN", "Intervals", "on_half_nodes"]

NOBODY = -1  # partner of a job beside empty halves of nodes
OWN = -2  # partner of a job on whole nodes of its own
Reals = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Intervals:
    """The time of each job, cut where its partner changes, as columns of shape (n,).

    If a job has several partners at once, on different nodes, the one that slows it most counts: ranks wait for
    each other.

    :param job: number of the job.
    :param partner: number of the job beside it, or ``NOBODY``, or ``OWN``.
    :param start: second at which the interval begins.
    :param end: second at which it ends.
    """

    job: Integers
    partner: Integers
    start: Reals
    end: Reals

    def __len__(self) -> int:
        return len(self.job)


def on_half_nodes(
    submit: ArrayLike, seconds: ArrayLike, nodes: ArrayLike, program: ArrayLike, speedups: Speedups, machine: int
) -> Intervals:
    """Run jobs on half of the cores of twice their nodes, first come first served.

    A job takes the lowest nodes on which another job holds one half, then empty ones. It needs twice its nodes; if it
    needs more than half of the machine, it gets whole nodes of its own. Cost: array operations on the machine's nodes
    per start and end of a job.

    :param submit: second at which each job arrives, ascending, shape (n,).
    :param seconds: run time of each job on nodes of its own, shape (n,).
    :param nodes: number of nodes of each job on nodes of its own, shape (n,).
    :param program: row of each job's program in the speed-ups, shape (n,).
    :param speedups: speed-ups of the programs beside each other.
    :param machine: number of nodes of the machine.
    :raises ColocationError: if a job needs more nodes than the machine has, or a speed-up is unknown.
    """
    size, row = np.asarray(nodes, np.int64), np.asarray(program, np.int64)
    if size.max(initial=0) > machine:
        raise ColocationError(f"nodes: expecting at most the machine's {machine}, got {size.max()}")
    used = np.unique(row)
    unknown = np.argwhere(~speedups.known[np.ix_(used, used)])
    if len(unknown):
        first, second = (speedups.programs[used[at]] for at in unknown[0])
        raise ColocationError(
            f"speed-ups: expecting one for each pair of programs, got none for {first} beside {second}"
        )
    return _Machine(np.asarray(submit, float), np.asarray(seconds, float), size, row, speedups, machine).run()


class _Machine:
    """Nodes with two halves, each free or held by a job, and the progress of the running jobs."""

    def __init__(
        self, submit: Reals, seconds: Reals, size: Integers, row: Integers, speedups: Speedups, machine: int
    ) -> None:
        self.submit, self.left, self.size, self.row = submit, seconds.copy(), size, row
        # The last column is that of an empty half, so that NOBODY (-1) leads to it.
        self.rates = np.c_[speedups.ratio, speedups.beside_nothing]
        self.halves = np.full((machine, 2), NOBODY)
        self.held: dict[int, Integers] = {}
        self.since, self.version = np.zeros(len(size)), np.zeros(len(size), int)
        self.beside, self.speed = np.full(len(size), OWN), np.ones(len(size))
        self.ends: list[tuple[float, int, int]] = []
        self.rows: list[tuple[int, int, float, float]] = []

    def run(self) -> Intervals:
        """Start and end all jobs; return their intervals."""
        now, waiting = 0.0, 0
        while waiting < len(self.size) or self.ends:
            if waiting < len(self.size) and self.submit[waiting] <= now and self._start(waiting, now):
                waiting += 1
                continue
            arrives = waiting < len(self.size) and self.submit[waiting] > now
            coming = self.submit[waiting] if arrives else np.inf
            if self.ends and self.ends[0][0] <= coming:
                now, version, job = heapq.heappop(self.ends)
                if version == self.version[job]:
                    self._end(job, now)
            else:
                now = float(coming)
        columns = np.array(self.rows, dtype=float).reshape(-1, 4).T
        return Intervals(columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2], columns[3])

    def _start(self, job: int, now: float) -> bool:
        """Place a job and return True, or return False if it has to wait."""
        taken = (self.halves != NOBODY).sum(axis=1)
        need = int(self.size[job])
        own = 2 * need > len(self.halves)
        empty = np.flatnonzero(taken == 0)
        found = empty[:need] if own else np.r_[np.flatnonzero(taken == 1), empty][: 2 * need]
        if len(found) < (need if own else 2 * need):
            return False
        if own:
            self.halves[found] = job
        else:
            free = self.halves[found, 0] != NOBODY
            self.halves[found, free.astype(int)] = job
        self.held[job], self.since[job] = found, now
        self._meet(job, now)
        for other in self._neighbours(job):
            self._meet(other, now)
        return True

    def _neighbours(self, job: int) -> list[int]:
        """Return the other jobs on the nodes of a job, in order."""
        return [other for other in np.unique(self.halves[self.held[job]]).tolist() if other not in (job, NOBODY)]

    def _end(self, job: int, now: float) -> None:
        self._close(job, now)
        others = self._neighbours(job)
        mine = self.halves[self.held[job]]
        self.halves[self.held.pop(job)] = np.where(mine == job, NOBODY, mine)
        for other in others:
            self._meet(other, now)

    def _meet(self, job: int, now: float) -> None:
        """Give a job the partner that slows it most, and the time of its end that follows."""
        mine = self.halves[self.held[job]]
        if (mine == job).all():
            partner, speed = OWN, 1.0
        else:
            others = np.unique(np.where(mine[:, 0] == job, mine[:, 1], mine[:, 0]))
            speeds = self.rates[self.row[job], np.where(others < 0, NOBODY, self.row[others])]
            slowest = int(speeds.argmin())
            partner, speed = int(others[slowest]), float(speeds[slowest])
        if self.version[job] and (partner, speed) == (self.beside[job], self.speed[job]):
            return
        self._close(job, now)
        self.beside[job], self.speed[job] = partner, speed
        self.version[job] += 1
        heapq.heappush(self.ends, (now + self.left[job] / speed, int(self.version[job]), job))

    def _close(self, job: int, now: float) -> None:
        """Record the interval that ends now."""
        span = now - self.since[job]
        if span > 0:
            self.rows.append((job, int(self.beside[job]), float(self.since[job]), now))
            self.left[job] = max(0.0, self.left[job] - span * self.speed[job])
        self.since[job] = now
