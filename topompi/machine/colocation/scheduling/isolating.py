"""Allocators that isolate jobs on the network, and let them share the nodes of their part of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...jobs import Cluster
from ...jobs.allocation import Job, Occupancy, Placement
from ...jobs.allocation.free_nodes import LARGE, MEDIUM, SMALL, FreeNodes
from .allocators import Halves, Matched
from .occupancy import HALVES, HalfOccupancy, as_halves
from .preferences import Preferences

__all__ = ["IsolatedHalves", "IsolatedMatched"]

Indices = NDArray[np.integer]


class _IsolatedOccupancy(HalfOccupancy):
    """A state with the numbers of medium and large jobs on each leaf, and of large jobs in each pod.

    ``wide`` counts the jobs of several leaves on each leaf, ``large`` the jobs of several pods in each pod.
    """

    def __init__(self, cluster: Cluster, preferences: Preferences) -> None:
        super().__init__(cluster, preferences)
        self.wide = np.zeros(cluster.num_leaves, dtype=np.int64)
        self.large = np.zeros(cluster.num_pods, dtype=np.int64)

    def kind(self, job: Job) -> int:
        """Return the kind of a job: SMALL if its halves fit the largest leaf, MEDIUM if a pod, else LARGE."""
        halves = job.slots if job.shared and job.slots else HALVES * job.size
        leaf, pod = HALVES * self.cluster.leaf_size, HALVES * self.cluster.pod_size
        return SMALL if halves <= leaf else MEDIUM if halves <= pod else LARGE

    def _change(self, job: Job, placement: Placement, sign: int) -> None:
        super()._change(job, placement, sign)
        kind, leaves = self.kind(job), np.unique(self.cluster.leaf[placement.nodes])
        if kind != SMALL:
            self.wide[leaves] += sign
        if kind == LARGE:
            self.large[np.unique(self.cluster.pod_of_leaf[leaves])] += sign

    def free_for(self, slots: Indices) -> FreeNodes:
        """Return the numbers on which Algorithm 1 decides, with these halves as the free ones."""
        leaves = self.cluster.leaf[slots // HALVES]
        return FreeNodes(self.cluster).with_numbers(
            np.bincount(leaves, minlength=self.cluster.num_leaves).tolist(), self.wide.tolist(), self.large.tolist()
        )


class _Isolated(Halves):
    """Algorithm 1 of Pollard et al. (SC18) on half nodes, of which it counts those that the job accepts."""

    def state(self, cluster: Cluster) -> Occupancy:
        """Return the state of the cluster without jobs.

        :raises ColocationError: if a node has not two slots.
        """
        return _IsolatedOccupancy(cluster, self.preferences)

    def feasible(self, job: Job, state: Occupancy) -> bool:
        """Return whether Algorithm 1 finds leaves for the job."""
        return self._leaves(job, as_halves(state), beside_one=False) is not None

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        """Return the halves that the job prefers on the leaves of Algorithm 1; None if it has to wait."""
        state = as_halves(state)
        found = self._leaves(job, state, beside_one=True) or self._leaves(job, state, beside_one=False)
        if found is None:
            return None
        slots, parts = found
        leaf, chosen = state.cluster.leaf[slots // HALVES], list[Indices]()
        for number, count in parts:
            chosen.append(slots[leaf == number][:count])
        taken = np.concatenate(chosen)
        if job.shared and job.slots > 0:
            return state.placement(taken)
        return Placement(taken[::HALVES] // HALVES)

    def _leaves(self, job: Job, state: HalfOccupancy, beside_one: bool) -> tuple[Indices, list[tuple[int, int]]] | None:
        """Return the accepted free halves in the order of preference, and leaves with numbers of halves."""
        assert isinstance(state, _IsolatedOccupancy)
        if job.shared and job.slots > 0:
            slots, wanted = self.wanted(job, state, beside_one=beside_one), job.slots
        else:
            slots, wanted = (HALVES * state.empty_nodes()).repeat(HALVES), HALVES * job.size
            slots[1::HALVES] += 1
        if wanted > len(slots):
            return None
        free, kind = state.free_for(slots), state.kind(job)
        return (slots, list(free.choose(kind, wanted))) if wanted <= free.largest(kind) else None


class IsolatedHalves(_Isolated):
    """An allocator by which no two jobs share a link, and jobs share nodes with any neighbour in their leaves.

    Leaves and pods are given to jobs as `Isolated` does, counted in halves of nodes: two jobs on one leaf share its
    nodes, but at most one of them uses the links of the leaf. On each leaf, halves are chosen as by `Halves`.
    """

    name = "isolated-halves"


class IsolatedMatched(_Isolated, Matched):
    """An allocator by which no two jobs share a link, and jobs share nodes with the neighbours that a matrix favours.

    Only halves beside accepted neighbours are counted when leaves are chosen.
    """

    name = "isolated-matched"
