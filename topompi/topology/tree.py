"""The cluster tree, in which hosts are grouped by distance, level by level."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["UNREACHABLE", "ClusterTree", "cluster_tree"]

IntArray = NDArray[np.int32]
UNREACHABLE = 255  # distance in hops of hosts without a route, because every route is shorter


@dataclass(frozen=True, eq=False)
class ClusterTree:
    """A rooted tree whose leaves are hosts, and whose inner nodes are switch clusters (hosts that are near each other).

    Nodes 0..H-1 are the hosts; the later nodes are clusters in the order of their creation; the last node is the root.

    :param num_hosts: number of hosts, H.
    :param parent: parent of each node, shape (nodes,), -1 at the root.
    :param height: distance in hops at which the members of each node were joined, shape (nodes,): 0 for hosts,
        UNREACHABLE if there is no route between some members.
    """

    num_hosts: int
    parent: IntArray
    height: IntArray

    def __repr__(self) -> str:
        return f"ClusterTree({self.num_hosts:,} hosts, {len(self.parent) - self.num_hosts:,} clusters)"

    @property
    def root(self) -> int:
        """Number of the root, the only node that has no parent."""
        return len(self.parent) - 1

    @cached_property
    def children(self) -> tuple[IntArray, ...]:
        """Children of each node, one ascending array per node."""
        order = np.argsort(self.parent, kind="stable").astype(np.int32)
        bounds = np.searchsorted(self.parent[order], np.arange(len(self.parent) + 1))
        return tuple(order[a:b] for a, b in itertools.pairwise(bounds))

    @cached_property
    def cuts(self) -> IntArray:
        """The distinct distances at which clusters were joined, largest first, one per level of the tree."""
        return np.unique(self.height[self.num_hosts :])[::-1]

    @property
    def depth(self) -> int:
        """Number of levels below the root: the root is at depth 0, the hosts are at this depth."""
        return len(self.cuts)

    @cached_property
    def clusters(self) -> IntArray:
        """Cluster (tree node) of each host at each depth, shape (depth + 1, H); an unjoined host is its own cluster.

        The clusters at depth d are those joined at distances below the d-th largest one in ``cuts``. Therefore all
        branches have the same levels, even if a host or a leaf switch joins others only near the root.
        """
        ancestor = np.arange(self.num_hosts, dtype=np.int32)
        rows = [ancestor]
        for cut in self.cuts[::-1]:
            while True:
                parent = self.parent[ancestor]
                climbs = (parent >= 0) & (self.height[parent] <= cut)
                if not climbs.any():
                    break
                ancestor = np.where(climbs, parent, ancestor)
            rows.append(ancestor)
        return np.stack(rows[::-1])

    def walk(self) -> Iterator[tuple[int, int]]:
        """Iterate over all nodes with their depth below the root, parents first, children in ascending order."""
        stack = [(self.root, 0)]
        while stack:
            node, depth = stack.pop()
            yield node, depth
            stack.extend((int(child), depth + 1) for child in self.children[node][::-1])


def cluster_tree(distance: NDArray[np.integer]) -> ClusterTree:
    """Cluster hosts by agglomeration with complete linkage: each step joins all mutually nearest hosts or clusters.

    One step of the source (Subramoni 2013, section 2.8): take the smallest distance m, the first pair (i, j) at
    distance m, and all k with d(i, k) = m that are mutually at distance m, in ascending order; join them to a new node
    whose distance to any x is the largest of its members' distances to x. This function makes all joins of one m in one
    pass. They do not interfere, because a new node is farther than m from every other node; a node at distance m from
    all members of the new node would have joined it.

    Two points differ from the source: d(i, j) and d(j, i) may be different, because routes may be, and the larger one
    counts; hosts without a route are UNREACHABLE (255) apart and join last, at the root.

    :param distance: number of switches on the route from host i to host j, shape (H, H), negative if there is no route.
    Cost: O(H^2) bytes, and one pass over the shrinking matrix for each distinct distance.
    """
    matrix = np.where(distance < 0, UNREACHABLE, distance).astype(np.uint8)
    np.maximum(matrix, matrix.T.copy(), out=matrix)
    np.fill_diagonal(matrix, UNREACHABLE)
    hosts = len(matrix)
    active = np.arange(hosts)
    parents, heights = [np.full(hosts, -1)], [np.zeros(hosts, dtype=np.int64)]
    nodes = hosts
    while len(active) > 1:
        nearest = int(matrix.min())  # the diagonal does not count, because it is UNREACHABLE and _merge keeps it so
        groups = _mutual_groups(matrix, nearest)
        joined = np.concatenate(groups)
        parent = np.concatenate(parents)
        for new, members in enumerate(groups, nodes):
            parent[active[members]] = new
        parents = [parent, np.full(len(groups), -1)]
        heights.append(np.full(len(groups), nearest))
        left = np.setdiff1d(np.arange(len(active)), joined)
        matrix = _merge(matrix, left, groups)
        active = np.concatenate((active[left], np.arange(nodes, nodes + len(groups))))
        nodes += len(groups)
    parent = np.concatenate(parents)
    return ClusterTree(hosts, parent.astype(np.int32), np.concatenate(heights).astype(np.int32))


def _mutual_groups(matrix: NDArray[np.uint8], nearest: int) -> list[NDArray[np.int64]]:
    """Find the groups of nodes that join at distance ``nearest``, in the order in which single steps find them."""
    free = np.ones(len(matrix), dtype=bool)
    groups = []
    for first in range(len(matrix)):
        if not free[first]:
            continue
        near = np.flatnonzero((matrix[first] == nearest) & free)
        near = near[near != first]
        if not len(near):
            continue
        members = _mutual(matrix, np.concatenate(([first], near)), nearest)
        free[members] = False
        groups.append(members)
    return groups


def _mutual(matrix: NDArray[np.uint8], members: NDArray[np.int64], nearest: int) -> NDArray[np.int64]:
    """Keep the members that are at distance ``nearest`` from all members kept before them.

    :param matrix: distances between the active nodes, shape (nodes, nodes).
    :param members: positions in the matrix, in the order in which they are considered.
    :param nearest: smallest distance in the matrix.
    """
    at_nearest = matrix[np.ix_(members, members)] == nearest
    np.fill_diagonal(at_nearest, True)
    if at_nearest.all():
        return members
    allowed = at_nearest[0].copy()
    kept = np.zeros(len(members), dtype=bool)
    for candidate in range(len(members)):
        if allowed[candidate]:
            kept[candidate] = True
            allowed &= at_nearest[candidate]
    return members[kept]


def _merge(matrix: NDArray[np.uint8], left: NDArray[np.int64], groups: list[NDArray[np.int64]]) -> NDArray[np.uint8]:
    """Compute the distances of the unjoined and the new nodes; a new node is as far away as its farthest member.

    :param matrix: distances before the joins, shape (nodes, nodes).
    :param left: positions of the unjoined nodes, which come first in the result.
    :param groups: positions of each new node's members.
    """
    order = np.concatenate((left, *groups))
    sizes = np.concatenate((np.ones(len(left), dtype=np.int64), [len(group) for group in groups]))
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    rows = np.maximum.reduceat(matrix[order], starts, axis=0)
    return np.ascontiguousarray(np.maximum.reduceat(rows[:, order], starts, axis=1))
