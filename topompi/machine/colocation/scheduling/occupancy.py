"""The state for allocators of half nodes, with the program on each half."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...jobs import Cluster
from ...jobs.allocation import Job, Occupancy, Placement, SlotOccupancy
from ..errors import ColocationError
from .preferences import Preferences

__all__ = ["HALVES", "HalfOccupancy", "as_halves", "check_halves"]

HALVES = 2  # slots of each node
Indices = NDArray[np.integer]


def check_halves(cluster: Cluster) -> None:
    """Check that each node has two slots.

    :raises ColocationError: if a node has another number of slots.
    """
    other = cluster.slots[cluster.slots != HALVES]
    if other.size:
        raise ColocationError(f"{cluster.name}: expecting {HALVES} slots of each node, got {other[0]}")


class HalfOccupancy(SlotOccupancy):
    """A state with the program on each half node. Slots 2i and 2i + 1 are the halves of node i.

    ``codes`` is the sum, over the jobs on each half, of the number of the job's program plus 1, and 0 on a free or
    closed half. ``owners`` is the sum of the jobs' numbers plus 1. Only in plans of future starts there may be several
    jobs on a half.

    :param cluster: a cluster whose nodes have two slots.
    :param preferences: neighbours that jobs prefer, by the number of each program; jobs of other programs have code 0.
    :raises ColocationError: if a node has another number of slots.
    """

    def __init__(self, cluster: Cluster, preferences: Preferences) -> None:
        check_halves(cluster)
        super().__init__(cluster)
        self.codes = np.zeros(cluster.num_slots, dtype=np.int64)
        self.owners = np.zeros(cluster.num_slots, dtype=np.int64)
        self.preferences = preferences

    def code_of(self, job: Job) -> int:
        """Return the number of a job's program plus 1; 0 if the program is unknown or the job does not share."""
        return self.preferences.numbers.get(job.asks.get("program", ""), -1) + 1 if job.shared else 0

    def _change(self, job: Job, placement: Placement, sign: int) -> None:
        slots = self.cluster.slots_of(placement.nodes, placement.slots)
        self.codes[slots] += sign * self.code_of(job)
        self.owners[slots] += sign * (job.number + 1)
        super()._change(job, placement, sign)

    @property
    def free_slots(self) -> int:
        """Number of free half nodes."""
        return int(self.room.sum())

    def single(self) -> tuple[Indices, Indices]:
        """Return the free halves whose other half is used, ascending, and the codes of the programs beside them."""
        free = self.held == 0
        slots = np.flatnonzero(free & ~free.reshape(-1, HALVES)[:, ::-1].reshape(-1))
        beside = slots ^ 1
        # In a plan several jobs may hold a half; their sum of codes names no program.
        return slots, np.where(self.held[beside] == 1, self.codes[beside], 0)

    def empty_nodes(self) -> Indices:
        """Return the nodes with two free halves, ascending."""
        return np.flatnonzero(self.room == HALVES)

    def placement(self, slots: Indices) -> Placement:
        """Return a placement on these half nodes, numbered over the cluster."""
        return Placement(slots // HALVES, slots=slots % HALVES)


def as_halves(state: Occupancy) -> HalfOccupancy:
    """Return the state, which allocators of half nodes have made."""
    assert isinstance(state, HalfOccupancy)
    return state
