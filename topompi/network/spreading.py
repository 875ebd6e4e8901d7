"""Loads of links if every message is spread over all of its shortest paths, as adaptive routing may do at best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .tables import Floats, Hosts, Tables
from .walks import Links, first_links, link_loads

__all__ = ["spread_loads"]


def spread_loads(tables: Tables, source: Hosts, destination: Hosts, amounts: NDArray[np.number]) -> Floats:
    """Sum the bytes that cross each link if each pair's bytes are divided equally over all its shortest paths.

    Parallel links are different paths. The next-hop links are not used. On a fat tree with full sub-trees no way of
    routing along shortest paths has a lower largest load, so that largest load over rate is a lower bound of the time
    under minimal adaptive routing. On other fabrics it is the expected load of packets that each draw a path, and
    adaptive routing that knows the loads may be better. Packets out of order and reactions to congestion cost nothing
    here.

    :param tables: the network.
    :param source: sending host of each message, shape (messages,).
    :param destination: receiving host of each message, shape (messages,).
    :param amounts: bytes of each message, shape (messages,); messages without a path are not counted.
    :returns: loads of shape (links,).
    Cost: a breadth-first search from each destination's leaf switch, by operations on arrays of all links.
    """
    apart = source != destination
    sender, receiver = tables.ends(source[apart], destination[apart])
    nbytes = np.asarray(amounts, dtype=np.float64)[apart]
    start, end = tables.leaf[sender], tables.leaf[receiver]
    direct = tables.link_end[tables.uplink[sender]] == receiver
    first = tables.first_switch
    links = np.flatnonzero((tables.source >= first) & (tables.target >= first))
    ends = tables.source[links] - first, tables.target[links] - first
    loads, arrives = np.zeros(tables.num_links), direct.copy()
    for leaf in np.unique(end[(start >= 0) & (end >= 0)]).tolist():
        here = (end == leaf) & (start >= 0)
        demand = np.bincount(start[here], nbytes[here], tables.num_switches).astype(np.float64)
        distance, spread = _towards(leaf, *ends, demand)
        loads[links] += spread
        arrives[here] = distance[start[here]] >= 0
    down = np.where(direct, -1, first_links(tables.target, first)[receiver])
    paths = np.stack((tables.uplink[sender], down), axis=1)
    return loads + link_loads(paths, nbytes * arrives, tables.num_links)


def _towards(leaf: int, source: Links, target: Links, demand: Floats) -> tuple[Links, Floats]:
    """The distance of each switch from a leaf switch in links, -1 without a path, and the bytes on each link.

    :param leaf: the leaf switch, at which all bytes end.
    :param source: switch at the start of each link between switches, shape (links,).
    :param target: switch at the end of each link between switches, shape (links,).
    :param demand: bytes that begin at each switch, shape (switches,).
    """
    size = len(demand)
    distance = np.full(size, -1, dtype=np.int32)
    distance[leaf] = 0
    ways, steps = np.zeros(size), list[NDArray[np.intp]]()
    ways[leaf] = 1
    while True:
        nearer = np.flatnonzero((distance[target] == len(steps)) & (distance[source] < 0))
        if not len(nearer):
            break
        steps.append(nearer)
        distance[source[nearer]] = len(steps)
        ways += np.bincount(source[nearer], ways[target[nearer]], size)
    loads, waiting = np.zeros(len(source)), np.where(distance >= 0, demand, 0)
    for nearer in reversed(steps):
        loads[nearer] = waiting[source[nearer]] * ways[target[nearer]] / ways[source[nearer]]
        waiting += np.bincount(target[nearer], loads[nearer], size)
    return distance, loads
