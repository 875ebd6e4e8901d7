"""The isolated allocator of Pollard et al. (Interference-free node allocation on fat-trees, SC18, Algorithm 1)."""

from __future__ import annotations

import copy
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from ..errors import AllocationError
from .free_nodes import LARGE, MEDIUM, SMALL, FreeNodes, Parts
from .occupancy import Allocator, Job, Occupancy, Placement

__all__ = ["Isolated"]


class _Kinds(Occupancy):
    """A state with used nodes, and numbers of free nodes per leaf and pod; a copy by `preview` has only the numbers."""

    def __init__(self, cluster: Cluster, anchors: tuple[int, int]) -> None:
        super().__init__(cluster)
        self.anchors, self.free_nodes = anchors, FreeNodes(cluster)
        self._is_preview = False

    def kind(self, size: int) -> int:
        """Return the kind of a job of this size: SMALL (for one leaf), MEDIUM (for one pod) or LARGE."""
        return SMALL if size <= self.anchors[0] else MEDIUM if size <= self.anchors[1] else LARGE

    @property
    def leaf_free(self) -> NDArray[np.int64]:
        """Number of free nodes of each leaf."""
        return np.array(self.free_nodes.leaf_free, dtype=np.int64)

    @property
    def pod_free(self) -> NDArray[np.int64]:
        """Number of free nodes of each pod."""
        return np.array(self.free_nodes.pod_free, dtype=np.int64)

    def copy(self) -> Occupancy:
        """Return an independent copy of this state."""
        made = super().copy()
        assert isinstance(made, _Kinds)
        made.free_nodes = self.free_nodes.copy()
        return made

    def preview(self) -> Occupancy:
        """Return a copy with the numbers of free nodes only, or a full copy if nodes are closed.

        A copy with the numbers only would count a closed node as free when the job on it ends.
        """
        if self.any_closed:
            return self.copy()
        made = copy.copy(self)
        made.running, made.free_nodes = self.running.copy(), self.free_nodes.copy()
        made._is_preview = True
        return made

    def _change(self, job: Job, placement: Placement, sign: int) -> None:
        parts = held = placement.role or self._parts_of(placement.nodes)
        count = len(placement.nodes)
        if not self._is_preview:
            changed = self._hold(placement, sign)
            if len(changed) < count:
                parts, count = self._parts_of(changed), len(changed)
        self.free_nodes.change(self.kind(job.size), held, parts, sign)
        self.free -= sign * count

    def _count(self, changed: NDArray[np.integer], sign: int) -> None:
        self.free_nodes.change(SMALL, (), self._parts_of(changed), sign)
        self.free -= sign * len(changed)

    def _parts_of(self, nodes: NDArray[np.integer]) -> Parts:
        return sorted(Counter(self.cluster.leaf[nodes].tolist()).items())


class Isolated(Allocator):
    """An allocator by which no two jobs share a link; small jobs are in one leaf, medium ones in one pod.

    A larger job is spread over pods. A leaf has at most one job that is not small, a pod at most one large job. Of
    equally good leaves or pods the first is taken.

    :param small: size of the largest small job; None for the size of the cluster's largest leaf.
    :param medium: size of the largest medium job; None for the size of the cluster's largest pod.
    """

    name = "isolated"

    def __init__(self, small: int | None = None, medium: int | None = None) -> None:
        self.small, self.medium = small, medium

    def anchors(self, cluster: Cluster) -> tuple[int, int]:
        """Return the sizes, in nodes, of the largest small job (in one leaf) and the largest medium job (in one pod).

        :raises AllocationError: if jobs of these sizes may not fit a leaf or a pod.
        """
        small = cluster.leaf_size if self.small is None else self.small
        medium = cluster.pod_size if self.medium is None else self.medium
        if not 0 < small <= min(cluster.leaf_size, medium) or medium > cluster.pod_size:
            limits = f"0 < small <= {cluster.leaf_size} and small <= medium <= {cluster.pod_size}"
            raise AllocationError(f"isolated: expecting {limits}, got {small} and {medium}")
        return small, medium

    def state(self, cluster: Cluster) -> Occupancy:
        """Return the state of the cluster without jobs."""
        return _Kinds(cluster, self.anchors(cluster))

    def feasible(self, job: Job, state: Occupancy) -> bool:
        """Return whether enough nodes are free for a job of its kind (small, medium or large)."""
        assert isinstance(state, _Kinds)
        return job.size <= state.free_nodes.largest(state.kind(job.size))

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        """Return the nodes that Algorithm 1 of Pollard et al. chooses, or None if the job has to wait."""
        assert isinstance(state, _Kinds)
        kind = state.kind(job.size)
        if job.size > state.free_nodes.largest(kind):
            return None
        parts = state.free_nodes.choose(kind, job.size)
        nodes = [state.first_free(leaf, count) for leaf, count in parts]
        return Placement(nodes[0] if len(nodes) == 1 else np.concatenate(nodes), parts)
