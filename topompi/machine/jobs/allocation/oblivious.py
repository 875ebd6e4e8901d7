"""Allocators that start a job whenever enough nodes are free, so that jobs may share links."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .occupancy import Allocator, Job, Occupancy, Placement

__all__ = ["BestFit", "Contiguous", "CountingAllocator", "First"]


class _ByCount(Allocator):
    by_count = True

    def feasible(self, job: Job, state: Occupancy) -> bool:
        """Return whether enough nodes are free."""
        return job.size <= state.free

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        """Return the policy's choice among the free nodes, or None if too few are free."""
        return Placement(self._choose(job.size, state)) if job.size <= state.free else None

    def _choose(self, size: int, state: Occupancy) -> NDArray[np.integer]:
        raise NotImplementedError


class CountingAllocator(_ByCount):
    """An allocator that counts free nodes and does not determine which ones a job gets."""

    name = "counts"
    names_nodes = False

    def _choose(self, size: int, state: Occupancy) -> NDArray[np.integer]:
        return np.empty(0, dtype=np.int64)


class First(_ByCount):
    """An allocator that takes the free nodes with the lowest numbers (Jokanovic 2014, First available)."""

    name = "first"

    def _choose(self, size: int, state: Occupancy) -> NDArray[np.integer]:
        return np.flatnonzero(state.busy == 0)[:size]


class Contiguous(_ByCount):
    """An allocator that takes one leaf, else the shortest run of neighbouring leaves with free nodes.

    This is First contiguous of Jokanovic 2014. A run ends before a leaf without a free node, and may cross pods. Among
    runs of equal length, the one with the lowest leaf is taken. If no run has enough nodes, the first free nodes are
    taken.
    """

    name = "contiguous"

    def _choose(self, size: int, state: Occupancy) -> NDArray[np.integer]:
        free = state.leaf_free
        total = np.concatenate(([0], np.cumsum(free)))
        last = np.searchsorted(total, total[:-1] + size)  # the run that begins at a leaf ends before this leaf
        gap = np.concatenate(([0], np.cumsum(free == 0)))
        whole = last < len(total)
        whole[whole] &= gap[last[whole]] == gap[:-1][whole]
        if not whole.any():
            return np.flatnonzero(state.busy == 0)[:size]
        starts = np.flatnonzero(whole)
        best = starts[np.argmin(last[starts] - starts)]
        return state.take(np.arange(best, last[best]), size)


class BestFit(_ByCount):
    """An allocator that takes nodes of the lowest subtree with enough free nodes; of several, that with the fewest.

    This is Slurm's topology/tree. A subtree is a leaf, a pod or the cluster. In the subtree, nodes are taken leaf by
    leaf until the job has all of its nodes: the next leaf is the fullest one that still has all missing nodes free, or,
    if there is none, the leaf with the most free nodes.
    """

    name = "bestfit"

    def _choose(self, size: int, state: Occupancy) -> NDArray[np.integer]:
        leaf = _tightest(state.leaf_free, size)
        if leaf >= 0:
            return state.first_free(leaf, size)
        pod = _tightest(state.pod_free, size)
        free = state.leaf_free.copy()
        if pod >= 0:
            free[state.cluster.pod_of_leaf != pod] = 0
        order: list[int] = []
        while size > 0:
            fits = _tightest(free, size)
            order.append(fits if fits >= 0 else int(np.argmax(free)))
            size -= int(free[order[-1]])
            free[order[-1]] = 0
        return state.take(np.array(order), int(state.leaf_free[order].sum() + min(size, 0)))


def _tightest(free: NDArray[np.integer], size: int) -> int:
    """Return the index of the smallest number in ``free`` that is at least ``size``; -1 if there is none."""
    fits = np.flatnonzero(free >= size)
    return int(fits[np.argmin(free[fits])]) if len(fits) else -1
