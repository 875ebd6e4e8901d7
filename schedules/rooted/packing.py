"""Trees over hosts that share a message and load no link of the routes with more than its part."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..network import Network
from ..trees import ring_order
from .draining import last_rounds
from .growth import Growth
from .prices import TREES, Links
from .swaps import Swaps

__all__ = ["MOST_LINKS", "TREES", "Packing", "least_sum", "packing"]

Integers = NDArray[np.int64]

# Trees that are tried: hosts of a group, groups that a group serves in a tree, and the price of an edge whose sender is
# one step deeper, as a part of the price of a full link of a host.
SHAPES = ((16, 3, 0.2), (8, 2, 0.2), (16, 2, 0.2))
EFFORT = 1200  # swaps that are tried, for all shapes
SMOOTHED = 64  # edges that are swapped at most, where depths allow it, for less busy links
MOST_LINKS = 30_000_000  # of all routes between a job's hosts, which the growth has in memory
KEPT = 64  # packings that are kept per network
START = 0.02  # time of a step's start-ups over that of the message for which the packings are compared


class Packing(NamedTuple):
    """Trees over hosts, each of which carries an equal part of a message.

    :param parent: parent of each host in each tree, shape (trees, n); -1 at the root.
    :param depth: number of edges between the root and each host, shape (trees, n).
    :param load: time of the busiest link over the time in which a typical host's own link passes the message once.
    :param last_parent: parents in the last rounds of a pipeline, the last round first, shape (rounds, trees, n).
    :param last_depth: steps from the one in which the root sends a block to its arrival, both included, in these
        rounds; shape (rounds, trees, n).
    """

    parent: Integers
    depth: Integers
    load: float
    last_parent: Integers
    last_depth: Integers


_packed: WeakKeyDictionary[Network, dict[tuple[int, bool], Packing]] = WeakKeyDictionary()


def packing(network: Network, root: int = 0, *, inwards: bool = False) -> Packing:
    """Trees over the hosts of a network that load its links alike; all have the root's host as their root.

    The idea of trees that share a message, and together load no link with more than the least time allows, is that of
    ForestColl (Zhao et al., 2024); there routes are free, and linear programs find the trees. Here a message takes the
    given route of its two hosts. The hosts, in the order of `schedules.trees.ring_order`, are cut into groups of
    neighbours. A tree enters each group once. In each tree the groups form another tree, and a group that serves
    others in one tree serves none in the next one if possible. The trees grow at the same time, each edge being the one
    whose route adds least to busy links.

    Then edges swap their receivers, so that no link is overloaded and no host is deep in several trees: a pipeline
    over the trees cannot end before the host with the largest sum of depths has received its blocks. At last some edges
    move to less busy links. The last rounds have senders of their own. All prices are integers, so that all ranks find
    the same trees.

    :param network: the job's network of n hosts.
    :param root: the root's rank.
    :param inwards: whether messages travel to the root, on the routes from each host to its parent.
    Cost: about 30 us for each of 4 n edges of a shape, and 100 us to 500 us (256 hosts) for each swap that is
    tried. The routes of all pairs of hosts are in memory. Packings are kept per network and host of the root.
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
    links, left, found = Links(network, inwards), EFFORT // max(len(order) // 64, 1), []
    shallow = least_sum(len(order))
    for shape in SHAPES:
        grown = Swaps(links, *Growth(links, order, *shape).trees())
        left -= grown.relieve(left)
        left -= grown.flatten(shallow, left)
        found.append(grown)
        if left <= 0 or (grown.top() <= links.least and -(-grown.sums.max() // TREES) <= -(-shallow // TREES)):
            break
    best = min(found, key=_time)
    best.smooth(SMOOTHED)
    last = last_rounds(links, best.parent, best.depth, np.maximum(best.most, best.load * links.time))
    return Packing(best.parent, best.depth, best.top(), *last)


def least_sum(hosts: int) -> int:
    """The least possible sum of a host's depths in all trees, for the host with the largest one.

    The root sends one message in each tree. All hosts together have one tree's edges to serve for each tree, so that
    in a tree at most every fourth host serves others, and then four of them.

    :param hosts: number of hosts, n.
    """
    level, depth, left, total = 1, 1, hosts - 1, 0
    while left > 0:
        total += depth * min(level, left)
        left, level, depth = left - level, level * TREES, depth + 1
    return -(-TREES * total // max(hosts - 1, 1))


def _time(grown: Swaps) -> float:
    """The relative time of a message in a pipeline with the best number of steps."""
    root = sqrt(grown.top()) + sqrt(int(grown.sums.max()) / TREES * START)
    return root * root


def _chain(order: Integers) -> Packing:
    parent, depth = np.full((TREES, len(order)), -1), np.zeros((TREES, len(order)), dtype=np.int64)
    parent[:, order[1:]] = order[:-1]
    depth[:, order] = np.arange(len(order))
    return Packing(parent, depth, 1.0, parent[None][:0], depth[None][:0])
