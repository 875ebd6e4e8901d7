"""Allocators that follow the real routes, so that no two jobs can use the same directed link between switches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from .leaf_search import LeafSearch
from .oblivious import _tightest
from .occupancy import Allocator, Job, Occupancy, Placement

__all__ = ["Disjoint", "Exact"]

Indices = NDArray[np.integer]
Mask = NDArray[np.bool_]


class _LeafRoutes(NamedTuple):
    """The links on the route from each leaf to each node, with an index from each link to the routes over it."""

    steps: Indices
    first: Indices
    places: Indices

    @classmethod
    def of(cls, steps: Indices, num_links: int) -> _LeafRoutes:
        """Index ``steps``: link numbers, shape (leaves, nodes, longest route), -1 after the end of a route."""
        link = steps.reshape(-1)
        order = np.argsort(link, kind="stable")
        first = np.searchsorted(link[order], np.arange(num_links + 1))
        return cls(steps, first, order // steps.shape[2])

    def crossing(self, links: Indices) -> Indices:
        """Return flat positions in the (leaves, nodes) table of the routes over these links, once per link crossed."""
        first, each = self.first[links], self.first[links + 1] - self.first[links]
        at = np.repeat(first - np.cumsum(each) + each, each) + np.arange(each.sum())
        places: Indices = self.places[at]
        return places


class _Links(Occupancy):
    """A state with the number of jobs on each link, and of links in use on each route from a leaf to a node."""

    def __init__(self, cluster: Cluster, table: _LeafRoutes) -> None:
        super().__init__(cluster)
        self.table = table
        self.used = np.zeros(cluster.links.num_links, dtype=np.int32)
        self.crossed = np.zeros(table.steps.shape[:2], dtype=np.int16)
        self._found: dict[int, Placement | None] = {}  # results of searches in the present state, by size of the job

    def _change(self, job: Job, placement: Placement, sign: int) -> None:
        super()._change(job, placement, sign)
        links = self.cluster.links.links_of(placement.nodes[: job.size])
        self.used[links] += sign
        changed = links[self.used[links] == (1 if sign > 0 else 0)]
        np.add.at(self.crossed.reshape(-1), self.table.crossing(changed), sign)

    def _count(self, changed: NDArray[np.integer], sign: int) -> None:
        super()._count(changed, sign)
        self._found.clear()  # also after nodes are closed or reopened, which changes the state

    @property
    def open(self) -> Mask:
        """Whether the route from a leaf to a node crosses no link in use, shape (leaves, nodes)."""
        return np.asarray(self.crossed == 0)


class Exact(Allocator):
    """An allocator that finds, by integer programming, nodes on the fewest leaves whose routes cross no link in use.

    It is for small clusters. The program chooses a node only together with its leaf, and never together with a leaf
    whose route to the node crosses a link in use.
    """

    name = "exact"
    monotone = True

    def __init__(self) -> None:
        self._tables: dict[int, tuple[Cluster, _LeafRoutes]] = {}

    def state(self, cluster: Cluster) -> Occupancy:
        """Return the state of the cluster without jobs. Cost: leaves x nodes x (longest route) numbers."""
        if id(cluster) not in self._tables:
            self._tables[id(cluster)] = cluster, _LeafRoutes.of(cluster.links.table(), cluster.links.num_links)
        return _Links(cluster, self._tables[id(cluster)][1])

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        """Return nodes of one leaf, else those that the search finds; it runs once per state and size of job."""
        assert isinstance(state, _Links)
        leaf = _tightest(state.leaf_free, job.size)
        if leaf >= 0:
            return Placement(state.first_free(leaf, job.size))
        if job.size > state.free:
            return None
        if job.size not in state._found:
            state._found[job.size] = self._search(job.size, state)
        return state._found[job.size]

    def _search(self, size: int, state: _Links) -> Placement | None:
        return _solve(size, state)

    def admits(self, placement: Placement, state: Occupancy) -> bool:
        """Return whether the nodes are free and no other job can use the links between them."""
        assert isinstance(state, _Links)
        links = state.cluster.links.links_of(placement.nodes)
        return super().admits(placement, state) and not state.used[links].any()


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
        super().__init__()
        self.repair, self.starts = repair, starts

    def _search(self, size: int, state: _Links) -> Placement | None:
        nodes, open_routes = _reachable(size, state)
        if len(nodes) < size:
            return None
        found = LeafSearch(nodes, state.cluster.leaf[nodes], open_routes, self.starts).run(size)
        if found is not None:
            return Placement(found)
        return _solve(size, state) if state.free <= self.repair else None


def _reachable(size: int, state: _Links) -> tuple[Indices, Mask]:
    """Return the free nodes that a job may get, and whether each leaf's route to each of them crosses no used link.

    A node is removed if its leaf reaches fewer than ``size`` of the remaining nodes; this repeats until none is
    removed.
    """
    nodes = np.flatnonzero(state.busy == 0)
    open_routes = state.open[:, nodes]
    while True:
        enough = open_routes.sum(axis=1) >= size
        left = enough[state.cluster.leaf[nodes]]
        if left.all():
            return nodes, open_routes
        nodes, open_routes = nodes[left], open_routes[:, left]


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
