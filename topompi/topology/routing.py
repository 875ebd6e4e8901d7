"""Routes for fabrics whose source holds none: shortest paths, spread as d-mod-k spreads them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import RouteError
from ..inputs.limits import current_limits
from .fabric import Fabric, IntArray
from .routes import Routes

__all__ = ["ENGINE", "compute_routes"]

ENGINE = "computed: shortest paths, d-mod-k among equals"
FAR = np.int32(2**30)


def compute_routes(fabric: Fabric) -> Routes:
    """Routes along shortest paths; among equally short links the destination's number chooses.

    In a fat tree this is d-mod-k: at level l a switch sends to destination d through up-port
    floor(d / product of the up-degrees below) mod (its up-degree), and the way down is unique but for parallel
    cables, which the same digit chooses (Zahavi, "D-Mod-K routing providing non-blocking traffic for shift
    permutations on real life fat trees", 2010). Other fabrics get the same rule on their shortest paths.

    :raises RouteError: for more entries than the limit of routes.
    Cost: O(switch links x leaf switches) bytes and O(S x A) table entries; no loop over pairs.
    """
    entries = fabric.num_switches * fabric.num_adapters
    current_limits().check("routes", entries, fabric.name, RouteError)
    table = np.full((fabric.num_switches, fabric.num_adapters), -1, dtype=np.int32)
    leaves, inverse = np.unique(fabric.adapter_leaf, return_inverse=True)
    column = inverse.astype(np.int32)
    if leaves.size and leaves[0] == -1:  # adapters without a link stay unreachable
        leaves, column = leaves[1:], column - 1
    distance = leaf_distances(fabric, leaves)
    _fill_towards_leaves(fabric, table, distance, column)
    attached = np.flatnonzero(fabric.adapter_leaf >= 0)
    table[fabric.adapter_leaf[attached], attached] = fabric.adapter_downlink[attached]
    return Routes(fabric, ENGINE, table[np.newaxis])


def leaf_distances(fabric: Fabric, leaves: NDArray[np.int32]) -> IntArray:
    """Links between switches on the shortest way from each switch to each leaf, shape (S, leaves).

    Breadth-first from all leaves at once; FAR where there is no way.
    Cost: one pass over (switch links x leaves) for each hop.
    """
    source, target = _switch_ends(fabric)
    distance = np.full((fabric.num_switches, len(leaves)), FAR, dtype=np.int32)
    distance[leaves, np.arange(len(leaves))] = 0
    if not len(source):
        return distance
    order = np.argsort(source, kind="stable")
    starts, first = np.unique(source[order], return_index=True)
    for _ in range(fabric.num_switches):
        nearest = np.minimum.reduceat(distance[target[order]], first, axis=0) + 1
        if (nearest >= distance[starts]).all():
            break
        distance[starts] = np.minimum(distance[starts], nearest)
    return distance


def _switch_ends(fabric: Fabric) -> tuple[IntArray, IntArray]:
    links, first = fabric.switch_links, fabric.num_adapters
    return fabric.link_source[links] - first, fabric.link_target[links] - first


def _divisors(fabric: Fabric) -> NDArray[np.int64]:
    """Product of the up-degrees below each level, where the widest switch of a level counts."""
    level = fabric.switch_level
    source, target = _switch_ends(fabric)
    up_degree = np.bincount(source[level[target] > level[source]], minlength=fabric.num_switches)
    levels = range(int(level.max(initial=0)) + 1)
    widest = [max(1, int(up_degree[level == depth].max(initial=1))) for depth in levels]
    return np.cumprod([1, *widest], dtype=np.int64)


def _fill_towards_leaves(fabric: Fabric, table: IntArray, distance: IntArray, column: IntArray) -> None:
    """Fill in, for every switch but the destination's own leaf, the chosen one of its shortest links."""
    source, target = _switch_ends(fabric)
    if not len(source):
        return
    level, divisors = fabric.switch_level, _divisors(fabric)
    # Candidates of (switch, leaf) stand together, in port order: links sorted by (switch, target, port).
    ports = fabric.link_source_port[fabric.switch_links]
    order = np.lexsort((ports, target, source))
    source, target, links = source[order], target[order], fabric.switch_links[order]
    shortest = distance[source] == distance[target] + 1  # (links, leaves)
    rank = np.cumsum(shortest, axis=0, dtype=np.int32)
    starts, first = np.unique(source, return_index=True)
    end = np.append(first[1:], len(source)) - 1
    before = np.where(first[:, None] > 0, rank[first - 1], 0)  # candidates of earlier switches, by leaf
    count = rank[end] - before
    low = np.minimum(level[source], level[target])
    _by_leaf, candidate = np.nonzero(shortest.T)
    offset = np.concatenate(([0], np.cumsum(shortest.sum(axis=0))))
    adapters = np.flatnonzero(column >= 0)
    leaf = column[adapters]
    for row in np.arange(len(starts)):
        choices = count[row, leaf]
        there = np.flatnonzero(choices)
        begin = offset[leaf[there]] + before[row, leaf[there]]
        digit = adapters[there] // divisors[low[candidate[begin]]]
        table[starts[row], adapters[there]] = links[candidate[begin + digit % choices[there]]]
