"""An allocator that gives slots of nodes, so that jobs that allow it share nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from ..workload import Workload
from .oblivious import _tightest
from .occupancy import Allocator, Job, Occupancy, Placement
from .slots import SlotOccupancy

__all__ = ["SharingAllocator"]

Indices = NDArray[np.integer]


class SharingAllocator(Allocator):
    """An allocator that gives slots of shared nodes to the jobs that allow it, and whole nodes to the other jobs.

    A job that shares gets all of its slots on the shared node with the fewest free slots that suffice. If no node has
    enough, it gets the free slots of shared nodes, then of empty nodes, each leaf by leaf, the leaf with the most free
    slots first. A job that does not share gets whole nodes of the leaf with the fewest empty nodes that suffice; if no
    leaf has enough, nodes leaf by leaf, the leaf with the most empty nodes first. Of equal nodes or leaves the first is
    taken.
    """

    name = "shared"
    heeds = ("slots", "shared")

    def state(self, cluster: Cluster) -> Occupancy:
        """Return the state of the cluster without jobs."""
        return SlotOccupancy(cluster)

    def sizes(self, workload: Workload, cluster: Cluster) -> Indices:
        """Return the number of nodes of each job; for a job that shares, the fewest that can have all of its slots."""
        most = np.cumsum(np.sort(cluster.slots)[::-1])
        least = 1 + np.searchsorted(most, workload.slots)
        return np.where(workload.shared & (workload.slots > 0), least, workload.nodes)

    def feasible(self, job: Job, state: Occupancy) -> bool:
        """Return whether enough slots are free for a job that shares, or enough nodes are empty for another job."""
        assert isinstance(state, SlotOccupancy)
        return job.slots <= state.room.sum() if _shares(job) else job.size <= len(state.empty)

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        """Return slots for a job that shares, or whole nodes for another job; None if it has to wait."""
        assert isinstance(state, SlotOccupancy)
        if not self.feasible(job, state):
            return None
        empty = np.where(state.busy == 0, state.room, 0)
        if not _shares(job):
            return Placement(_whole(job.size, empty > 0, state.cluster))
        begun = state.room - empty
        node = _tightest(begun, job.slots)
        if node >= 0:
            return state.take_slots(np.array([node]), job.slots)
        order = np.concatenate([_by_leaf(room, state.cluster) for room in (begun, empty)])
        return state.take_slots(order, job.slots)


def _shares(job: Job) -> bool:
    return job.shared and job.slots > 0


def _whole(size: int, empty: NDArray[np.bool_], cluster: Cluster) -> Indices:
    """Return ``size`` empty nodes, if possible of the one leaf with the fewest empty nodes that suffice."""
    in_leaf = np.add.reduceat(empty, cluster.leaf_start[:-1], dtype=np.int64)
    leaf = _tightest(in_leaf, size)
    if leaf >= 0:
        return np.flatnonzero(empty & (cluster.leaf == leaf))[:size]
    return _by_leaf(empty, cluster)[:size]


def _by_leaf(room: Indices | NDArray[np.bool_], cluster: Cluster) -> Indices:
    """Return the nodes with free slots, leaf by leaf, the leaf with the most free slots first."""
    in_leaf = np.add.reduceat(room, cluster.leaf_start[:-1], dtype=np.int64)
    nodes = np.flatnonzero(room)
    return nodes[np.argsort(-in_leaf[cluster.leaf[nodes]], kind="stable")]
