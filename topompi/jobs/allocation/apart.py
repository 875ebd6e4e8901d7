"""An allocator that chooses a job's nodes so that the job's routes enter a leaf by a different link for each node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from .oblivious import BestFit, _tightest
from .occupancy import Occupancy

__all__ = ["Apart", "sharing_nodes"]

Indices = NDArray[np.integer]
TRIES = 16  # numbers of leaves that are tried, which bounds the time of a search


class _Entries(NamedTuple):
    """The link by which the route from each leaf enters the leaf of each node.

    :param number: number of the link among those that enter the node's leaf, shape (leaves, nodes); -1 for the node's
        own leaf.
    :param most: largest number of links that enter a leaf.
    """

    number: Indices
    most: int

    @classmethod
    def of(cls, cluster: Cluster) -> _Entries:
        steps = cluster.links.table()
        last = np.full(steps.shape[:2], -1, dtype=np.int64)
        for step in range(steps.shape[2]):  # the last link that is no padding; rows of some routes are shorter
            last = np.where(steps[:, :, step] >= 0, steps[:, :, step], last)
        leaf_of_link = np.full(cluster.links.num_links, cluster.num_leaves)
        there = last >= 0
        leaf_of_link[last[there]] = np.broadcast_to(cluster.leaf, last.shape)[there]
        order = np.argsort(leaf_of_link, kind="stable")
        first = np.searchsorted(leaf_of_link[order], np.arange(cluster.num_leaves + 1))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order)) - first[leaf_of_link[order]]
        number = np.where(there, place[last], -1)
        return cls(number, int(number.max(initial=-1)) + 1)

    def masks(self, leaves: Indices, nodes: Indices) -> list[int]:
        """Links by which routes from some leaves to each node enter its leaf, as the bits of an integer per node."""
        entered = np.zeros((len(nodes), self.most + 1), dtype=bool)  # the last column is for -1
        entered[np.arange(len(nodes)), self.number[leaves[:, None], nodes]] = True
        packed = np.packbits(entered[:, :-1], axis=1)
        return [int.from_bytes(row.tobytes(), "big") for row in packed]


class Apart(BestFit):
    """An allocator that gives a job nodes of which no two share a link into their leaf, if there are enough.

    Subramoni 2013, chapter 8, keeps a list of the hosts that share a link just above the leaf and never gives two of
    them to one job. Here only links count that routes between the job's own nodes use: the nodes of a job on one leaf
    share none. Fewer leaves are tried before more. If the search finds no nodes and at most ``repair`` nodes are free,
    integer programming decides whether there are any; if there are none, the nodes are those of `BestFit`.

    :param repair: largest number of free nodes with which the integer program runs.
    """

    name = "apart"

    def __init__(self, repair: int = 48) -> None:
        self.repair = repair
        self._known: tuple[Cluster, _Entries] | None = None

    def _choose(self, size: int, state: Occupancy) -> NDArray[np.integer]:
        leaf = _tightest(state.leaf_free, size)
        if leaf >= 0:
            return state.first_free(leaf, size)
        if self._known is None or self._known[0] is not state.cluster:
            self._known = state.cluster, _Entries.of(state.cluster)
        entries = self._known[1]
        found = _search(size, state, entries)
        if found is None and state.free <= self.repair:
            found = _solve(size, state, entries)
        return super()._choose(size, state) if found is None else found


def _search(size: int, state: Occupancy, entries: _Entries) -> Indices | None:
    """Nodes on the first few leaves, of those with the most nodes on different links, that suffice; None if none do."""
    nodes = np.flatnonzero(state.busy == 0)
    leaf = state.cluster.leaf[nodes]
    present = np.unique(leaf)
    counts = np.bincount(leaf[_apart(entries.masks(present, nodes), leaf)], minlength=state.cluster.num_leaves)
    order = present[np.lexsort((state.leaf_free[present], -counts[present]))]
    least = int(np.searchsorted(np.cumsum(np.sort(state.leaf_free)[::-1]), size)) + 1
    for number in np.unique(np.geomspace(max(least, 2), max(len(order), 2), TRIES).round().astype(int)):
        leaves = order[:number]
        some = nodes[np.isin(leaf, leaves)]
        where = state.cluster.leaf[some]
        chosen = some[_apart(entries.masks(leaves, some), where)]
        if len(chosen) >= size:
            rank = np.full(state.cluster.num_leaves, len(order))
            rank[leaves] = np.arange(len(leaves))
            return np.sort(chosen[np.argsort(rank[state.cluster.leaf[chosen]], kind="stable")][:size])
    return None


def _apart(masks: list[int], leaf: Indices) -> list[int]:
    """Positions of nodes of which no two on one leaf have a common bit; those with the fewest bits are taken first."""
    used: dict[int, int] = {}
    chosen = []
    for at in sorted(range(len(masks)), key=lambda at: masks[at].bit_count()):
        here = int(leaf[at])
        if not used.get(here, 0) & masks[at]:
            used[here] = used.get(here, 0) | masks[at]
            chosen.append(at)
    return sorted(chosen)


def _solve(size: int, state: Occupancy, entries: _Entries) -> Indices | None:
    """Nodes on the fewest leaves of which no two share a link into their leaf; None if there are none.

    The integer program chooses nodes x and leaves y, and z for a link that a route from a chosen leaf to a chosen node
    uses: x + y - z <= 1. At most one node uses a link.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array, vstack

    nodes = np.flatnonzero(state.busy == 0)
    leaves, place = np.unique(state.cluster.leaf[nodes], return_inverse=True)
    number = entries.number[np.ix_(leaves, nodes)]
    from_leaf, to_node = np.nonzero(number >= 0)
    uses = np.stack((place[to_node], number[from_leaf, to_node], to_node))
    used, which = np.unique(uses, axis=1, return_inverse=True)
    links, link = np.unique(used[:2], axis=1, return_inverse=True)
    which, link = which.ravel(), link.ravel()
    count, count_leaves, count_used = len(nodes), len(leaves), used.shape[1]
    width = count + count_leaves + count_used

    def rows(number: int, *terms: tuple[float, Indices, Indices]) -> coo_array:
        values = np.concatenate([np.full(len(row), value) for value, row, _ in terms])
        where = np.concatenate([row for _, row, _ in terms]), np.concatenate([column for _, _, column in terms])
        return coo_array((values, where), shape=(number, width))

    pairs, each = np.arange(len(to_node)), np.arange(count)
    first_used = count + count_leaves
    constraints = vstack(
        (
            rows(
                len(pairs), (1, pairs, to_node), (1, pairs, count + from_leaf), (-1, pairs, first_used + which.ravel())
            ),
            rows(links.shape[1], (1, link, first_used + np.arange(count_used))),
            rows(count, (1, each, each), (-1, each, count + place)),
            rows(1, (1, np.zeros(count, dtype=np.int64), each)),
        )
    ).tocsr()
    upper = np.concatenate((np.ones(len(pairs) + links.shape[1]), np.zeros(count), [size]))
    lower = np.concatenate((np.full(len(upper) - 1, -np.inf), [size]))
    cost = np.concatenate((np.zeros(count), np.ones(count_leaves), np.zeros(count_used)))
    answer = milp(
        cost,
        integrality=np.ones(width, dtype=np.int64),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(constraints, lower, upper),
    )
    return None if answer.x is None else nodes[answer.x[:count] > 0.5]


def sharing_nodes(nodes: Indices, cluster: Cluster) -> Indices:
    """Find the nodes of a job that share, with another one, a link by which the job's routes enter their leaf.

    :param nodes: numbers of the job's nodes, shape (nodes,).
    :param cluster: the machine.
    """
    leaf = cluster.leaf[nodes].tolist()
    masks = _Entries.of(cluster).masks(np.unique(cluster.leaf[nodes]), nodes)
    once, twice = (
        dict.fromkeys(leaf, 0),
        dict.fromkeys(leaf, 0),
    )  # links that routes to one node, or to several, enter by
    for mask, here in zip(masks, leaf, strict=True):
        twice[here] |= once[here] & mask
        once[here] |= mask
    return nodes[[bool(mask & twice[here]) for mask, here in zip(masks, leaf, strict=True)]]
