"""The isolated allocator of Pollard et al. (Interference-free node allocation on fat-trees, SC18, Algorithm 1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from ..errors import AllocationError
from .state import Allocator, Job, Placement, State

__all__ = ["Isolated"]

SMALL, MEDIUM, LARGE = range(3)


class _Kinds(State):
    """Counts of medium and large jobs on each leaf, and of large jobs in each pod."""

    def __init__(self, cluster: Cluster, anchors: tuple[int, int]) -> None:
        super().__init__(cluster)
        self.anchors = anchors
        self.medium = np.zeros(cluster.num_leaves, dtype=np.int64)
        self.large = np.zeros(cluster.num_leaves, dtype=np.int64)
        self.pod_large = np.zeros(cluster.num_pods, dtype=np.int64)

    def kind(self, size: int) -> int:
        """Small jobs fit a leaf, medium ones a pod."""
        return SMALL if size <= self.anchors[0] else MEDIUM if size <= self.anchors[1] else LARGE

    def _change(self, job: Job, placement: Placement, sign: int) -> None:
        super()._change(job, placement, sign)
        kind = self.kind(job.size)
        if kind == SMALL:
            return
        leaves = np.unique(self.cluster.leaf[placement.nodes])
        (self.medium if kind == MEDIUM else self.large)[leaves] += sign
        if kind == LARGE:
            self.pod_large[np.unique(self.cluster.pod_of_leaf[leaves])] += sign


class Isolated(Allocator):
    """Small jobs in one leaf, medium ones in one pod, large ones over pods, so that no two share a link.

    A leaf has at most one job that is not small, a pod at most one large job. Ties go to the lowest index.

    :param small: largest job that is small; none: the cluster's largest leaf.
    :param medium: largest job that is medium; none: the cluster's largest pod.
    """

    name = "isolated"

    def __init__(self, small: int | None = None, medium: int | None = None) -> None:
        self.small, self.medium = small, medium

    def anchors(self, cluster: Cluster) -> tuple[int, int]:
        """The largest small and the largest medium job.

        :raises AllocationError: where a job of these sizes would not fit a leaf or a pod.
        """
        small = cluster.leaf_size if self.small is None else self.small
        medium = cluster.pod_size if self.medium is None else self.medium
        if not 0 < small <= min(cluster.leaf_size, medium) or medium > cluster.pod_size:
            limits = f"0 < small <= {cluster.leaf_size} and small <= medium <= {cluster.pod_size}"
            raise AllocationError(f"isolated: expecting {limits}, got {small} and {medium}")
        return small, medium

    def state(self, cluster: Cluster) -> State:
        """The state of the cluster without jobs."""
        return _Kinds(cluster, self.anchors(cluster))

    def feasible(self, job: Job, state: State) -> bool:
        """By the sums of free nodes alone, without choosing any."""
        assert isinstance(state, _Kinds)
        kind = state.kind(job.size)
        if kind == SMALL:
            return bool(state.leaf_free.max() >= job.size)
        if kind == MEDIUM:
            return bool(_room(state).max() >= job.size)
        leaves = (state.medium == 0) & (state.pod_large == 0)[state.cluster.pod_of_leaf]
        return bool(state.leaf_free[leaves].sum() >= job.size)

    def place(self, job: Job, state: State) -> Placement | None:
        """Algorithm 1."""
        assert isinstance(state, _Kinds)
        if not self.feasible(job, state):
            return None
        kind = state.kind(job.size)
        if kind == LARGE:
            pods = np.argsort(-state.pod_free, kind="stable")
            pods = pods[state.pod_large[pods] == 0]
            leaves = [_emptiest(state, int(pod), state.medium) for pod in pods]
            return Placement(state.take(np.concatenate(leaves), job.size))
        starts = state.cluster.pod_start
        room = np.maximum.reduceat(state.leaf_free, starts[:-1]) if kind == SMALL else _room(state)
        pods = np.flatnonzero(room >= job.size)
        pod = int(pods[np.argmin(state.pod_free[pods])])
        if kind == MEDIUM:
            return Placement(state.take(_emptiest(state, pod, state.medium + state.large), job.size))
        free = state.leaf_free[starts[pod] : starts[pod + 1]]
        fits = np.flatnonzero(free >= job.size)
        return Placement(state.first_free(int(starts[pod] + fits[np.argmin(free[fits])]), job.size))


def _room(state: _Kinds) -> NDArray[np.integer]:
    """Free nodes of each pod on leaves without medium and large jobs."""
    usable = state.leaf_free * ((state.medium == 0) & (state.large == 0))
    return np.add.reduceat(usable, state.cluster.pod_start[:-1])


def _emptiest(state: _Kinds, pod: int, held: NDArray[np.integer]) -> NDArray[np.integer]:
    """Leaves of a pod that no such job holds, most free nodes first."""
    first, last = state.cluster.pod_start[pod : pod + 2]
    order = first + np.argsort(-state.leaf_free[first:last], kind="stable")
    chosen: NDArray[np.integer] = order[held[order] == 0]
    return chosen
