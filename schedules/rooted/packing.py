"""Trees over hosts that share a message, grown edge by edge so that no link of the routes gets more than its part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..network import Network
from ..trees import ring_order

__all__ = ["MOST_LINKS", "TREES", "Packing", "packing"]

Integers = NDArray[np.int64]

TREES = 4  # more trees are less deep, but then a host starts more messages at once
# Packings that are tried: hosts of a group, groups that a group serves in a tree, and the price of an edge whose sender
# is one step deeper, as a part of the price of a full link of a host.
SHAPES = (
    (16, 3, 0.2),
    (16, 3, 0.02),
    (8, 2, 0.02),
    (32, 2, 0.02),
    (8, 3, 0.2),
    (32, 2, 0.2),
    (16, 2, 0.2),
    (4, 4, 0.2),
)
EFFORT = 1024  # edges of all packings that are tried, except for the first
MOST_LINKS = 30_000_000  # of all routes between a job's hosts, which the growth has in memory
SCALE = 64  # resolution of the prices of links with unlike rates
SLOWEST = 8  # ratio of rates up to which slow links differ in price
MOST_LOAD = 30  # messages on a link up to which its price rises
MISSING, ENDLESS = 1 << 33, 1e6  # weight and time of a missing route
AS_GOOD = 1 + 1e-9  # factor by which rounded times may differ
MOVES = 48  # edges that are moved at most after the growth
TRIED = 12  # edges over the busiest links that are tried before none of them counts as movable
HUGE = np.iinfo(np.int64).max  # price of an edge that is not possible
KEPT = 64  # packings that are kept per network
START = 0.02  # time of a step's start-ups over that of the message for which the packings are compared


class Packing(NamedTuple):
    """Trees over hosts, each of which carries an equal part of a message.

    :param parent: parent of each host in each tree, shape (trees, n); -1 at the root.
    :param depth: number of edges between the root and each host, shape (trees, n).
    :param load: time of the busiest link over the time in which a typical host's own link passes the message once.
    """

    parent: Integers
    depth: Integers
    load: float


_packed: WeakKeyDictionary[Network, dict[tuple[int, bool], Packing]] = WeakKeyDictionary()


def packing(network: Network, root: int = 0, *, inwards: bool = False) -> Packing:
    """Trees over the hosts of a network that load its links alike; all have the root's host as their root.

    The idea of trees that share a message, and together load no link with more than the least time allows, is that of
    ForestColl (Zhao et al., 2024); there routes are free, and linear programs find the trees. Here a message takes the
    given route of its two hosts. The hosts, in the order of `schedules.trees.ring_order`, are cut into groups of
    neighbours. A tree enters each group once. In each tree the groups form another tree, and a group that serves
    others in one tree serves none in the next one if possible. The trees grow at the same time, each edge being the one
    whose route adds least to busy links. Of packings with several shapes, the fastest one is taken.

    Then edges move away from the busiest links, and from the deepest hosts. All prices are integers, so that all ranks
    find the same trees.

    :param network: the job's network of n hosts.
    :param root: the root's rank.
    :param inwards: whether messages travel to the root, on the routes from each host to its parent.
    Cost: about 40 us for each of 4 n edges of a packing, and for each move; up to 5 packings of 64 hosts, 2 of 256. The
    routes of all pairs of hosts are in memory. Packings are kept per network and host of the root.
    """
    found = _packed.setdefault(network, {})
    if len(found) >= KEPT:
        found.clear()
    key = int(network.rank_host[root]), inwards
    if key not in found:
        found[key] = _best(network, root, inwards)
    return found[key]


def _best(network: Network, root: int, inwards: bool) -> Packing:
    on_hosts = network.rank_host[ring_order(network, root=root)]
    order = on_hosts[np.sort(np.unique(on_hosts, return_index=True)[1])]
    longest = 1 + int(network.hops.max(initial=0))
    if len(order) < 3 or len(order) ** 2 * longest > MOST_LINKS:
        return _chain(order)
    links, tries = _Links(network, inwards), 1 + EFFORT // (TREES * len(order))
    shallow, found = (len(order).bit_length() + 1) // 2 + 1, []
    for shape in SHAPES[:tries]:
        found.append(_Growth(links, order, *shape).packing())
        if found[-1].load <= links.least and found[-1].depth.max() <= shallow:
            break
    return min(found, key=_time)


def _time(packed: Packing) -> float:
    """The relative time of a message in a pipeline with the best number of steps."""
    root = sqrt(packed.load) + sqrt(int(packed.depth.max()) * START)
    return root * root


def _chain(order: Integers) -> Packing:
    parent, depth = np.full((TREES, len(order)), -1), np.zeros((TREES, len(order)), dtype=np.int64)
    parent[:, order[1:]] = order[:-1]
    depth[:, order] = np.arange(len(order))
    return Packing(parent, depth, 1.0)


class _Links:
    """The routes between hosts, and the weight of each link in prices.

    :ivar paths: links of the route from host i to host j, or back if messages travel inwards, shape (n, n, longest).
        Two numbers behind those of links stand for no further link, and for a missing route.
    :ivar time: time per byte of each link, over that of a typical host's own link, shape (links + 2,).
    :ivar weight: factor of each link's price, shape (links + 2,).
    :ivar least: least time of the busiest link, in which each host receives the message over its fastest route.
    """

    def __init__(self, network: Network, inwards: bool) -> None:
        hops, links = network.hops, network.links
        number, own = len(network.capacity), links[:, :, :1]
        unit = float(np.median(network.capacity[own[own >= 0]])) if (own >= 0).any() else 1.0
        paths = np.where(links < 0, number, links)
        paths[hops < 0, :1] = number + 1
        self.paths = paths.transpose(1, 0, 2) if inwards else paths
        self.time = np.concatenate((unit / network.capacity, (0.0, ENDLESS)))
        prices = np.maximum(np.rint(SCALE * _sixth(np.minimum(self.time, SLOWEST))), 1)
        prices[number:] = 0, MISSING
        self.weight = prices.astype(np.int64)
        slowest = self.time[self.paths].max(axis=2, initial=0.0)
        np.fill_diagonal(slowest, np.inf)
        self.least = float(slowest.min(axis=0).max()) * AS_GOOD


def _sixth(number: NDArray[np.float64] | Integers) -> NDArray[np.float64] | Integers:
    """The sixth power, by multiplications, which are equal on all processors."""
    cube = number * number * number
    return cube * cube


class _Growth:
    """Trees that grow over groups of hosts.

    :param links: routes and weights of links.
    :param order: hosts, the root first, shape (n,).
    :param size: number of hosts of a group.
    :param fan: largest number of groups that a group serves in a tree.
    :param late: price of an edge whose sender is one step deeper, as a part of the price of a full link of a host.
    """

    def __init__(self, links: _Links, order: Integers, size: int, fan: int, late: float) -> None:
        self.links, self.fan = links, fan
        self.late = int(late * SCALE * TREES**6)
        count = max(round(len(order) / size), 1)
        # The root is in a group of its own, so that the first group of its neighbours has one host less.
        self.groups = [order[:1], *np.split(order[1:], np.arange(1, count) * (len(order) - 1) // count)]
        self.load = np.zeros(len(links.weight), dtype=np.int64)
        self.price = links.weight.copy()
        self.parent, self.depth = (np.full((TREES, len(order)), -1) for _ in range(2))
        self.depth[:, order[0]] = 0

    def packing(self) -> Packing:
        """Grow the trees, first to one host of each group, then inside the groups."""
        nobody: Integers = np.empty(0, dtype=np.int64)
        reached = [[self.groups[0], *(nobody for _ in self.groups[1:])] for _ in range(TREES)]
        for tree, group, above in self._entrances():
            entered = self._join(tree, reached[tree][above], self.groups[group])
            reached[tree][group] = np.array([entered])
        missing = {
            (tree, group): members[self.depth[tree, members] < 0]
            for group, members in enumerate(self.groups)
            for tree in range(TREES)
        }
        while missing := {place: left for place, left in missing.items() if len(left)}:
            for (tree, group), left in missing.items():
                new = self._join(tree, reached[tree][group], left)
                reached[tree][group] = np.append(reached[tree][group], new)
                missing[tree, group] = left[left != new]
        for _ in range(MOVES):
            relieved = self._move(self._over_busiest(), int(self.depth.max()) + 1, np.inf)
            if not relieved and not self._move(self._deepest(), int(self.depth.max()) - 1, TREES * AS_GOOD):
                break
        return Packing(self.parent, self.depth, self._top() / TREES)

    def _entrances(self) -> Iterator[tuple[int, int, int]]:
        """Each tree's groups, groups near the root first: tree, group, and the group that serves it."""
        count = len(self.groups) - 1
        for place in range(count):
            for tree in range(TREES):
                shift = tree * count // TREES
                above = 0 if place == 0 else 1 + ((place - 1) // self.fan + shift) % count
                yield tree, 1 + (place + shift) % count, above

    def _join(self, tree: int, senders: Integers, members: Integers) -> int:
        """Add the edge with the least price from one of some senders to one of some hosts, and return this host."""
        cost = self.price[self.links.paths[senders[:, None], members]].sum(axis=2)
        cost += self.late * self.depth[tree, senders][:, None]
        sender, member = divmod(int(cost.argmin()), len(members))
        source, target = int(senders[sender]), int(members[member])
        self.parent[tree, target], self.depth[tree, target] = source, self.depth[tree, source] + 1
        self._send(source, target, 1)
        return target

    def _send(self, source: int, target: int, messages: int) -> None:
        """Add messages to a route, or take them away if the number is negative, and adjust the prices."""
        route = self.links.paths[source, target]
        self.load[route] += messages
        now = np.minimum(self.load[route], MOST_LOAD)  # so that prices stay below 2^63
        self.price[route] = self.links.weight[route] * (_sixth(now + 1) - _sixth(now))

    def _top(self) -> float:
        """The time of the busiest link, over that of one message on a typical host's own link."""
        return float((self.load * self.links.time).max(initial=0.0))

    def _over_busiest(self) -> list[tuple[int, int]]:
        """Some edges over the busiest links, leaves first, as trees and receivers; none if the load is the least."""
        times = self.load * self.links.time
        if times.max() <= TREES * self.links.least:
            return []
        tree, target = np.nonzero(self.parent >= 0)
        routes = self.links.paths[self.parent[tree, target], target]
        over = np.flatnonzero((times * AS_GOOD >= times.max())[routes].any(axis=1))
        some = over[np.argsort(-self.depth[tree[over], target[over]], kind="stable")][:TRIED]
        return list(zip(tree[some].tolist(), target[some].tolist(), strict=True))

    def _deepest(self) -> list[tuple[int, int]]:
        """The deepest edges, as trees and receivers."""
        tree, target = np.nonzero(self.depth == self.depth.max())
        return list(zip(tree.tolist(), target.tolist(), strict=True))

    def _move(self, edges: Sequence[tuple[int, int]], deepest: int, busiest: float) -> bool:
        """Give one of some receivers another sender at a lower price, and return whether that is possible.

        :param edges: trees and receivers.
        :param deepest: largest depth that the receiver's sub-tree may have.
        :param busiest: largest time that links of the new route may have.
        """
        for tree, host in edges:
            below = self._below(tree, host)
            old, height = self.parent[tree, host], int(self.depth[tree, below].max()) - int(self.depth[tree, host])
            routes = self.links.paths[:, host]
            self._send(old, host, -1)
            possible = ~below & (self.depth[tree] + 1 + height <= deepest)
            possible &= ((self.load + 1) * self.links.time)[routes].max(axis=1, initial=0.0) <= busiest
            cost = np.where(possible, self.price[routes].sum(axis=1), HUGE)
            new = int(cost.argmin())
            better = bool(cost[new] < cost[old])
            self._send(new if better else old, host, 1)
            if better:
                self.depth[tree, below] += self.depth[tree, new] + 1 - self.depth[tree, host]
                self.parent[tree, host] = new
                return True
        return False

    def _below(self, tree: int, host: int) -> NDArray[np.bool_]:
        """Whether each host is in the sub-tree of a host, shape (n,)."""
        parent = self.parent[tree]
        below: NDArray[np.bool_] = np.arange(len(parent)) == host
        for _ in range(int(self.depth[tree].max()) - int(self.depth[tree, host])):
            below = below | (below[parent] & (parent >= 0))
        return below
