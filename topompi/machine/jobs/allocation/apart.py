"""An allocator by which the job's routes to two nodes of one leaf enter the leaf switch by different links."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from .oblivious import BestFit, _tightest
from .occupancy import Occupancy

__all__ = ["Apart", "sharing_nodes"]

Indices = NDArray[np.integer]
TRIES = 16  # how many numbers of leaves a search tries, from few to many; limits its time


class _Entries(NamedTuple):
    """The link by which the route from each leaf enters the leaf of each node.

    :param number: number of the link, counted from 0 among the links that enter the node's leaf, shape (leaves, nodes);
        -1 from the node's own leaf, because the route enters by no link.
    :param most: largest number of links that enter a leaf.
    """

    number: Indices
    most: int

    @classmethod
    def of(cls, cluster: Cluster) -> _Entries:
        steps = cluster.links.table()
        last = np.full(steps.shape[:2], -1, dtype=np.int64)
        for step in range(steps.shape[2]):  # keeps the last link of each route; padding is -1
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
        """Return an integer per node, whose bits are the links by which routes from these leaves enter the node's leaf.

        :param leaves: numbers of the leaves at which the routes begin.
        :param nodes: numbers of the nodes at which the routes end.
        """
        entered = np.zeros((len(nodes), self.most + 1), dtype=bool)  # the last column is for -1, no link
        entered[np.arange(len(nodes)), self.number[leaves[:, None], nodes]] = True
        packed = np.packbits(entered[:, :-1], axis=1)
        return [int.from_bytes(row.tobytes(), "big") for row in packed]


class Apart(BestFit):
    """An allocator that gives a job, if it finds enough, nodes of which no two share a link into their leaf switch.

    Subramoni 2013, chapter 8, keeps a list of the hosts that share a link into their leaf switch, and never gives two
    of them to one job. Here a link counts only if routes between the job's own nodes use it, so that the nodes of a job
    on one leaf share none. The search tries few leaves before many. If it finds no nodes and at most ``repair`` nodes
    are free, an integer program searches for them. If there are none, or it does not run, the job gets the nodes that
    `BestFit` chooses.

    :param repair: largest number of free nodes with which the integer program runs.
    """

    name = "apart"

    def __init__(self, repair: int = 48) -> None:
        self.repair = repair

    def _choose(self, size: int, state: Occupancy) -> NDArray[np.integer]:
        leaf = _tightest(state.leaf_free, size)
        if leaf >= 0:
            return state.first_free(leaf, size)
        entries = state.cluster.derived(_Entries.of)
        found = _search(size, state, entries)
        if found is None and state.free <= self.repair:
            found = _solve(size, state, entries)
        return super()._choose(size, state) if found is None else found


def _search(size: int, state: Occupancy, entries: _Entries) -> Indices | None:
    """Return ``size`` nodes, on few leaves, of which no two share a link; None if this greedy search finds too few.

    The leaves with the most nodes that share no link are tried, at first only a few of them, then more.
    """
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
    """Return ascending positions of nodes of which no two on one leaf share a link, chosen greedily.

    Nodes whose routes enter the leaf by the fewest links are chosen first.

    :param masks: the links by which routes to each node enter its leaf, as the bits of an integer.
    :param leaf: leaf of each node.
    """
    used: dict[int, int] = {}
    chosen = []
    for at in sorted(range(len(masks)), key=lambda at: masks[at].bit_count()):
        here = int(leaf[at])
        if not used.get(here, 0) & masks[at]:
            used[here] = used.get(here, 0) | masks[at]
            chosen.append(at)
    return sorted(chosen)


def _solve(size: int, state: Occupancy, entries: _Entries) -> Indices | None:
    """Return ``size`` nodes of which no two share a link into their leaf, on the fewest leaves; None if there are none.

    Variables of the integer program are 1 if a node is chosen (x), if a leaf is chosen (y), and if a link carries a
    route from a chosen leaf to a chosen node (z): x + y - z <= 1. Each link may carry routes to one chosen node only.
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
    """Return those nodes of a job that share with another of its nodes a link by which its routes enter their leaf.

    :param nodes: numbers of the job's nodes, shape (nodes,).
    :param cluster: the machine.
    """
    leaf = cluster.leaf[nodes].tolist()
    masks = cluster.derived(_Entries.of).masks(np.unique(cluster.leaf[nodes]), nodes)
    once, twice = (
        dict.fromkeys(leaf, 0),
        dict.fromkeys(leaf, 0),
    )  # by leaf, the links by which routes to one or more nodes, or to two or more, enter it
    for mask, here in zip(masks, leaf, strict=True):
        twice[here] |= once[here] & mask
        once[here] |= mask
    return nodes[[bool(mask & twice[here]) for mask, here in zip(masks, leaf, strict=True)]]
