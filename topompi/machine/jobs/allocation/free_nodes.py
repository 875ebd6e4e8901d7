"""Numbers of free nodes per leaf and pod as plain integers, on which Algorithm 1 (Pollard et al., SC18) decides."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from itertools import pairwise

from ..cluster import Cluster

__all__ = ["LARGE", "MEDIUM", "SMALL", "FreeNodes", "Parts"]

SMALL, MEDIUM, LARGE = range(3)
Parts = Sequence[tuple[int, int]]  # (leaf, number of nodes on it), pod by pod


class FreeNodes:
    """Numbers of free nodes per leaf and pod, and numbers of jobs that spread over several leaves or pods.

    The numbers are in lists of integers, because numpy is slow on short arrays. Small jobs fit a leaf, medium jobs a
    pod; all others are large. ``wide`` counts the medium and large jobs of each leaf, ``large`` the large jobs of each
    pod. ``usable`` counts a pod's free nodes on leaves without medium and large jobs, ``most`` the free nodes of the
    pod's emptiest leaf.

    :param cluster: the cluster, without jobs.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.start: list[int] = cluster.pod_start.tolist()
        self.pod_of: list[int] = cluster.pod_of_leaf.tolist()
        self.leaf_free = [last - first for first, last in pairwise(cluster.leaf_start.tolist())]
        self.wide, self.large = [0] * cluster.num_leaves, [0] * cluster.num_pods
        self.pod_free, self.usable, self.most = ([0] * cluster.num_pods for _ in range(3))
        for pod in range(cluster.num_pods):
            self._count(pod)

    def copy(self) -> FreeNodes:
        """Return an independent copy of these numbers."""
        made = copy.copy(self)
        for name in ("leaf_free", "wide", "large", "pod_free", "usable", "most"):
            setattr(made, name, getattr(self, name).copy())
        return made

    def with_numbers(self, leaf_free: list[int], wide: list[int], large: list[int]) -> FreeNodes:
        """Return the numbers of the same cluster with these in place of its own.

        :param leaf_free: number of free nodes, or parts of nodes, of each leaf.
        :param wide: number of medium and large jobs of each leaf.
        :param large: number of large jobs of each pod.
        """
        made = self.copy()
        made.leaf_free, made.wide, made.large = leaf_free, wide, large
        for pod in range(len(large)):
            made._count(pod)
        return made

    def change(self, kind: int, held: Parts, changed: Parts, sign: int) -> None:
        """Record that a job starts (1) or ends (-1).

        :param kind: kind of the job: SMALL, MEDIUM or LARGE.
        :param held: all nodes of the job, as (leaf, number of nodes).
        :param changed: nodes of the job that become used, or free, as (leaf, number of nodes); the job's other nodes
            do not change, because they are closed or another job holds them, too.
        :param sign: 1 for a start, -1 for an end.
        """
        if kind == SMALL:
            for leaf, nodes in changed:
                self._free(leaf, -sign * nodes)
            return
        for leaf, nodes in changed:
            self.leaf_free[leaf] -= sign * nodes
        for leaf, _ in held:
            self.wide[leaf] += sign
        for pod in {self.pod_of[leaf] for leaf, _ in held}:
            self._count(pod)
            self.large[pod] += sign * (kind == LARGE)

    def _free(self, leaf: int, nodes: int) -> None:
        pod, before = self.pod_of[leaf], self.leaf_free[leaf]
        after = self.leaf_free[leaf] = before + nodes
        self.pod_free[pod] += nodes
        if not self.wide[leaf]:
            self.usable[pod] += nodes
        if after >= self.most[pod]:
            self.most[pod] = after
        elif before == self.most[pod]:
            self.most[pod] = max(self.leaf_free[self.start[pod] : self.start[pod + 1]])

    def _count(self, pod: int) -> None:
        first, last = self.start[pod], self.start[pod + 1]
        free, wide = self.leaf_free[first:last], self.wide[first:last]
        self.pod_free[pod], self.most[pod] = sum(free), max(free)
        self.usable[pod] = sum([nodes for nodes, jobs in zip(free, wide, strict=True) if not jobs])

    def largest(self, kind: int) -> int:
        """Return the size of the largest job of a kind (SMALL, MEDIUM or LARGE) for which there are nodes."""
        if kind == LARGE:
            return sum(nodes for nodes, jobs in zip(self.usable, self.large, strict=True) if not jobs)
        return max(self.most if kind == SMALL else self.usable)

    def choose(self, kind: int, size: int) -> Parts:
        """Return the leaves, each with a number of nodes, that Algorithm 1 chooses for a job for which there are nodes.

        A small or medium job gets nodes of the fullest pod with room for it: a small job on the fullest leaf with
        enough free nodes, a medium job on the pod's emptiest leaves. A large job gets nodes on the emptiest leaves of
        the emptiest pods.
        """
        if kind == LARGE:
            pods = [pod for pod, large in enumerate(self.large) if not large]
            pods.sort(key=lambda pod: -self.pod_free[pod])
            return self._fill([leaf for pod in pods for leaf in self._emptiest(pod)], size)
        room = self.most if kind == SMALL else self.usable
        _, pod = min((free, pod) for pod, free in enumerate(self.pod_free) if room[pod] >= size)
        if kind == MEDIUM:
            return self._fill(self._emptiest(pod), size)
        first, last = self.start[pod], self.start[pod + 1]
        fits = [(free, leaf) for leaf, free in enumerate(self.leaf_free[first:last], first) if free >= size]
        return ((min(fits)[1], size),)

    def _emptiest(self, pod: int) -> list[int]:
        leaves = [leaf for leaf in range(self.start[pod], self.start[pod + 1]) if not self.wide[leaf]]
        leaves.sort(key=lambda leaf: -self.leaf_free[leaf])
        return leaves

    def _fill(self, leaves: Iterable[int], size: int) -> Parts:
        parts = []
        for leaf in leaves:
            if size <= 0:
                break
            nodes = min(size, self.leaf_free[leaf])
            if nodes:
                parts.append((leaf, nodes))
            size -= nodes
        return parts
