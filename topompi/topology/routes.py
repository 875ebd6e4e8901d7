"""Routes: the next-hop link of each switch towards each adapter, for a fabric or a part of one."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..errors import RouteError
from ..inputs.limits import current_limits
from ..network import NextLinks, Tables
from .fabric import Fabric, IntArray

__all__ = ["Routes", "subfabric"]


@dataclass(frozen=True, eq=False)
class Routes:
    """Routes as next-hop links: for each path number, switch and destination adapter, the link that leaves the switch.

    :param fabric: the fabric that the numbers refer to.
    :param engine: name, for outputs, of the method or program that computed the routes.
    :param table: link numbers, shape (paths, switches, adapters), -1 if a switch has no link towards the adapter; or an
        object that computes them. Path 0 is the route to the adapter's base LID; if the LMC is above 0, its further
        LIDs give further (alternative) paths.
    """

    fabric: Fabric
    engine: str
    table: NDArray[np.int32] | NextLinks

    def __repr__(self) -> str:
        return f"Routes({self.engine!r}, {self.num_paths} path(s) to a host, {self.fabric!r})"

    def __getstate__(self) -> dict[str, object]:
        """The fields without cached properties, for small pickles; cached properties are computed again when read."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def num_paths(self) -> int:
        """Number of alternative paths per adapter, 2 to the power of the largest LMC."""
        return int(self.table.shape[0])

    @property
    def num_entries(self) -> int:
        """Number of next-hop links: alternative routes x switches x destination adapters."""
        return prod(self.table.shape)

    @property
    def next_link(self) -> NDArray[np.int32]:
        """All next-hop links as an array, shape (paths, switches, adapters).

        :raises RouteError: for computed routes if the table's size exceeds the limit ``routes``.
        """
        if not isinstance(self.table, np.ndarray):
            current_limits().check("routes", self.num_entries, self.fabric.name, RouteError)
        return self.tables.table

    @cached_property
    def tables(self) -> Tables:
        """Links, rates and next-hop links as a `Tables` value with the fabric's numbers, to compute paths and loads."""
        fabric = self.fabric
        return Tables(
            source=fabric.link_source,
            target=fabric.link_target,
            rate=fabric.link_rate,
            latency=fabric.link_latency,
            next_link=self.table,
            names=fabric.vertex_names,
            adapters=fabric.rails,
        )

    def restrict(self, hosts: IntArray) -> Routes:
        """Restrict the routes to some hosts, and the fabric to the part that the routes between them cross.

        :param hosts: host numbers, shape (n,); they are renumbered 0..n-1 in this order.
        Cost: per alternative path, the next-hop links from each leaf switch of these hosts to each of their adapters;
        memory for switches x adapters numbers.
        """
        fabric = self.fabric
        adapters = np.concatenate([fabric.host_adapters[host] for host in hosts])
        crossed = [self.tables.crossed(adapters, path) for path in range(self.num_paths)]
        used = np.zeros(fabric.num_links + 1, dtype=bool)  # the extra last element is for link -1, "no link"
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


def subfabric(
    fabric: Fabric, hosts: IntArray, adapters: IntArray, links: NDArray[np.intp], switches: NDArray[np.intp]
) -> Fabric:
    """Make the part of a fabric that has the given hosts, adapters, links and switches, in the given orders.

    :param fabric: the whole fabric.
    :param hosts: host numbers, shape (n,).
    :param adapters: adapter numbers of these hosts, host by host; one or more of each.
    :param links: link numbers; both ends of each link are given adapters or switches.
    :param switches: switch numbers.
    """
    vertex = np.full(fabric.num_adapters + fabric.num_switches, -1, dtype=np.int32)
    vertex[adapters] = np.arange(len(adapters))
    vertex[fabric.num_adapters + switches] = len(adapters) + np.arange(len(switches))
    place = np.full(fabric.num_hosts, -1, dtype=np.int32)
    place[hosts] = np.arange(len(hosts))
    return Fabric(
        name=fabric.name,
        hosts=tuple(fabric.hosts[host] for host in hosts),
        adapter_ids=tuple(fabric.adapter_ids[adapter] for adapter in adapters),
        adapter_host=place[fabric.adapter_host[adapters]],
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
