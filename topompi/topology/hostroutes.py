"""Routes between hosts: which pair of rails two hosts talk over, and the path between these."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import RouteError
from ..inputs.limits import current_limits
from ..network import Tables
from .fabric import IntArray
from .routes import Routes

__all__ = ["HostRoutes"]


@dataclass(frozen=True, eq=False)
class HostRoutes:
    """The routes between all ordered pairs of some hosts.

    Two hosts talk over the pair of rails that ``Tables`` takes.

    :param routes: the routes between adapters.
    :param hosts: host numbers in the routes' fabric, shape (n,).
    """

    routes: Routes
    hosts: IntArray

    def __repr__(self) -> str:
        return f"HostRoutes(between {len(self.hosts):,} hosts, {self.routes!r})"

    @cached_property
    def tables(self) -> Tables:
        """Links and next links, with these hosts alone; links have the numbers of the routes' fabric."""
        return self.routes.tables.part(self.hosts)

    @cached_property
    def hops(self) -> NDArray[np.int16]:
        """Switches crossed from host i to host j, shape (n, n): 0 on the diagonal, -1 where there is no route.

        :raises RouteError: for more pairs of hosts than the limit of routes.
        """
        count = len(self.hosts)
        current_limits().check("routes", count * count, self.routes.fabric.name, RouteError)
        return self.tables.all_hops()

    def paths(self, path: int = 0) -> IntArray:
        """Links from host i to host j in order, shape (n, n, longest), padded with -1.

        Raises nothing: a pair without a route, and a host to itself, have no links.
        Cost: n * n * (longest path) numbers, and one array operation over the pairs for each hop.
        """
        return self.tables.all_paths(path)

    def switches(self, sender: int, receiver: int, path: int = 0) -> list[str]:
        """Ids of the switches that one host's messages to another one cross, in order; none from a host to itself.

        :param sender: place of the sending host in ``hosts``.
        :param receiver: place of the receiving host in ``hosts``.
        :param path: number of the path, of several to a host.
        :raises RouteError: without a route.
        Cost: that of `paths`, for all pairs.
        """
        fabric, ends = self.routes.fabric, (int(self.hosts[sender]), int(self.hosts[receiver]))
        if ends[0] == ends[1]:
            return []
        links = self.paths(path)[sender, receiver]
        links = links[links >= 0]
        if self.hops[sender, receiver] < 0 or not len(links):
            names = " to ".join(fabric.hosts[end] for end in ends)
            raise RouteError(f"no route from {names}: {self.routes.engine}")
        return [fabric.vertex_id(int(vertex)) for vertex in fabric.link_target[links[:-1]]]

    @property
    def _first(self) -> IntArray:
        """Adapter of each host on its first rail."""
        adapters: IntArray = self.routes.fabric.rails[0][self.hosts]
        return adapters

    @cached_property
    def leaf(self) -> IntArray:
        """Leaf switch of each host (of its first rail), shape (n,)."""
        leaf: IntArray = self.tables.leaf[self._first]
        return leaf

    @cached_property
    def rates(self) -> NDArray[np.float64]:
        """Rate of each host's link into the fabric in bytes/s (of its first rail), shape (n,), NaN where unknown."""
        return self.tables.host_rate

    def sharing(self) -> list[IntArray]:
        """Groups of hosts whose traffic from other leaves enters their leaf switch by the same link.

        With routes that follow the destination this is the link just above the leaf level that two hosts must
        share. One group a shared link, ascending positions in ``hosts``; a host may be in several.
        Cost: a link from each leaf switch to each host.
        """
        adapters, fabric = self._first, self.routes.fabric
        switch, host, link = self.tables.crossed(adapters)
        leaf, target = self.leaf[host], self.tables.link_end[link]
        arrives = np.zeros(len(adapters), dtype=bool)
        arrives[host[(switch == leaf) & (target == adapters[host])]] = True
        entering = np.flatnonzero((target == leaf + fabric.num_adapters) & (leaf >= 0) & arrives[host])
        order = np.lexsort((host[entering], link[entering]))
        link, host = link[entering][order], host[entering][order]
        bounds = np.flatnonzero(np.diff(link)) + 1
        return [group for group in np.split(host, bounds) if len(group) > 1]
