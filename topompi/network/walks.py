"""Directed links with their rates, next links of switches, the walks that follow them, and what walks load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import FabricError, TopompiError

__all__ = [
    "DIES",
    "LOOPS",
    "MAX_HOPS",
    "NextLinks",
    "Walks",
    "first_links",
    "link_loads",
    "slices",
]

Links = NDArray[np.int32]
Floats = NDArray[np.float64]

# A packet that has crossed this many switches is taken to be in a loop: InfiniBand's own limit on a
# directed route (InfiniBand Architecture Specification, volume 1, section 14.2.2).
MAX_HOPS = 64

AT_ONCE = 2**18  # walks; bounds the memory of questions about many pairs to some ten MB beside their answer
DIES, LOOPS = -1, -2


class NextLinks(Protocol):
    """Next links that are worked out when they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Paths, switches, adapters."""

    def at(self, path: int, switches: Links, adapters: Links) -> Links:
        """The link from each switch towards each adapter, shape (n,), -1 if there is none.

        :param path: number of the destinations' path, from 0.
        :param switches: numbers of the switches, shape (n,).
        :param adapters: number of the destination from each switch, shape (n,).
        """

    def item(self, switch: int, adapter: int) -> int:
        """The link from one switch towards one adapter on path 0, -1 if there is none."""

    def hops(self, switches: Links, adapters: Links) -> NDArray[np.int16]:
        """Switches crossed on path 0 from each to each, shape (switches, adapters); negative without a route."""


def slices(count: int, each: int = 1) -> Iterator[slice]:
    """Slices of a number of things, of which ``AT_ONCE`` walks, or one thing, are taken at a time.

    :param count: number of things.
    :param each: number of walks of each thing.
    """
    step = max(1, AT_ONCE // max(1, each))
    return (slice(first, min(count, first + step)) for first in range(0, count, step))


def link_loads(paths: NDArray[np.integer], amounts: NDArray[np.number], links: int) -> NDArray[np.float64]:
    """Sums of amounts over the links of their paths, shape (links,).

    :param paths: links of each path, shape (paths, longest); numbers below 0 are no link, and those from ``links`` on
        are not counted.
    :param amounts: bytes, or bytes/s, that take each path, shape (paths,).
    :param links: number of links, from 0 on, that are counted.
    Cost: one pass over each column of the paths.
    """
    loads, weights = np.zeros(links), np.asarray(amounts, dtype=np.float64)
    for column in paths.T:
        loads += np.bincount(column + 1, weights, links + 1)[1 : links + 1]  # padding counts at 0
    return loads


def first_links(vertex: Links, adapters: int) -> Links:
    """The first link of each adapter, shape (adapters,); -1 if it has none.

    :param vertex: vertex at one end of each link, shape (links,).
    :param adapters: number of adapters, which are the first vertices.
    """
    found = np.full(adapters, -1, dtype=np.int32)
    links = np.flatnonzero(vertex < adapters)[::-1]
    found[vertex[links]] = links
    return found


@dataclass(frozen=True, eq=False)
class Walks:
    """Directed links and next links; the part of ``Tables`` that knows no hosts.

    Vertices are the adapters, then the switches. An adapter sends on the first link that leaves it.

    :param source: vertex that each link leaves, shape (links,).
    :param target: vertex at the end of each link, shape (links,).
    :param rate: bytes/s of each link, shape (links,), NaN if unknown.
    :param latency: seconds from the beginning of each link into the vertex at its end, shape (links,), NaN if unknown.
    :param next_link: link from each switch towards each adapter, shape (paths, switches, adapters), or (switches,
        adapters) for one path; -1 for none. Or an object that works them out.
    :param names: names of the vertices, for messages; empty for their numbers.
    """

    error: ClassVar[type[TopompiError]] = FabricError

    source: Links
    target: Links
    rate: Floats
    latency: Floats
    next_link: Links | NextLinks
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("source", "target"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=np.int32))
        for name in ("rate", "latency"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=np.float64))
        if not hasattr(self.next_link, "at"):
            table = np.ascontiguousarray(self.next_link, dtype=np.int32)
            object.__setattr__(self, "next_link", table[None] if table.ndim == 2 else table)
        shapes = [column.shape for column in (self.source, self.target, self.rate, self.latency)]
        if len(set(shapes)) != 1 or self.source.ndim != 1 or len(self.next_link.shape) != 3:
            raise self.error(f"tables: expecting four columns of one length and a table, got {shapes}")

    @property
    def num_switches(self) -> int:
        """Number of switches."""
        return int(self.next_link.shape[1])

    @property
    def num_links(self) -> int:
        """Number of directed links."""
        return len(self.source)

    @property
    def num_paths(self) -> int:
        """Number of paths to each adapter."""
        return int(self.next_link.shape[0])

    @property
    def first_switch(self) -> int:
        """Vertex of the first switch, which is the number of adapters."""
        return int(self.next_link.shape[2])

    @cached_property
    def link_end(self) -> Links:
        """``target``, and -1 behind it for link -1, which stands for none: shape (links + 1,)."""
        return np.append(self.target, np.int32(-1))

    @cached_property
    def uplink(self) -> Links:
        """The link on which each adapter sends, shape (adapters,); -1 for none."""
        return first_links(self.source, self.first_switch)

    @cached_property
    def leaf(self) -> Links:
        """Number of the switch that each adapter sends to, shape (adapters,); -1 for none."""
        vertex = self.link_end[self.uplink]
        return np.where(vertex >= self.first_switch, vertex - self.first_switch, -1).astype(np.int32)

    @cached_property
    def table(self) -> Links:
        """All next links, shape (paths, switches, adapters); cost: their number, if they are worked out."""
        if isinstance(self.next_link, np.ndarray):
            return self.next_link
        full = np.empty(self.next_link.shape, dtype=np.int32)
        every = np.arange(self.first_switch, dtype=np.int32)
        for path, some in product(range(self.num_paths), slices(self.num_switches, self.first_switch)):
            rows = np.arange(some.start, some.stop, dtype=np.int32)
            found = self.next_link.at(path, np.repeat(rows, len(every)), np.tile(every, len(rows)))
            full[path, some] = found.reshape(len(rows), -1)
        return full

    def name(self, vertex: int) -> str:
        """The name of an adapter or a switch, for messages."""
        first = self.first_switch
        kind, number = ("host", vertex) if vertex < first else ("switch", vertex - first)
        return self.names[vertex] if self.names else f"{kind} {number}"

    def links_at(self, switches: Links, adapters: Links, path: int = 0) -> Links:
        """The link from each switch towards each adapter, shape (n,), -1 if there is none.

        :param switches: numbers of the switches, shape (n,).
        :param adapters: number of the destination from each switch, shape (n,).
        :param path: number of the destinations' path, from 0.
        """
        if isinstance(self.next_link, np.ndarray):
            found: Links = self.next_link[path][switches, adapters]
            return found
        return self.next_link.at(path, switches, adapters)

    def walk(self, switches: Links, adapters: Links, path: int = 0) -> tuple[Links, Links, Links]:
        """Follow the routes from many switches at once.

        :param switches: switch at the start of each walk, shape (n,); -1 yields no route.
        :param adapters: destination of each walk, shape (n,).
        :param path: number of the destinations' path, from 0.
        :returns: (hops, links, last): switches crossed, shape (n,), DIES or LOOPS without a route; the links taken,
            shape (n, longest), padded with -1; and the switch where each walk ended, shape (n,).
        Cost: one array operation over the walks still under way for each hop.
        """
        hops = np.full(len(switches), LOOPS, dtype=np.int32)
        last = np.array(switches, dtype=np.int32)
        hops[last < 0] = DIES
        under_way = np.flatnonzero(last >= 0)
        columns: list[Links] = []
        for hop in range(1, MAX_HOPS + 1):
            if not len(under_way):
                break
            destination = adapters[under_way]
            link = self.links_at(last[under_way], destination, path)
            column = np.full(len(switches), -1, dtype=np.int32)
            column[under_way] = link
            columns.append(column)
            vertex = self.link_end[link]
            arrived = vertex == destination
            moving = vertex >= self.first_switch
            hops[under_way[arrived]] = hop
            hops[under_way[~arrived & ~moving]] = DIES
            under_way, vertex = under_way[moving], vertex[moving]
            last[under_way] = vertex - self.first_switch
        links = np.stack(columns, axis=1) if columns else np.empty((len(switches), 0), dtype=np.int32)
        return hops, links, last

    def hops_from(self, switches: Links, adapters: Links, path: int = 0) -> NDArray[np.int16]:
        """Switches crossed from each switch to each adapter, shape (switches, adapters); negative without a route.

        :param switches: numbers of the starts, shape (s,); -1 has no route.
        :param adapters: numbers of the destinations, shape (a,).
        :param path: number of the destinations' path, from 0.
        Cost: one walk from each distinct switch to each adapter; no walk if next links are worked out.
        """
        if not isinstance(self.next_link, np.ndarray):
            return self.next_link.hops(switches, adapters)
        starts, inverse = np.unique(switches, return_inverse=True)
        hops = np.empty((len(starts), len(adapters)), dtype=np.int16)
        for some in slices(len(starts), len(adapters)):
            rows = starts[some]
            found, _, _ = self.walk(np.repeat(rows, len(adapters)), np.tile(adapters, len(rows)), path)
            hops[some] = found.reshape(len(rows), len(adapters))
        return hops[inverse]

    def crossed(self, adapters: Links, path: int = 0) -> tuple[Links, Links, Links]:
        """What the routes between some adapters cross: switch, place of the destination in ``adapters``, and link.

        :param adapters: numbers, shape (n,).
        :param path: number of the destinations' path, from 0.
        :returns: three columns; the link is -1 if a route ends before it arrives.
        Each pair of a switch and a destination comes once: routes to one destination go on together once they meet.
        """
        leaves = np.unique(self.leaf[adapters])
        leaves = leaves[leaves >= 0]
        found = [np.empty((3, 0), dtype=np.int32)]
        for part in slices(len(adapters), len(leaves)):
            some = adapters[part]
            seen = np.zeros(self.num_switches * len(some), dtype=bool)  # by switch and column
            here = (leaves[:, None].astype(np.int64) * len(some) + np.arange(len(some))).ravel()
            while len(here):
                seen[here] = True
                switch, column = (axis.astype(np.int32) for axis in np.divmod(here, len(some)))
                link = self.links_at(switch, some[column], path)
                found.append(np.stack((switch, column + np.int32(part.start), link)))
                goes_on = self.link_end[link] >= self.first_switch
                ahead = np.zeros_like(seen)
                there = self.link_end[link[goes_on]] - self.first_switch
                ahead[there.astype(np.int64) * len(some) + column[goes_on]] = True
                here = np.flatnonzero(ahead & ~seen)
        switch, column, link = np.concatenate(found, axis=1)
        return switch, column, link

    def loads_from(
        self, switches: Links, adapters: Links, amounts: NDArray[np.number], path: int = 0
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Sums of amounts over the links of the routes from switches to adapters, shape (links,), and which arrive.

        :param switches: switch at the start of each route, shape (n,); -1 yields no route.
        :param adapters: destination of each route, shape (n,).
        :param amounts: bytes that take each route, shape (n,); routes that do not arrive carry nothing.
        :param path: number of the destinations' path, from 0.
        Cost: ``AT_ONCE`` walks at a time.
        """
        loads, arrives = np.zeros(self.num_links), np.zeros(len(switches), dtype=bool)
        for some in slices(len(switches)):
            hops, links, _ = self.walk(switches[some], adapters[some], path)
            arrives[some] = hops > 0
            loads += link_loads(links, np.where(hops > 0, amounts[some], 0), self.num_links)
        return loads, arrives
