"""Routes: which link a switch takes towards each adapter, and the paths that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import RouteError
from ..inputs.limits import current_limits
from .fabric import Fabric, IntArray
from .subfabric import subfabric

__all__ = ["MAX_HOPS", "NextLinks", "Routes"]

# A packet that has crossed this many switches is taken to be in a loop: InfiniBand's own limit on a
# directed route (InfiniBand Architecture Specification, volume 1, section 14.2.2).
MAX_HOPS = 64

WALKS_AT_ONCE = 2**18  # bounds the memory of all-pairs questions to some ten MB beside their answer
DIES, LOOPS = -1, -2


class NextLinks(Protocol):
    """Next links that are worked out where they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Paths, switches, adapters."""

    def at(self, path: int, switches: IntArray, adapters: IntArray) -> IntArray:
        """The link from each switch towards each adapter, shape (n,), -1 where there is none.

        :param path: which of the destination's paths, from 0.
        :param switches: numbers, shape (n,); likewise ``adapters``, element by element.
        """

    def item(self, switch: int, adapter: int) -> int:
        """The link from one switch towards one adapter on path 0, -1 where there is none."""

    def hops(self, switches: IntArray, adapters: IntArray) -> NDArray[np.int16]:
        """Switches crossed on path 0 from each to each, shape (switches, adapters); negative without a route."""


@dataclass(frozen=True, eq=False)
class Routes:
    """Next link per (path, switch, destination adapter).

    :param fabric: the fabric the numbers refer to.
    :param engine: what computed the routes, in words, for every output that depends on them.
    :param table: link numbers, shape (paths, S, A), -1 where the switch has none, or what works them out; path 0 is
        the one that the adapter's base LID takes, further ones exist where the LMC is above 0.
    """

    fabric: Fabric
    engine: str
    table: NDArray[np.int32] | NextLinks

    def __repr__(self) -> str:
        return f"Routes({self.engine!r}, {self.num_paths} path(s) to a host, {self.fabric!r})"

    @property
    def num_paths(self) -> int:
        """Number of paths kept for each adapter (2 to the power of the largest LMC)."""
        return int(self.table.shape[0])

    @property
    def num_entries(self) -> int:
        """Number of next links: paths x switches x adapters."""
        return prod(self.table.shape)

    @cached_property
    def next_link(self) -> NDArray[np.int32]:
        """All next links, shape (paths, S, A).

        :raises RouteError: for routes that are worked out, where the table has more entries than the limit of routes.
        """
        if isinstance(self.table, np.ndarray):
            return self.table
        current_limits().check("routes", self.num_entries, self.fabric.name, RouteError)
        paths, switches, adapters = self.table.shape
        full = np.empty((paths, switches, adapters), dtype=np.int32)
        every = np.arange(adapters, dtype=np.int32)
        step = max(1, WALKS_AT_ONCE // max(1, adapters))
        for path, first in np.ndindex(paths, -(-switches // step)):
            rows = np.arange(first * step, min(switches, (first + 1) * step), dtype=np.int32)
            found = self.table.at(path, np.repeat(rows, adapters), np.tile(every, len(rows)))
            full[path, rows] = found.reshape(len(rows), adapters)
        return full

    def links_at(self, switches: IntArray, adapters: IntArray, path: int = 0) -> IntArray:
        """The link from each switch towards each adapter, shape (n,), -1 where there is none.

        :param switches: numbers, shape (n,); likewise ``adapters``, element by element.
        :param path: which of the destination's paths, from 0.
        """
        if isinstance(self.table, np.ndarray):
            found: IntArray = self.table[path][switches, adapters]
            return found
        return self.table.at(path, switches, adapters)

    def walk(self, switches: IntArray, adapters: IntArray, path: int = 0) -> tuple[IntArray, IntArray, IntArray]:
        """Follow the routes from many switches at once.

        :param switches: start of each walk, shape (n,); -1 yields no route.
        :param adapters: destination of each walk, shape (n,).
        :param path: which of the destination's paths, from 0.
        :returns: (hops, links, last): switches crossed, shape (n,), DIES or LOOPS where there is no route; the links
            taken, shape (n, longest), padded with -1; and the switch where each walk ended, shape (n,).
        Cost: one array operation over the walks still under way for each hop.
        """
        first, target = self.fabric.num_adapters, self.fabric.link_end
        hops = np.full(len(switches), LOOPS, dtype=np.int32)
        last = np.array(switches, dtype=np.int32)
        hops[last < 0] = DIES
        under_way = np.flatnonzero(last >= 0)
        columns: list[IntArray] = []
        for hop in range(1, MAX_HOPS + 1):
            if not len(under_way):
                break
            destination = adapters[under_way]
            link = self.links_at(last[under_way], destination, path)
            column = np.full(len(switches), -1, dtype=np.int32)
            column[under_way] = link
            columns.append(column)
            vertex = target[link]
            arrived = vertex == destination
            moving = vertex >= first
            hops[under_way[arrived]] = hop
            hops[under_way[~arrived & ~moving]] = DIES
            under_way, vertex = under_way[moving], vertex[moving]
            last[under_way] = vertex - first
        links = np.stack(columns, axis=1) if columns else np.empty((len(switches), 0), dtype=np.int32)
        return hops, links, last

    def hops_from(self, switches: IntArray, adapters: IntArray, path: int = 0) -> NDArray[np.int16]:
        """Switches crossed from each switch to each adapter, shape (switches, adapters); negative without a route.

        :param switches: numbers of the starts, shape (s,); -1 has no route.
        :param adapters: numbers of the destinations, shape (a,).
        :param path: which of the destination's paths, from 0.
        Cost: one walk from each distinct switch to each adapter, all at once; no walk where routes are computed.
        """
        if not isinstance(self.table, np.ndarray):
            return self.table.hops(switches, adapters)
        starts, inverse = np.unique(switches, return_inverse=True)
        hops = np.empty((len(starts), len(adapters)), dtype=np.int16)
        chunk = max(1, WALKS_AT_ONCE // max(1, len(adapters)))
        for first in range(0, len(starts), chunk):
            rows = starts[first : first + chunk]
            found, _, _ = self.walk(np.repeat(rows, len(adapters)), np.tile(adapters, len(rows)), path)
            hops[first : first + chunk] = found.reshape(len(rows), len(adapters))
        return hops[inverse]

    def restrict(self, hosts: IntArray) -> Routes:
        """The same routes for some hosts only, over the part of the fabric that they cross.

        :param hosts: host numbers, shape (n,); they are renumbered 0..n-1 in this order.
        Cost: a link from each of their leaf switches to each of their adapters, for each path; (switches x adapters)
        numbers.
        """
        fabric = self.fabric
        adapters = np.concatenate([fabric.host_adapters[host] for host in hosts])
        crossed = [self.crossed(adapters, path) for path in range(self.num_paths)]
        used = np.zeros(fabric.num_links + 1, dtype=bool)  # the last one stands for -1, no link
        for _, _, links in crossed:
            used[links] = True
        uplinks = fabric.adapter_uplink[adapters]
        used[uplinks[uplinks >= 0]] = True
        kept = np.flatnonzero(used[:-1])
        ends = np.concatenate((fabric.link_source[kept], fabric.link_target[kept]))
        switches = np.flatnonzero(np.bincount(ends)[fabric.num_adapters :])
        part = subfabric(fabric, hosts, adapters, kept, switches)
        number = np.full(fabric.num_links + 1, -1, dtype=np.int32)
        number[kept] = np.arange(len(kept))
        of_switch = np.full(fabric.num_switches, -1, dtype=np.int32)
        of_switch[switches] = np.arange(len(switches))
        table = np.full((self.num_paths, len(switches), len(adapters)), -1, dtype=np.int32)
        for path, (switch, column, link) in enumerate(crossed):
            table[path, of_switch[switch], column] = number[link]
        return Routes(part, self.engine, table)

    def crossed(self, adapters: IntArray, path: int = 0) -> tuple[IntArray, IntArray, IntArray]:
        """What the routes between some adapters cross: switch, place of the destination in ``adapters``, and link.

        :param adapters: numbers, shape (n,).
        :param path: which of the destinations' paths, from 0.
        :returns: three columns; the link is -1 where a route ends before it arrives.
        Each pair of a switch and a destination comes once: routes to one destination go on together where they meet.
        """
        first, target = self.fabric.num_adapters, self.fabric.link_end
        leaves = np.unique(self.fabric.adapter_leaf[adapters])
        leaves = leaves[leaves >= 0]
        found = [np.empty((3, 0), dtype=np.int32)]
        step = max(1, WALKS_AT_ONCE // max(1, len(leaves)))
        for begin in range(0, len(adapters), step):
            some = adapters[begin : begin + step]
            seen = np.zeros(self.fabric.num_switches * len(some), dtype=bool)  # by switch and column
            here = (leaves[:, None].astype(np.int64) * len(some) + np.arange(len(some))).ravel()
            while len(here):
                seen[here] = True
                switch, column = (axis.astype(np.int32) for axis in np.divmod(here, len(some)))
                link = self.links_at(switch, some[column], path)
                found.append(np.stack((switch, column + np.int32(begin), link)))
                goes_on = target[link] >= first
                ahead = np.zeros_like(seen)
                ahead[(target[link[goes_on]] - first).astype(np.int64) * len(some) + column[goes_on]] = True
                here = np.flatnonzero(ahead & ~seen)
        switch, column, link = np.concatenate(found, axis=1)
        return switch, column, link
