"""Allocators of half nodes: beside any neighbour, or beside the neighbours that a matrix of rates favours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...jobs import Cluster, Workload
from ...jobs.allocation import Allocator, Job, Occupancy, Placement
from .occupancy import HALVES, HalfOccupancy, as_halves
from .preferences import THRESHOLD, Preferences, any_neighbour, favoured
from .table import RateTable, program_numbers

__all__ = ["Halves", "Matched"]

Indices = NDArray[np.integer]


class Halves(Allocator):
    """An allocator that gives half nodes to jobs that share, beside any neighbour, and whole nodes to other jobs.

    A job takes free halves beside other jobs, then one half of each empty node, then their other halves, each in the
    order of the nodes. On a node of which it has both halves it runs as on a whole node.
    """

    name = "halves"
    heeds: tuple[str, ...] = ("slots", "shared")
    node_slots = HALVES

    def __init__(self) -> None:
        self.preferences: Preferences = any_neighbour()

    def state(self, cluster: Cluster) -> Occupancy:
        """Return the state of the cluster without jobs.

        :raises ColocationError: if a node has not two slots.
        """
        return HalfOccupancy(cluster, self.preferences)

    def sizes(self, workload: Workload, cluster: Cluster) -> Indices:
        """Return the number of nodes of each job; for a job that shares, the fewest that have all of its halves."""
        least = -(-workload.slots // HALVES)
        return np.where(workload.shared & (workload.slots > 0), least, workload.nodes)

    def feasible(self, job: Job, state: Occupancy) -> bool:
        """Return whether enough halves beside accepted neighbours, or enough empty nodes, are free."""
        state = as_halves(state)
        if not _shares(job):
            return job.size <= int((state.room == HALVES).sum())
        if job.slots > state.free_slots:
            return False
        _, beside = state.single()
        accepted = int((state.preferences.rank[state.code_of(job)][beside] >= 0).sum())
        return job.slots <= accepted + HALVES * int((state.room == HALVES).sum())

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        """Return half nodes for a job that shares, or whole nodes for another job; None if it has to wait."""
        state = as_halves(state)
        if not _shares(job):
            empty = state.empty_nodes()[: job.size]
            return Placement(empty) if len(empty) == job.size else None
        if job.slots > state.free_slots:
            return None
        slots = self.wanted(job, state)[: job.slots]
        return state.placement(slots) if len(slots) == job.slots else None

    def wanted(self, job: Job, state: HalfOccupancy, *, beside_one: bool = True) -> Indices:
        """Return free halves that the job accepts, in the order in which it takes them, numbered over the cluster.

        They are all of them, unless one running job has enough beside it, which the job prefers.

        :param job: a job that shares nodes.
        :param state: the halves in use.
        :param beside_one: whether to look for that one job first.
        """
        code, preferences, (single, beside) = state.code_of(job), state.preferences, state.single()
        rank, empty = preferences.rank[code][beside], HALVES * state.empty_nodes()
        order = np.argsort(rank, kind="stable")
        refused, better = np.searchsorted(rank[order], (0, preferences.last[code]))
        if beside_one and code:
            group = _beside_one(job, state, single[order[refused:better]], rank[order[refused:better]])
            if not len(group) and job.slots > better - refused + HALVES * len(empty):
                group = _beside_one(job, state, single[order[better:]], rank[order[better:]])
            if len(group):
                return group
        halves = (empty, empty + 1)
        fresh = np.concatenate(halves) if preferences.spread[code] else np.stack(halves, axis=1).reshape(-1)
        return np.concatenate((single[order[refused:better]], fresh, single[order[better:]]))


class Matched(Halves):
    """An allocator that gives half nodes beside the neighbours that a matrix favours, and refuses slow pairs.

    A job goes beside one running job with which both get more done than apart, the best that has enough free halves; if
    there is none, beside several of them, then on empty nodes, then beside others that are not refused.

    :param table: rates of the programs, as far as the scheduler knows them.
    :param threshold: least rate of each of two jobs that may share nodes.
    """

    name = "matched"
    heeds = ("slots", "shared", "program")

    def __init__(self, table: RateTable, threshold: float = THRESHOLD) -> None:
        self.table, self.threshold = table, threshold
        self.preferences = favoured(table, threshold)

    def sizes(self, workload: Workload, cluster: Cluster) -> Indices:
        """Return the number of nodes of each job; for a job that shares, the fewest that have all of its halves.

        :raises ColocationError: if a job that shares has no program, or an unknown one.
        """
        program_numbers(workload, self.table.programs)
        return super().sizes(workload, cluster)


def _shares(job: Job) -> bool:
    return job.shared and job.slots > 0


def _beside_one(job: Job, state: HalfOccupancy, slots: Indices, rank: Indices) -> Indices:
    """Return the free halves beside the one running job that suits a job best; none if no job has enough of them.

    Because the slowest half sets a job's rate, one good neighbour is better than several. Of neighbours of equal rank,
    the one with the fewest free halves beside it is taken, then the one with the lowest half.

    :param job: the job.
    :param state: the halves in use.
    :param slots: free halves beside used ones.
    :param rank: rank of the neighbour at each of them.
    """
    order = np.argsort(slots)
    slots, rank = slots[order], rank[order]
    single = state.held[slots ^ 1] == 1  # in a plan several jobs may hold a half
    slots, rank = slots[single], rank[single]
    _, first, group, count = np.unique(
        state.owners[slots ^ 1], return_index=True, return_inverse=True, return_counts=True
    )
    enough = np.flatnonzero(count >= job.slots)
    if not len(enough):
        return enough
    best = enough[np.lexsort((first[enough], count[enough], rank[first[enough]]))[0]]
    chosen: Indices = slots[group == best]
    return chosen
