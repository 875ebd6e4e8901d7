"""Directed links, next-hop links of switches, walks (routes followed link by link), and the loads of links."""

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

# Largest number of switches on a route; a route that is longer counts as a loop. The number is InfiniBand's limit on a
# directed route (InfiniBand Architecture Specification, volume 1, section 14.2.2).
MAX_HOPS = 64

AT_ONCE = 2**18  # number of routes followed at a time; limits the temporary memory of many pairs to some ten MB
DIES, LOOPS = -1, -2


class NextLinks(Protocol):
    """The interface of next-hop links that are computed on demand.

    An implementation with an attribute ``per_pair`` that is true has a route of its own for each pair of adapters: its
    path number is the number of the sending adapter.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of alternative paths per adapter (LMC), of switches and of adapters."""

    def at(self, path: int | Links, switches: Links, adapters: Links) -> Links:
        """The next-hop link from ``switches[i]`` towards ``adapters[i]`` for each i, shape (n,); -1 if there is none.

        :param path: number of the alternative route (LMC), from 0; one number, or an array of shape (n,).
        :param switches: switch numbers, shape (n,).
        :param adapters: numbers of the destination adapters, shape (n,).
        """

    def item(self, switch: int, adapter: int) -> int:
        """The next-hop link from one switch towards one adapter on path 0, -1 if there is none."""

    def hops(self, switches: Links, adapters: Links) -> NDArray[np.int16]:
        """Number of switches crossed from each switch to each adapter on path 0, shape (s, a), negative if no route.

        :param switches: switches at the start, shape (s,).
        :param adapters: destination adapters, shape (a,).
        """


def slices(count: int, each: int = 1) -> Iterator[slice]:
    """Divide ``count`` items into slices of at most ``AT_ONCE`` walks (routes to follow), but at least one item.

    :param count: number of items.
    :param each: number of walks per item.
    """
    step = max(1, AT_ONCE // max(1, each))
    return (slice(first, min(count, first + step)) for first in range(0, count, step))


def link_loads(paths: NDArray[np.integer], amounts: NDArray[np.number], links: int) -> NDArray[np.float64]:
    """Sum, for each link, the amounts of the paths that cross it, shape (links,).

    :param paths: links of each path, shape (paths, length of the longest path); negative numbers are padding, and links
        with numbers of ``links`` or more are not counted.
    :param amounts: bytes, or bytes/s, on each path, shape (paths,).
    :param links: number of links, numbered from 0, that are counted.
    Cost: one pass over each column of the paths.
    """
    loads, weights = np.zeros(links), np.asarray(amounts, dtype=np.float64)
    for column in paths.T:
        loads += np.bincount(column + 1, weights, links + 1)[1 : links + 1]  # bin 0 collects the padding
    return loads


def _of(path: int | Links, some: slice | NDArray[np.intp]) -> int | Links:
    """The path numbers of some walks: the number of all, or a selection from an array."""
    return path[some] if isinstance(path, np.ndarray) else path


def first_links(vertex: Links, adapters: int) -> Links:
    """Find the first link that has each adapter at one of its ends, shape (adapters,); -1 if there is none.

    :param vertex: vertex at the end to look at, source or target, of each link, shape (links,).
    :param adapters: number of adapters, which are the first vertices.
    """
    found = np.full(adapters, -1, dtype=np.int32)
    links = np.flatnonzero(vertex < adapters)[::-1]
    found[vertex[links]] = links
    return found


@dataclass(frozen=True, eq=False)
class Walks:
    """Directed links and next-hop links between adapters and switches; the base class of ``Tables``, which adds hosts.

    Vertices are the adapters, then the switches. An adapter sends on the first link that leaves it.

    :param source: vertex that each link leaves, shape (links,).
    :param target: vertex that each link enters, shape (links,).
    :param rate: bandwidth of each link in bytes/s, shape (links,), NaN if unknown.
    :param latency: time in seconds from the vertex that each link leaves to the vertex that it enters, shape (links,),
        NaN if unknown.
    :param next_link: link from each switch towards each adapter, -1 if there is none, shape (paths, switches, adapters)
        or, if there are no alternative paths, (switches, adapters); or an object that computes these links.
    :param names: names of the vertices, for error messages and pictures; empty to use their numbers.
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
        """Number of alternative paths per adapter (LMC)."""
        return int(self.next_link.shape[0])

    @property
    def first_switch(self) -> int:
        """Vertex of the first switch, which is the number of adapters."""
        return int(self.next_link.shape[2])

    @cached_property
    def link_end(self) -> Links:
        """Vertex that each link enters, then -1 for link number -1 ("no link"); shape (links + 1,)."""
        return np.append(self.target, np.int32(-1))

    @cached_property
    def uplink(self) -> Links:
        """The link on which each adapter sends, shape (adapters,); -1 if it has none."""
        return first_links(self.source, self.first_switch)

    @cached_property
    def leaf(self) -> Links:
        """Number of the switch that each adapter sends to, shape (adapters,); -1 if it has none."""
        vertex = self.link_end[self.uplink]
        return np.where(vertex >= self.first_switch, vertex - self.first_switch, -1).astype(np.int32)

    @property
    def per_pair(self) -> bool:
        """Whether each pair of adapters has a route of its own, which no table by destination represents."""
        return bool(getattr(self.next_link, "per_pair", False))

    @cached_property
    def table(self) -> Links:
        """All next-hop links, shape (paths, switches, adapters).

        :raises FabricError: if each pair of adapters has a route of its own.
        Cost: memory for this table if it is not stored.
        """
        if isinstance(self.next_link, np.ndarray):
            return self.next_link
        self._refuse_per_pair()
        full = np.empty(self.next_link.shape, dtype=np.int32)
        every = np.arange(self.first_switch, dtype=np.int32)
        for path, some in product(range(self.num_paths), slices(self.num_switches, self.first_switch)):
            rows = np.arange(some.start, some.stop, dtype=np.int32)
            found = self.next_link.at(path, np.repeat(rows, len(every)), np.tile(every, len(rows)))
            full[path, some] = found.reshape(len(rows), -1)
        return full

    def _refuse_per_pair(self) -> None:
        if self.per_pair:
            raise self.error("tables: expecting routes by destination, got routes per pair of adapters")

    def name(self, vertex: int) -> str:
        """Display name of an adapter or a switch."""
        first = self.first_switch
        kind, number = ("host", vertex) if vertex < first else ("switch", vertex - first)
        return self.names[vertex] if self.names else f"{kind} {number}"

    def links_at(self, switches: Links, adapters: Links, path: int | Links = 0) -> Links:
        """The next-hop link from ``switches[i]`` towards ``adapters[i]`` for each i, shape (n,); -1 if there is none.

        :param switches: switch numbers, shape (n,).
        :param adapters: numbers of the destination adapters, shape (n,).
        :param path: number of the alternative route (LMC), from 0; one number, or an array of shape (n,).
        """
        if isinstance(self.next_link, np.ndarray):
            found: Links = self.next_link[path][switches, adapters]
            return found
        return self.next_link.at(path, switches, adapters)

    def walk(self, switches: Links, adapters: Links, path: int | Links = 0) -> tuple[Links, Links, Links]:
        """Follow the routes from many switches at once.

        :param switches: switch at the start of each walk, shape (n,); a switch -1 has no route.
        :param adapters: destination adapter of each walk, shape (n,).
        :param path: number of the alternative route (LMC), from 0; one number, or an array of shape (n,).
        :returns: three arrays: the number of switches crossed, shape (n,), or, if the walk does not arrive, DIES (the
            walk ends elsewhere) or LOOPS (it crosses more than MAX_HOPS switches); the links taken, shape (n, length of
            the longest walk), padded with -1; and the last switch of each walk, shape (n,).
        Cost: one array operation over the unfinished walks per hop.
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
            link = self.links_at(last[under_way], destination, _of(path, under_way))
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
        """Number of switches crossed from each switch to each adapter, shape (s, a), negative without a route.

        :param switches: switches at the start, shape (s,); -1 has no route.
        :param adapters: destination adapters, shape (a,).
        :param path: number of the alternative route (LMC), from 0.
        Cost: one walk (a route followed) from each distinct switch to each adapter; none if next-hop links are
        computed.
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
        """Find the switches, and their next-hop links, on the routes between all pairs of some adapters.

        Each pair of a switch and a destination occurs once, because routes to one destination do not part after they
        meet.

        :param adapters: adapter numbers, shape (n,).
        :param path: number of the alternative route (LMC), from 0.
        :returns: three columns: switch, position of the destination in ``adapters``, and link from the switch towards
            it, -1 if the switch has none.
        :raises FabricError: if each pair of adapters has a route of its own.
        """
        self._refuse_per_pair()
        leaves = np.unique(self.leaf[adapters])
        leaves = leaves[leaves >= 0]
        found = [np.empty((3, 0), dtype=np.int32)]
        for part in slices(len(adapters), len(leaves)):
            some = adapters[part]
            seen = np.zeros(self.num_switches * len(some), dtype=bool)  # index: switch * len(some) + destination
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
        self, switches: Links, adapters: Links, amounts: NDArray[np.number], path: int | Links = 0
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Sum, for each link, the bytes of the routes that cross it, shape (links,); return also whether each arrives.

        :param switches: switch at the start of each route, shape (n,); -1 has no route.
        :param adapters: destination adapter of each route, shape (n,).
        :param amounts: bytes on each route, shape (n,); routes that do not arrive are not counted.
        :param path: number of the alternative route (LMC), from 0; one number, or an array of shape (n,).
        Cost: one walk per route, ``AT_ONCE`` at a time.
        """
        loads, arrives = np.zeros(self.num_links), np.zeros(len(switches), dtype=bool)
        for some in slices(len(switches)):
            hops, links, _ = self.walk(switches[some], adapters[some], _of(path, some))
            arrives[some] = hops > 0
            loads += link_loads(links, np.where(hops > 0, amounts[some], 0), self.num_links)
        return loads, arrives
