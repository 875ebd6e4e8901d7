"""One generation of a fabric's routes, and the answers that come from it; the next one replaces it as a whole."""

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

MAX_TABLE = 1 << 26  # next links that are written out for quick answers, 256 MB


@dataclass(frozen=True, eq=False)
class Generation:
    """What a service knows at one time.

    :param number: 1 for what it read at its start, one more for each that replaced the one before.
    :param routes: of the whole fabric.
    :param loaded: when they were read, seconds since 1970.
    """

    number: int
    routes: Routes
    loaded: float

    def __repr__(self) -> str:
        return f"Generation({self.number}, {self.routes!r})"

    def prepare(self) -> None:
        """Work out what quick answers need, before a client waits for one. Cost: seconds for computed routes."""
        _ = self.digest, self._table, self._link_target, self._leaf, self._adapters, self.routes.fabric.host_index

    @cached_property
    def digest(self) -> str:
        """What jobs recognise the routes by, in this process and after a restart."""
        return digest_of(self.routes)

    @cached_property
    def tree(self) -> ClusterTree:
        """The cluster tree over all hosts. Cost: hosts x hosts numbers of two bytes, once a generation."""
        hosts = np.arange(self.routes.fabric.num_hosts, dtype=np.int32)
        return cluster_tree(HostRoutes(self.routes, hosts).hops)

    def route(self, sender: str, receiver: str) -> tuple[str, ...]:
        """Ids of the switches from one host to another, in order; none from a host to itself.

        The rails are those that `Tables` takes.

        :raises HostError: for a name that is no host; RouteError where there is no route.
        Cost: some microseconds; no arrays are made, for thousands of single queries a second.
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
        """The switches from an adapter to another one on its first path; none where there is no route."""
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
        """Where one next link is looked up: a table is quicker, and made where it is small."""
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
        """The routes between some hosts, each once in the order of their names; of all hosts for None.

        :raises HostError: naming those that are no hosts of the fabric.
        """
        if names is None:
            return self.routes
        numbers: IntArray = require_hosts(self.routes.fabric, names)
        return self.routes.restrict(np.array(list(dict.fromkeys(numbers.tolist())), dtype=np.int32))
