"""One generation of a fabric's routes (a version that the service has loaded), with the answers derived from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...errors import HostError, RouteError
from ...network import MAX_HOPS, NextLinks
from ..fabric import IntArray
from ..hostnames import find_hosts, require_hosts
from ..hostroutes import HostRoutes
from ..routes import Routes
from ..tree import ClusterTree, cluster_tree
from .digest import digest_of

__all__ = ["Generation"]

MAX_TABLE = 1 << 26  # next-hop links; computed routes of at most this size (256 MB) are expanded, for quick answers


@dataclass(frozen=True, eq=False)
class Generation:
    """One generation: a version of the routes that a service has loaded and answers from, until the next replaces it.

    :param number: number of the generation, 1 for the routes read at the service's start, then increased by one.
    :param routes: the routes over the whole fabric.
    :param loaded: time of reading, in seconds since 1970.
    """

    number: int
    routes: Routes
    loaded: float

    def __repr__(self) -> str:
        return f"Generation({self.number}, {self.routes!r})"

    def prepare(self) -> None:
        """Compute in advance everything that answers to single queries need. Cost: seconds for computed routes."""
        _ = self.digest, self._table, self._link_target, self._leaf, self._adapters, self.routes.fabric.host_index

    @cached_property
    def digest(self) -> str:
        """Digest by which jobs recognise these routes, also after a restart of the service."""
        return digest_of(self.routes)

    @cached_property
    def tree(self) -> ClusterTree:
        """The cluster tree over all hosts, cached. Cost: memory for hosts x hosts numbers of two bytes."""
        hosts = np.arange(self.routes.fabric.num_hosts, dtype=np.int32)
        return cluster_tree(HostRoutes(self.routes, hosts).hops)

    def route(self, sender: str, receiver: str) -> tuple[str, ...]:
        """Ids of the switches on the route from one host to another, in order; empty from a host to itself.

        Of several adapters per host, the pair with the fewest hops is used, as in `Tables`.

        :param sender: name of the sending host.
        :param receiver: name of the receiving host.
        :raises HostError: if a name matches no host.
        :raises RouteError: if there is no route.
        Cost: some microseconds; no arrays are made, because thousands of single queries arrive per second.
        """
        first, second = self._host(sender), self._host(receiver)
        if first == second:
            return ()
        ours, theirs = self._adapters[first], self._adapters[second]
        rails = [(i, j) for i in range(len(ours)) for j in range(len(theirs))]
        if len(rails) > 1:
            rails.sort(key=lambda pair: (pair[0] != pair[1], pair))
        best: list[int] = []
        for i, j in rails:
            found = self._walk(ours[i], theirs[j])
            if found and (not best or len(found) < len(best)):
                best = found
        if not best:
            raise RouteError(f"expecting a route from {sender} to {receiver}, got none: {self.routes.engine}")
        switches = self.routes.fabric.switch_ids
        return tuple([switches[switch] for switch in best])

    def _host(self, name: str) -> int:
        fabric = self.routes.fabric
        number = fabric.host_index.get(name, -1)
        if number < 0:
            number = int(find_hosts(fabric, [name])[0])
        if number < 0:
            raise HostError(f"expecting a host of {fabric.name}, got {name[:80]!r}")
        return number

    def _walk(self, adapter: int, destination: int) -> list[int]:
        """Numbers of the switches from one adapter to another on path 0; empty if there is no route."""
        first, table, target = self.routes.fabric.num_adapters, self._table, self._link_target
        switch = self._leaf[adapter]
        crossed: list[int] = []
        while switch >= 0 and len(crossed) < MAX_HOPS:
            crossed.append(switch)
            link = table.item(switch, destination)
            if link < 0:
                break
            vertex = target[link]
            if vertex == destination:
                return crossed
            switch = vertex - first
        return []

    @cached_property
    def _table(self) -> NDArray[np.int32] | NextLinks:
        """Next-hop links of path 0, as a full table if they are at most MAX_TABLE, because its look-ups are faster."""
        table = self.routes.table
        if isinstance(table, np.ndarray) or self.routes.num_entries <= MAX_TABLE:
            full: NDArray[np.int32] = self.routes.next_link[0]
            return full
        return table

    @cached_property
    def _link_target(self) -> list[int]:
        targets: list[int] = self.routes.fabric.link_target.tolist()
        return targets

    @cached_property
    def _leaf(self) -> list[int]:
        leaves: list[int] = self.routes.fabric.adapter_leaf.tolist()
        return leaves

    @cached_property
    def _adapters(self) -> list[list[int]]:
        return [adapters.tolist() for adapters in self.routes.fabric.host_adapters]

    def part(self, names: list[str] | None) -> Routes:
        """Restrict the routes to some hosts, in the order in which their names first occur.

        :param names: host names, which may occur several times; None for all hosts.
        :raises HostError: if any name matches no host; the message has the first of them.
        """
        if names is None:
            return self.routes
        numbers: IntArray = require_hosts(self.routes.fabric, names)
        return self.routes.restrict(np.array(list(dict.fromkeys(numbers.tolist())), dtype=np.int32))
