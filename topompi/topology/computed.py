"""Next-hop links along shortest paths, computed on demand without a table of all switches and hosts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import RouteError
from ..inputs.limits import current_limits
from ..network import MAX_HOPS
from .fabric import Fabric, IntArray
from .routes import Routes

__all__ = ["ENGINE", "ComputedLinks", "compute_routes"]

ENGINE = "computed: shortest paths, d-mod-k among equals"

Integers = NDArray[np.int64]
FAR = np.int16(np.iinfo(np.int16).max - 1)
AT_ONCE = 1 << 24  # pairs of a link and a group of leaves; limits the number compared at a time, to limit memory


def compute_routes(fabric: Fabric) -> Routes:
    """Compute routes along shortest paths; the destination's number chooses among links of equally short paths.

    In a fat tree this is d-mod-k routing: a switch sends to destination number d through its up-port floor(d / P) mod
    u, where u is the switch's number of up-links (its up-degree) and P the product of the up-degrees of all lower
    levels. The way down is unique except for parallel cables, among which the same rule chooses (Zahavi, "D-Mod-K
    routing providing non-blocking traffic for shift permutations on real life fat trees", 2010). Other fabrics use the
    same rule among the links of their shortest paths.

    :param fabric: the fabric to route.
    :raises RouteError: if (links between switches) x (groups of leaf switches with the same neighbours) exceeds the
        limit ``routes``.
    Cost: see ``ComputedLinks.of``; no table of switches x hosts is made.
    """
    return Routes(fabric, ENGINE, ComputedLinks.of(fabric))


@dataclass(frozen=True, eq=False)
class ComputedLinks:
    """The next-hop link from each switch towards each destination adapter, computed from distances between switches.

    Leaf switches with the same neighbours are equally far from every other switch. Therefore distances and candidate
    links (those on some shortest path) are kept per group of leaf switches with the same neighbours; in a fat tree of
    three levels, these are the leaves of a pod. ``choices`` has one row of candidate links per pair of group g and
    switch s, row number g * (number of switches) + s.

    :param fabric: the fabric.
    :param group: group of each leaf switch, shape (switches,), -1 for the other switches.
    :param distance: number of links from each switch to the nearest other switch of each group, shape (groups,
        switches); FAR if there is no path.
    :param offset: position of each row's first link in ``choices``, shape (groups * switches + 1,); the row of a switch
        at distance 1 from the group is empty.
    :param choices: candidate links, each one hop nearer to the group, sorted by (row, next switch, port).
    :param links: all links between switches, sorted by (switch, next switch, port).
    :param pairs: each pair of joined switches as the number switch * (number of switches) + next switch, ascending; the
        links of pair i are ``links[begin[i] : begin[i + 1]]``.
    :param begin: start of each pair in ``links``, shape (pairs + 1,).
    :param divisor: one divisor per link, shape (all links,). Of its n candidate links towards destination adapter d, a
        switch takes the one at position (d // divisor of the first candidate) modulo n.
    """

    fabric: Fabric
    group: Integers
    distance: NDArray[np.int16]
    offset: Integers
    choices: IntArray
    links: IntArray
    pairs: Integers
    begin: Integers
    divisor: Integers

    @classmethod
    def of(cls, fabric: Fabric) -> ComputedLinks:
        """Compute the distances and candidate links of a fabric.

        :raises RouteError: if (links between switches) x (groups of leaf switches with the same neighbours) exceeds the
            limit ``routes``.
        Cost: (links between switches) x (groups of leaves) operations for each hop of the longest path; memory for the
        candidate links of each group and switch.
        """
        source, target, links = _sorted_links(fabric)
        group = _groups(fabric, source, target)
        current_limits().check("routes", len(links) * (int(group.max(initial=-1)) + 1), fabric.name, RouteError)
        distance = _distances(group, source, target)
        counts, choices = _choices(distance, source, target, links)
        pairs, begin = np.unique(source.astype(np.int64) * fabric.num_switches + target, return_index=True)
        return cls(
            fabric,
            group,
            distance,
            np.concatenate(([0], np.cumsum(counts, dtype=np.int64))),
            choices,
            links,
            pairs,
            np.append(begin, len(links)),
            _divisors(fabric, source, target, links),
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the equivalent table: (alternative routes per destination adapter, always 1; switches; adapters)."""
        return 1, self.fabric.num_switches, self.fabric.num_adapters

    def at(self, path: int | IntArray, switches: IntArray, adapters: IntArray) -> IntArray:
        """The next-hop link from ``switches[i]`` towards ``adapters[i]`` for each i, shape (n,); -1 if there is none.

        :param path: number of the alternative route; only 0 is valid, because one route per destination adapter is
            computed.
        :param switches: switch numbers, shape (n,).
        :param adapters: adapter numbers, shape (n,).
        Cost: some thirty array operations.
        """
        fabric, found = self.fabric, np.full(len(switches), -1, dtype=np.int32)
        leaf: IntArray = fabric.adapter_leaf[adapters]
        own = np.flatnonzero((leaf == switches) & (leaf >= 0))
        found[own] = fabric.adapter_downlink[adapters[own]]
        other = np.flatnonzero((leaf != switches) & (leaf >= 0) & (switches >= 0))
        if not len(other) or not len(self.links):
            return found
        switches, leaf, adapters = switches[other].astype(np.int64), leaf[other], adapters[other]
        turn = self._turns(path[other] if isinstance(path, np.ndarray) else path, switches, adapters)
        group = self.group[leaf]
        row = group * fabric.num_switches + switches
        first, count = self.offset[row], self.offset[row + 1] - self.offset[row]
        far = np.flatnonzero(count)
        found[other[far]] = self._chosen(self.choices, first[far], count[far], turn[far])
        near = np.flatnonzero(self.distance[group, switches] == 1)
        pair = np.searchsorted(self.pairs, switches[near] * fabric.num_switches + leaf[near])
        first, count = self.begin[pair], self.begin[pair + 1] - self.begin[pair]
        found[other[near]] = self._chosen(self.links, first, count, turn[near])
        return found

    def item(self, switch: int, adapter: int) -> int:
        """The next-hop link from one switch towards one adapter, -1 if there is none."""
        return int(self.at(0, np.array([switch], dtype=np.int32), np.array([adapter], dtype=np.int32))[0])

    def _turns(self, path: int | IntArray, switches: NDArray[np.integer], adapters: IntArray) -> Integers:
        """A number for each pair of a switch and a destination, which chooses among the candidate links.

        :param path: number of the alternative route, here without influence.
        :param switches: switch numbers, shape (n,).
        :param adapters: numbers of the destination adapters, shape (n,).
        """
        return adapters.astype(np.int64)

    def _chosen(self, links: IntArray, first: Integers, count: Integers, turn: Integers) -> IntArray:
        chosen: IntArray = links[first + turn // self.divisor[links[first]] % count]
        return chosen

    def hops(self, switches: IntArray, adapters: IntArray) -> NDArray[np.int16]:
        """Number of switches crossed from each switch to each adapter, shape (s, a), negative without a route.

        :param switches: switches at the start, shape (s,); a switch -1 has no route.
        :param adapters: destination adapters, shape (a,).
        Cost: one array look-up of the result's size; no route is followed.
        """
        if not len(self.distance):
            return np.full((len(switches), len(adapters)), -1, dtype=np.int16)
        leaf = self.fabric.adapter_leaf[adapters]
        hops = (self.distance[:, switches].T + np.int16(1))[:, self.group[leaf]]
        hops[hops > MAX_HOPS] = -1
        hops[:, leaf < 0] = -1
        hops[switches < 0] = -1
        hops[(switches[:, None] == leaf[None, :]) & (leaf >= 0)[None, :]] = 1
        return hops

    def arrive_everywhere(self) -> bool:
        """Whether every leaf switch certainly has a route to all others of its component; False may also mean unknown.

        Cost: groups x leaves.
        """
        fabric, leaves = self.fabric, np.flatnonzero(self.group >= 0)
        first, size = np.unique(self.group[leaves], return_index=True, return_counts=True)[1:]
        example, component = leaves[first], fabric.switch_component
        wanted = component[example][:, None] == component[leaves][None, :]
        wanted &= (example[:, None] != leaves[None, :]) | (size > 1)[:, None]
        return bool((self.distance[:, leaves][wanted] < MAX_HOPS).all())


def _sorted_links(fabric: Fabric) -> tuple[IntArray, IntArray, IntArray]:
    """Source switch, target switch and number of each link between switches, sorted by (source, target, port)."""
    links, first = fabric.switch_links, fabric.num_adapters
    source, target = fabric.link_source[links] - first, fabric.link_target[links] - first
    order = np.lexsort((fabric.link_source_port[links], target, source))
    return source[order], target[order], links[order]


def _groups(fabric: Fabric, source: IntArray, target: IntArray) -> Integers:
    """Group of each leaf switch, shape (switches,), -1 for the other switches.

    Leaf switches with the same neighbours in both directions form a group.

    :param fabric: the fabric.
    :param source: switch at the start of each link between switches, shape (links,).
    :param target: switch at the end of each link between switches, shape (links,).
    """
    leaves = np.unique(fabric.adapter_leaf[fabric.adapter_leaf >= 0])
    count = fabric.num_switches
    ends = np.concatenate(
        (source.astype(np.int64) * 2 * count + target, (target.astype(np.int64) * 2 + 1) * count + source)
    )
    ends.sort()
    switch, neighbour = np.divmod(ends[np.diff(ends, prepend=-1) > 0], 2 * count)
    first = np.searchsorted(switch, np.arange(count + 1))
    known: dict[bytes, int] = {}
    group = np.full(count, -1, dtype=np.int64)
    for leaf in leaves.tolist():
        group[leaf] = known.setdefault(neighbour[first[leaf] : first[leaf + 1]].tobytes(), len(known))
    return group


def _distances(group: Integers, source: IntArray, target: IntArray) -> NDArray[np.int16]:
    """Number of links from each switch to the nearest member of each group other than itself.

    All members of a group are reached from the same switches, so one distance holds for the whole group.

    :param group: group of each leaf switch, shape (switches,), -1 for the other switches.
    :param source: switch at the start of each link, shape (links,), ascending.
    :param target: switch at the end of each link, shape (links,).
    :returns: numbers of shape (groups, switches), FAR if there is no path.
    """
    count = int(group.max(initial=-1)) + 1
    distance = np.full((count, len(group)), FAR, dtype=np.int16)
    if not len(source):
        return distance
    starts, first = np.unique(source, return_index=True)
    enters = group[target] >= 0
    distance[group[target[enters]], source[enters]] = 1
    for part in _parts(count, len(source)):
        of_part = distance[part]
        for _ in range(len(group)):
            nearest = np.minimum.reduceat(of_part[:, target], first, axis=1) + np.int16(1)
            if (nearest >= of_part[:, starts]).all():
                break
            of_part[:, starts] = np.minimum(of_part[:, starts], nearest)
    return distance


def _choices(
    distance: NDArray[np.int16], source: IntArray, target: IntArray, links: IntArray
) -> tuple[Integers, IntArray]:
    """Find the candidate links from each switch towards each group that is 2 or more links away.

    A candidate link leads to a switch that is one link nearer to the group.

    :param distance: number of links from each switch to each group, shape (groups, switches).
    :param source: switch at the start of each link, shape (links,), ascending.
    :param target: switch at the end of each link, shape (links,).
    :param links: number of each link in the fabric, shape (links,).
    """
    counts = np.zeros(distance.shape, dtype=np.int64)
    chosen = [np.empty(0, dtype=np.int32)]
    if len(source):
        starts, first = np.unique(source, return_index=True)
        for part in _parts(len(distance), len(source)):
            here = distance[part][:, source]
            nearer = (here == distance[part][:, target] + np.int16(1)) & (here > 1) & (here < FAR)
            counts[part, starts] = np.add.reduceat(nearer, first, axis=1, dtype=np.int64)
            chosen.append(links[np.nonzero(nearer)[1]])
    return counts.ravel(), np.concatenate(chosen)


def _parts(groups: int, links: int) -> Iterator[slice]:
    step = max(1, AT_ONCE // max(1, links))
    return (slice(first, first + step) for first in range(0, groups, step))


def _divisors(fabric: Fabric, source: IntArray, target: IntArray, links: IntArray) -> Integers:
    """Product of the up-degrees below the lower end of each link, 1 for adapters' links.

    The up-degree of a level is that of its switch with the most up-links.

    :param fabric: the fabric.
    :param source: switch at the start of each link between switches, shape (links,).
    :param target: switch at the end of each link between switches, shape (links,).
    :param links: number of each link between switches in the fabric, shape (links,).
    :returns: numbers of shape (all links of the fabric,).
    """
    level = fabric.switch_level
    up_degree = np.bincount(source[level[target] > level[source]], minlength=fabric.num_switches)
    levels = range(int(level.max(initial=0)) + 1)
    widest = [max(1, int(up_degree[level == depth].max(initial=1))) for depth in levels]
    products = np.cumprod([1, *widest], dtype=np.int64)
    divisor = np.ones(fabric.num_links, dtype=np.int64)
    divisor[links] = products[np.minimum(level[source], level[target])]
    return divisor
