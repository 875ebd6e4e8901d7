"""The speeds of jobs whose streams share links: max-min fair shares of each link, if jobs communicate at times only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .streams import STATES, Stream

__all__ = ["ROUNDS", "speeds"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

ROUNDS = 6  # after them no speed on random mixes changes by more than 0.001


def speeds(streams: Sequence[Stream], capacity: Floats) -> Floats:
    """Return each job's speed beside the others, above 0, and exactly 1 if it shares no full link; shape (jobs,).

    A link is full if its jobs together want more than its rate; the others limit nobody. A speed depends, bit for bit,
    on the jobs alone that full links join with the job, directly or through others. No speed rises if a job is added.

    :param streams: streams of the jobs.
    :param capacity: rate of each link in bytes/s, shape (links,).
    Cost: ``ROUNDS`` times a few passes over all pairs of jobs on each full link.
    """
    demand = np.array([one.demand for one in streams])
    share = np.array([one.communication for one in streams])
    crossings = _Crossings.of(streams, capacity, demand)
    found, present = np.ones(len(streams)), share
    if not len(crossings.job):
        return found
    ranks = np.array([one.ranks for one in streams]).T
    for _ in range(ROUNDS):
        levels = crossings.levels(np.clip(present * STATES - ranks, 0.0, 1.0))
        slowdown = (demand / np.minimum(demand, crossings.least(levels, len(streams)))).mean(axis=0)
        found = 1 / (1 + share * (slowdown - 1))
        present = 1 - (1 - share) * found
    return found


class _Crossings:
    """The jobs on full links that they share, an item per job and link, and all pairs of jobs that meet on a link.

    :param job: job of each item, shape (items,), sorted by link and job.
    :param capacity: rate of each item's link in bytes/s, shape (items,).
    :param item: item of each pair, the job that looks, shape (pairs,).
    :param other: item of the job that it meets, itself included, shape (pairs,).
    :param weight: weight of the other job on the link, shape (pairs,).
    :param demand: demand of the other job, shape (pairs,).
    """

    def __init__(
        self, job: Integers, capacity: Floats, item: Integers, other: Integers, weight: Floats, demand: Floats
    ) -> None:
        self.job, self.capacity, self.item, self.weight, self.demand = job, capacity, item, weight, demand
        self._job, self._itself = job[other], item == other
        self._first = np.searchsorted(item, np.arange(len(job)))
        self._by_job = np.argsort(job, kind="stable")

    @classmethod
    def of(cls, streams: Sequence[Stream], capacity: Floats, demand: Floats) -> _Crossings:
        link = np.concatenate([np.empty(0, np.int64), *(one.links for one in streams)])
        weight = np.concatenate([np.empty(0), *(one.weight for one in streams)])
        job = np.repeat(np.arange(len(streams)), [len(one.links) for one in streams])
        wanted = np.bincount(link, np.concatenate([np.empty(0), *(one.peak for one in streams)]), len(capacity))
        full = ((wanted > capacity) & (np.bincount(link, minlength=len(capacity)) > 1))[link]
        link, weight, job = link[full], weight[full], job[full]
        order = np.argsort(link, kind="stable")
        link, weight, job = link[order], weight[order], job[order]
        first = np.searchsorted(link, link)
        count = np.searchsorted(link, link, "right") - first
        item = np.repeat(np.arange(len(link)), count)
        other = np.arange(len(item)) - np.repeat(np.cumsum(count) - count - first, count)
        return cls(job, capacity[link], item, other, weight[other], demand[job[other]])

    def levels(self, present: Floats) -> Floats:
        """Return the fair bytes/s of a node of each item's job on the item's link, shape (states, items).

        The job itself communicates in all states. The level rises until the link is full; nodes that want less than the
        level take what they want. It is infinite if the link does not fill up.

        :param present: part of each state in which each job communicates, shape (states, jobs).
        """
        nodes = self.weight * np.where(self._itself, 1.0, present[:, self._job])
        bytes_wanted = nodes * self.demand
        limited = np.ones(nodes.shape, dtype=bool)  # whether the level limits the other job
        while True:
            taken = np.add.reduceat(np.where(limited, 0.0, bytes_wanted), self._first, axis=1)
            left = np.add.reduceat(np.where(limited, nodes, 0.0), self._first, axis=1)
            level = np.full(left.shape, np.inf)
            np.divide(self.capacity - taken, left, out=level, where=left > 0)
            still = limited & (self.demand > level[:, self.item])
            if (still == limited).all():
                return level
            limited = still

    def least(self, level: Floats, jobs: int) -> Floats:
        """Return each job's least level, shape (states, jobs); infinite if it shares no full link."""
        found = np.full((len(level), jobs), np.inf)
        sharers, first = np.unique(self.job[self._by_job], return_index=True)
        found[:, sharers] = np.minimum.reduceat(level[:, self._by_job], first, axis=1)
        return found
