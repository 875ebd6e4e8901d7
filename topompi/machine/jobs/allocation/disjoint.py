"""Allocators that follow the real routes, so that no two jobs can use the same directed link between switches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from .link_occupancy import LinkOccupancy, RoutesOfLinks
from .oblivious import _tightest
from .occupancy import Allocator, Job, Occupancy, Placement

__all__ = ["Disjoint", "Exact", "solve"]

Indices = NDArray[np.integer]


class Exact(Allocator):
    """An allocator that finds, by integer programming, nodes on the fewest leaves whose routes cross no link in use.

    It is for small clusters. The program chooses a node only together with its leaf, and never together with a leaf
    whose route to the node crosses a link in use.
    """

    name = "exact"
    monotone = True

    def state(self, cluster: Cluster) -> Occupancy:
        """Return the state of the cluster without jobs. Cost: leaves x nodes x (longest route) numbers."""
        return LinkOccupancy(cluster.derived(RoutesOfLinks))

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        """Return nodes of one leaf, else those that the search finds; it runs once per state and size of job."""
        assert isinstance(state, LinkOccupancy)
        leaf = _tightest(state.leaf_free, job.size)
        if leaf >= 0:
            return Placement(state.first_free(leaf, job.size))
        if job.size > state.free:
            return None
        if job.size not in state._found:
            nodes = self._search(job.size, state)
            state._found[job.size] = None if nodes is None else Placement(nodes)
        return state._found[job.size]

    def _search(self, size: int, state: LinkOccupancy) -> Indices | None:
        return solve(size, state)

    def admits(self, placement: Placement, state: Occupancy) -> bool:
        """Return whether the nodes are free and no other job can use the links between them."""
        assert isinstance(state, LinkOccupancy)
        if not super().admits(placement, state):
            return False
        return not state.used[state.cluster.links.links_of(placement.nodes)].any()


class Disjoint(Exact):
    """An allocator that adds leaves one by one, each time the leaf with the most nodes reachable by unused links.

    The routes between a new node and all chosen nodes, in both directions, must cross no link in use. The search runs
    from several first leaves. If it finds too few nodes and at most ``repair`` nodes are free, the integer program of
    `Exact` decides.

    :param repair: largest number of free nodes with which the integer program runs.
    :param starts: number of first leaves that are tried; these are the leaves with the most usable nodes.
    """

    name = "disjoint"
    monotone = False

    def __init__(self, repair: int = 64, starts: int = 16) -> None:
        self.repair, self.starts = repair, starts

    def _search(self, size: int, state: LinkOccupancy) -> Indices | None:
        if not state.reaches(size):
            return None
        found = state.free_leaves.search(size, self.starts)
        return solve(size, state) if found is None and state.free <= self.repair else found


def solve(size: int, state: LinkOccupancy) -> Indices | None:
    """Return ``size`` nodes on the fewest leaves, found by integer programming; None if there are none."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array, vstack

    nodes = np.flatnonzero(state.busy == 0)
    leaves, place = np.unique(state.cluster.leaf[nodes], return_inverse=True)
    shut = ~state.is_open(leaves, nodes)
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
    return nodes[answer.x[:count] > 0.5] if answer.x is not None else None
