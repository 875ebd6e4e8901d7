"""Routes: which link a switch takes towards each adapter, and the paths that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .fabric import Fabric, IntArray

__all__ = ["MAX_HOPS", "Routes"]

# A packet that has crossed this many switches is taken to be in a loop: InfiniBand's own limit on a
# directed route (InfiniBand Architecture Specification, volume 1, section 14.2.2).
MAX_HOPS = 64

WALKS_AT_ONCE = 2**18  # bounds the memory of all-pairs questions to some ten MB beside their answer
DIES, LOOPS = -1, -2


@dataclass(frozen=True, eq=False)
class Routes:
    """Next link per (path, switch, destination adapter).

    :param fabric: the fabric the numbers refer to.
    :param engine: what computed the routes, in words, for every output that depends on them.
    :param next_link: link numbers, shape (paths, S, A), -1 where the switch has none; path 0 is the one that
        the adapter's base LID takes, further ones exist where the LMC is above 0.
    """

    fabric: Fabric
    engine: str
    next_link: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"Routes({self.engine!r}, {self.num_paths} path(s) to a host, {self.fabric!r})"

    @property
    def num_paths(self) -> int:
        """Number of paths kept for each adapter (2 to the power of the largest LMC)."""
        return int(self.next_link.shape[0])

    def walk(self, switches: IntArray, adapters: IntArray, path: int = 0) -> tuple[IntArray, IntArray, IntArray]:
        """Follow the routes from many switches at once.

        :param switches: start of each walk, shape (n,); -1 yields no route.
        :param adapters: destination of each walk, shape (n,).
        :param path: which of the destination's paths, from 0.
        :returns: (hops, links, last): switches crossed, shape (n,), DIES or LOOPS where there is no route; the links
            taken, shape (n, longest), padded with -1; and the switch where each walk ended, shape (n,).
        Cost: one array operation over the walks still under way for each hop.
        """
        table, first = self.next_link[path], self.fabric.num_adapters
        target = self.fabric.link_target
        hops = np.full(len(switches), LOOPS, dtype=np.int32)
        last = np.array(switches, dtype=np.int32)
        hops[last < 0] = DIES
        under_way = np.flatnonzero(last >= 0)
        columns: list[IntArray] = []
        for hop in range(1, MAX_HOPS + 1):
            if not len(under_way):
                break
            destination = adapters[under_way]
            link = table[last[under_way], destination]
            column = np.full(len(switches), -1, dtype=np.int32)
            column[under_way] = link
            columns.append(column)
            vertex = np.where(link >= 0, target[link], -1)
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
        Cost: one walk from each distinct switch to each adapter, all at once.
        """
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
        Cost: a walk from each of their leaf switches to each of their adapters, for each path.
        """
        fabric = self.fabric
        adapters = np.concatenate([fabric.host_adapters[host] for host in hosts])
        leaves = np.unique(fabric.adapter_leaf[adapters])
        start, destination = np.meshgrid(leaves[leaves >= 0], adapters, indexing="ij")
        used = np.zeros(fabric.num_links + 1, dtype=bool)  # the last one stands for -1, no link
        for path in range(self.num_paths):
            used[self.walk(start.ravel(), destination.ravel(), path)[1]] = True
        uplinks = fabric.adapter_uplink[adapters]
        used[uplinks[uplinks >= 0]] = True
        links = np.flatnonzero(used[:-1])
        part, switches = _subfabric(fabric, hosts, adapters, links)
        number = np.full(fabric.num_links + 1, -1, dtype=np.int32)
        number[links] = np.arange(len(links))
        return Routes(part, self.engine, number[self.next_link[:, switches][:, :, adapters]])


def _subfabric(
    fabric: Fabric, hosts: IntArray, adapters: IntArray, links: NDArray[np.intp]
) -> tuple[Fabric, NDArray[np.intp]]:
    """The fabric of these hosts, adapters and links, and the switches at the links' ends."""
    ends = np.concatenate((fabric.link_source[links], fabric.link_target[links]))
    switches = np.flatnonzero(np.bincount(ends)[fabric.num_adapters :])
    vertex = np.full(fabric.num_adapters + fabric.num_switches, -1, dtype=np.int32)
    vertex[adapters] = np.arange(len(adapters))
    vertex[fabric.num_adapters + switches] = len(adapters) + np.arange(len(switches))
    rails = [len(fabric.host_adapters[host]) for host in hosts]
    part = Fabric(
        name=fabric.name,
        hosts=tuple(fabric.hosts[host] for host in hosts),
        adapter_ids=tuple(fabric.adapter_ids[adapter] for adapter in adapters),
        adapter_host=np.repeat(np.arange(len(hosts), dtype=np.int32), rails),
        switch_ids=tuple(fabric.switch_ids[switch] for switch in switches),
        switch_names=tuple(fabric.switch_names[switch] for switch in switches),
        link_source=vertex[fabric.link_source[links]],
        link_target=vertex[fabric.link_target[links]],
        link_source_port=fabric.link_source_port[links],
        link_target_port=fabric.link_target_port[links],
        link_rate=fabric.link_rate[links],
        link_latency=fabric.link_latency[links],
        cabled=fabric.cabled,
        part_of=None if fabric.torus is None else fabric.torus.of(switches),
    )
    return part, switches
