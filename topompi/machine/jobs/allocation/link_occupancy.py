"""The state for allocators that follow the real routes: the routes from leaves to nodes that running jobs block."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from .free_leaves import FreeLeaves
from .leaf_bits import LeafBits, Words, unpack
from .occupancy import Job, Occupancy, Placement

__all__ = ["LinkOccupancy", "RoutesOfLinks"]

Indices = NDArray[np.integer]
Mask = NDArray[np.bool_]


class RoutesOfLinks:
    """An index from each link to the routes from leaves to nodes over it.

    A set of routes is an array of words, shape (leaves, words), in which a bit stands for the route to its node.

    Cost: memory of 8 bytes for each link of each route.

    :param cluster: the cluster that has the routes.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.bits = cluster, LeafBits(cluster.leaf_start)
        steps = cluster.links.table()
        link = steps.reshape(-1)
        order = np.argsort(link, kind="stable")
        first = np.searchsorted(link[order], np.arange(cluster.links.num_links + 1))
        leaf, node = np.divmod(order[first[0] :] // steps.shape[2], steps.shape[1])
        self._first = first - first[0]
        self._size = cluster.num_leaves * self.bits.size
        self._place = leaf * self.bits.size + self.bits.place[node]

    def over(self, links: Indices) -> Words:
        """Return the set of the routes over one or more of these links."""
        made = np.zeros(self._size, dtype=bool)
        for first, last in zip(self._first[links].tolist(), self._first[links + 1].tolist(), strict=True):
            made[self._place[first:last]] = True
        return self.bits.pack(made.reshape(self.cluster.num_leaves, -1))


class LinkOccupancy(Occupancy):
    """A state with the number of jobs on each link, and of the jobs that block each route from a leaf to a node.

    A job blocks the routes over the links that it can use. Their number of jobs is in binary: ``digits[i]`` is the set
    of the routes whose number has the digit 2**i. Its arrays never change, because copies of the state share them.

    :param routes: the cluster's routes from leaves to nodes.
    """

    def __init__(self, routes: RoutesOfLinks) -> None:
        super().__init__(routes.cluster)
        self.routes = routes
        self.used = np.zeros(routes.cluster.links.num_links, dtype=np.int32)
        self._digits: tuple[Words, ...] = (routes.over(np.empty(0, dtype=np.int64)),)
        self._links: dict[int, Indices] = {}  # of the jobs on several leaves, by job
        self._blocked: dict[int, Words] = {}  # routes that these jobs block; a new job's only when a search needs them
        self._found: dict[int, Placement | None] = {}  # results of searches in the present state, by size of the job
        self._free_leaves: FreeLeaves | None = None

    def _change(self, job: Job, placement: Placement, sign: int) -> None:
        super()._change(job, placement, sign)
        nodes = placement.nodes[: job.size]
        leaf = self.cluster.leaf[nodes]
        if (leaf == leaf[:1]).all():
            return  # nodes of one leaf use no links between switches
        if sign > 0:
            self._links[job.number] = links = self.cluster.links.links_of(nodes)
        else:
            links, routes = self._links.pop(job.number), self._blocked.pop(job.number, None)
            self._digits = self._digits if routes is None else _counted(self._digits, routes, -1)
        self.used[links] += sign

    def _count(self, changed: Indices, sign: int) -> None:
        super()._count(changed, sign)
        self._found, self._free_leaves = {}, None  # also after nodes are closed or reopened, which changes the state

    def copy(self) -> Occupancy:
        """Return an independent copy of this state, after the routes of new jobs are found, which both then know."""
        self._find_routes()
        return super().copy()

    @property
    def digits(self) -> tuple[Words, ...]:
        """The binary digits of the number of jobs that block each route."""
        self._find_routes()
        return self._digits

    def _find_routes(self) -> None:
        for number in self._links.keys() - self._blocked.keys():
            self._blocked[number] = self.routes.over(self._links[number])
            self._digits = _counted(self._digits, self._blocked[number], 1)
            self._free_leaves = None  # it was made without these routes

    @property
    def free_leaves(self) -> FreeLeaves:
        """The leaves with free nodes; copies of the state share it until they change."""
        return self._leaves(self.digits)

    def reaches(self, size: int) -> bool:
        """Return whether there are leaves that each reach ``size`` free nodes of each other.

        The routes of new jobs are found only if there would be such leaves without these jobs' routes.
        """
        if not self._leaves(self._digits).usable(size).any():
            return False
        return bool(self.free_leaves.usable(size).any())

    def _leaves(self, digits: tuple[Words, ...]) -> FreeLeaves:
        if self._free_leaves is None:
            self._free_leaves = FreeLeaves(self.routes.bits, self.busy == 0, self.leaf_free, partial(_open, digits))
        return self._free_leaves

    def open(self, leaves: Indices) -> Words:
        """Return the set of the routes from some leaves that no job blocks, shape (leaves, words)."""
        return _open(self.digits, leaves)

    def is_open(self, leaves: Indices, nodes: Indices) -> Mask:
        """Return whether no job blocks the route from each leaf to each node, shape (leaves, nodes)."""
        return unpack(self.open(leaves))[:, self.routes.bits.place[nodes]] > 0


def _open(digits: tuple[Words, ...], leaves: Indices) -> Words:
    blocked: Words = np.bitwise_or.reduce([digit[leaves] for digit in digits])
    return ~blocked


def _counted(digits: tuple[Words, ...], routes: Words, sign: int) -> tuple[Words, ...]:
    """Return the binary digits of numbers of jobs after a job has started (sign 1), or ended (-1).

    :param digits: the digits before, the lowest first.
    :param routes: the routes that the job blocks.
    :param sign: 1 or -1.
    """
    made = []
    for digit in digits:
        made.append(digit ^ routes)
        routes = routes & (digit if sign > 0 else ~digit)  # what is carried, or borrowed
    return (*made, routes) if routes.any() else tuple(made)
