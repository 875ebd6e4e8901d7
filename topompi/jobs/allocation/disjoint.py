"""Allocators on the true routes: no two jobs can use the same directed link between switches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from .oblivious import _tightest
from .state import Allocator, Job, Placement, State

__all__ = ["Disjoint", "Exact"]

Indices = NDArray[np.integer]
Mask = NDArray[np.bool_]


class _Links(State):
    """Jobs on each link; the routes from each leaf to each node that cross no link in use."""

    def __init__(self, cluster: Cluster, steps: Indices) -> None:
        super().__init__(cluster)
        self.steps = steps
        self.used = np.zeros(cluster.links.num_links + 1, dtype=np.int32)  # the last one stands for no link
        self.known: Mask | None = None
        self.found: dict[int, Placement | None] = {}  # in this state, by the size of the job

    def _change(self, job: Job, placement: Placement, sign: int) -> None:
        super()._change(job, placement, sign)
        self.found.clear()
        links = self.cluster.links.links_of(placement.nodes[: job.size])
        if len(links):
            self.used[links] += sign
            self.known = None

    @property
    def open(self) -> Mask:
        """Whether the route from a leaf to a node crosses no link in use, shape (leaves, nodes)."""
        if self.known is None:
            self.known = np.logical_not(np.asarray((self.used > 0)[self.steps].any(axis=2)))
        return self.known


class Exact(Allocator):
    """The fewest leaves whose routes cross no link in use, by integer programming; for small clusters.

    A node is chosen only with its leaf, and not together with a leaf from which its route is not open.
    """

    name = "exact"
    monotone = True

    def __init__(self) -> None:
        self._steps: dict[int, tuple[Cluster, Indices]] = {}

    def state(self, cluster: Cluster) -> State:
        """The state of the cluster without jobs; cost: leaves x nodes x (longest route) numbers."""
        if id(cluster) not in self._steps:
            self._steps[id(cluster)] = cluster, cluster.links.table()
        return _Links(cluster, self._steps[id(cluster)][1])

    def place(self, job: Job, state: State) -> Placement | None:
        """Nodes of one leaf, else what the search finds; a state is searched once for each size."""
        assert isinstance(state, _Links)
        leaf = _tightest(state.leaf_free, job.size)
        if leaf >= 0:
            return Placement(state.first_free(leaf, job.size))
        if job.size > state.free:
            return None
        if job.size not in state.found:
            state.found[job.size] = self._search(job.size, state)
        return state.found[job.size]

    def _search(self, size: int, state: _Links) -> Placement | None:
        return _solve(size, state)

    def admits(self, placement: Placement, state: State) -> bool:
        """Whether the nodes are free, and all links between them."""
        assert isinstance(state, _Links)
        links = state.cluster.links.links_of(placement.nodes)
        return super().admits(placement, state) and not state.used[links].any()


class Disjoint(Exact):
    """Leaf after leaf, each time the one with the most nodes open to and from all chosen ones; the best of some starts.

    Where that finds too few and few nodes are free, the exact program has the last word.

    :param repair: free nodes up to which it is asked.
    :param starts: leaves from which it begins, those with the most nodes to offer.
    """

    name = "disjoint"
    monotone = False

    def __init__(self, repair: int = 64, starts: int = 16) -> None:
        super().__init__()
        self.repair, self.starts = repair, starts

    def _search(self, size: int, state: _Links) -> Placement | None:
        free = _reachable(size, state)
        if free.sum() < size:
            return None
        best: Indices | None = None
        fewest = state.cluster.num_leaves + 1
        usable = np.bincount(state.cluster.leaf[free], minlength=state.cluster.num_leaves)
        least = int(np.searchsorted(np.cumsum(np.sort(usable)[::-1]), size)) + 1  # leaves that any attempt needs
        for start in np.argsort(-usable, kind="stable")[: min(self.starts, int((usable > 0).sum()))].tolist():
            for careful in (False, True):
                found, leaves = _grow(size, start, free, state, careful, fewest)
                if found is not None and leaves < fewest:
                    best, fewest = found, leaves
            if fewest <= least:
                break
        if best is not None:
            return Placement(best)
        return _solve(size, state) if state.free <= self.repair else None


def _reachable(size: int, state: _Links) -> Mask:
    """Free nodes that may be part of a job: from their leaf, enough others can be reached that may be part, too."""
    free: Mask = state.busy == 0
    while True:
        enough = np.asarray((state.open & free).sum(axis=1)) >= size
        left: Mask = free & enough[state.cluster.leaf]
        if left.sum() == free.sum():
            return left
        free = left


def _grow(size: int, start: int, free: Mask, state: _Links, careful: bool, fewest: int) -> tuple[Indices | None, int]:
    """Nodes from one leaf on, and the number of leaves; a careful attempt leaves out nodes that shut out others."""
    leaf_of, routes = state.cluster.leaf, state.open
    candidates, leaf = free.copy(), start
    parts: list[Indices] = []
    while len(parts) + 1 < fewest:
        nodes = np.flatnonzero(candidates & (leaf_of == leaf))
        count = np.bincount(leaf_of[candidates], minlength=state.cluster.num_leaves)
        count[leaf] = 0
        lost = ((~routes[:, nodes]) * count[:, None]).sum(axis=0)
        nodes = nodes[np.argsort(lost, kind="stable")][:size]
        if careful:
            nodes = nodes[np.sort(lost, kind="stable")[:size] == 0]
        if not len(nodes):
            return None, fewest
        parts.append(nodes)
        size -= len(nodes)
        if size <= 0:
            return np.concatenate(parts), len(parts)
        candidates &= routes[leaf] & np.asarray(routes[:, nodes].all(axis=1))[leaf_of] & (leaf_of != leaf)
        if candidates.sum() < size:
            return None, fewest
        leaf = int(np.argmax(np.bincount(leaf_of[candidates], minlength=state.cluster.num_leaves)))
    return None, fewest


def _solve(size: int, state: _Links) -> Placement | None:
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array, vstack

    nodes = np.flatnonzero(state.busy == 0)
    leaves, place = np.unique(state.cluster.leaf[nodes], return_inverse=True)
    shut = ~state.open[np.ix_(leaves, nodes)]
    from_leaf, to_node = np.nonzero(shut)
    count, rows = len(nodes), np.arange(len(nodes))
    both = np.concatenate((rows, rows)), np.concatenate((rows, count + place))
    width = count + len(leaves)
    chosen_with_leaf = coo_array((np.repeat([1.0, -1.0], count), both), shape=(count, width))
    pairs = np.arange(len(to_node))
    ends = np.concatenate((pairs, pairs)), np.concatenate((to_node, count + from_leaf))
    not_together = coo_array((np.ones(2 * len(pairs)), ends), shape=(len(pairs), width))
    total = coo_array((np.ones(count), (np.zeros(count, dtype=int), rows)), shape=(1, width))
    upper = np.concatenate((np.zeros(count), np.ones(len(pairs)), [size]))
    lower = np.concatenate((np.full(count + len(pairs), -np.inf), [size]))
    cost = np.concatenate((np.zeros(count), np.ones(len(leaves))))
    matrix = vstack((chosen_with_leaf, not_together, total)).tocsr()
    answer = milp(
        cost,
        integrality=np.ones(width, dtype=np.int64),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, lower, upper),
    )
    return Placement(nodes[answer.x[:count] > 0.5]) if answer.x is not None else None
