"""Allocators by which at most one of the jobs that are bigger than a leaf uses a leaf, or a pod."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from .oblivious import _tightest
from .occupancy import Allocator, Job, Occupancy, Placement

__all__ = ["Exclusive", "LeafExclusive"]


class _Owned(Occupancy):
    """A state with the number of jobs larger than a leaf in each pod."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.pod_big = np.zeros(cluster.num_pods, dtype=np.int64)

    def _change(self, job: Job, placement: Placement, sign: int) -> None:
        super()._change(job, placement, sign)
        if job.size > self.cluster.leaf_size:
            self.pod_big[np.unique(self.cluster.pod[placement.nodes])] += sign


class Exclusive(Allocator):
    """An allocator that gives each pod to at most one of the jobs bigger than a leaf (Jokanovic 2014, Exclusive).

    A smaller job gets nodes of one leaf. A bigger job gets nodes of a pod that no other bigger job uses: of the pods
    with enough free nodes, the one with the fewest. If no pod has enough, the job gets several pods without other
    bigger jobs, those with the most free nodes first.
    """

    name = "exclusive"

    def state(self, cluster: Cluster) -> Occupancy:
        """Return the state of the cluster without jobs."""
        return _Owned(cluster)

    def feasible(self, job: Job, state: Occupancy) -> bool:
        """Return whether one leaf, or, for a bigger job, all pods without other bigger jobs, have enough free nodes."""
        assert isinstance(state, _Owned)
        if job.size <= state.cluster.leaf_size:
            return bool(state.leaf_free.max() >= job.size)
        return bool(state.pod_free[state.pod_big == 0].sum() >= job.size)

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        """Return nodes of one leaf, or of pods without another big job; None if too few are free."""
        assert isinstance(state, _Owned)
        if not self.feasible(job, state):
            return None
        if job.size <= state.cluster.leaf_size:
            return Placement(state.first_free(_tightest(state.leaf_free, job.size), job.size))
        free = np.where(state.pod_big == 0, state.pod_free, 0)
        pod = _tightest(free, job.size)
        pods = [pod] if pod >= 0 else np.argsort(-free, kind="stable").tolist()
        starts = state.cluster.pod_start
        order = np.concatenate([np.arange(starts[one], starts[one + 1]) for one in pods if free[one]])
        return Placement(state.take(order, job.size))


class LeafExclusive(Allocator):
    """An allocator that gives a job bigger than a leaf whole free leaves, and lets smaller jobs share leaves.

    A bigger job also holds the nodes of its leaves that it does not use. It gets leaves of the first pod that has
    enough free ones, else the first free leaves of the cluster. Its placement lists the used nodes first. Jobs may
    share links above the leaves.
    """

    name = "leaf-exclusive"
    holds_more = True

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        """Return nodes of one leaf, or whole leaves; None if too few are free."""
        cluster = state.cluster
        if job.size <= cluster.leaf_size:
            leaf = _tightest(state.leaf_free, job.size)
            return Placement(state.first_free(leaf, job.size)) if leaf >= 0 else None
        sizes = np.diff(cluster.leaf_start)
        empty = state.leaf_free * (state.leaf_free == sizes)
        pods = np.flatnonzero(np.add.reduceat(empty, cluster.pod_start[:-1]) >= job.size)
        if len(pods):
            empty[cluster.pod_of_leaf != pods[0]] = 0
        total = np.cumsum(empty)
        if total[-1] < job.size:
            return None
        leaves = np.flatnonzero(empty[: int(np.searchsorted(total, job.size)) + 1])
        return Placement(state.take(leaves, cluster.num_nodes))

    def resume(self, job: Job, nodes: NDArray[np.integer], cluster: Cluster) -> Placement:
        """Return the placement of a job on these nodes; if it is bigger than a leaf, it holds all nodes of its leaves.

        :param job: a job that this policy has placed.
        :param nodes: the nodes that it uses.
        :param cluster: the cluster that has these nodes.
        """
        if job.size <= cluster.leaf_size:
            return Placement(nodes)
        held = np.flatnonzero(np.isin(cluster.leaf, np.unique(cluster.leaf[nodes])))
        return Placement(np.concatenate([nodes, np.setdiff1d(held, nodes)]))

    def feasible(self, job: Job, state: Occupancy) -> bool:
        """Return whether one leaf, or, for a bigger job, all wholly free leaves together, have enough nodes."""
        if job.size <= state.cluster.leaf_size:
            return bool(state.leaf_free.max() >= job.size)
        whole = state.leaf_free == np.diff(state.cluster.leaf_start)
        return bool(state.leaf_free[whole].sum() >= job.size)
