"""Routes between hosts: the adapters that two hosts use, and the path between these adapters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import RouteError
from ..inputs.limits import current_limits
from ..network import Tables
from .fabric import IntArray
from .hostnames import parts_of
from .routes import Routes

__all__ = ["HostRoutes"]


@dataclass(frozen=True, eq=False)
class HostRoutes:
    """The routes between all ordered pairs of some hosts.

    Two hosts use the pair of their adapters with the fewest hops, see ``Tables``.

    :param routes: the routes between adapters.
    :param hosts: host numbers in the routes' fabric, shape (n,).
    """

    routes: Routes
    hosts: IntArray

    def __repr__(self) -> str:
        return f"HostRoutes(between {len(self.hosts):,} hosts, {self.routes!r})"

    @cached_property
    def tables(self) -> Tables:
        """Links and next-hop links as a ``Tables`` value with these hosts only; links keep the fabric's numbers."""
        return self.routes.tables.part(self.hosts)

    @cached_property
    def hops(self) -> NDArray[np.int16]:
        """Number of switches crossed from host i to host j, shape (n, n): 0 on the diagonal, -1 if there is no route.

        :raises RouteError: if n * n exceeds the limit ``routes``.
        """
        count = len(self.hosts)
        current_limits().check("routes", count * count, self.routes.fabric.name, RouteError)
        return self.tables.all_hops()

    def paths(self, path: int = 0) -> IntArray:
        """Links on the path from host i to host j in order, shape (n, n, length of the longest path), padded with -1.

        A pair without a route, and a host to itself, have no links; nothing is raised.

        :param path: number of the alternative route (LMC), from 0 to below the number of paths per adapter.
        Cost: memory for n * n * (longest path) numbers; one array operation over all pairs per hop.
        """
        return self.tables.all_paths(path)

    def switches(self, sender: int, receiver: int, path: int = 0) -> list[str]:
        """Ids of the switches on the path from one host to another, in order; empty from a host to itself.

        :param sender: position of the sending host in ``hosts``.
        :param receiver: position of the receiving host in ``hosts``.
        :param path: number of the alternative route (LMC), from 0 to below the number of paths per adapter.
        :raises RouteError: if there is no route.
        Cost: that of `paths`, because the routes of all pairs are followed.
        """
        fabric, ends = self.routes.fabric, (int(self.hosts[sender]), int(self.hosts[receiver]))
        if ends[0] == ends[1]:
            return []
        links = self.paths(path)[sender, receiver]
        links = links[links >= 0]
        if self.hops[sender, receiver] < 0 or not len(links):
            names = " to ".join(fabric.hosts[end] for end in ends)
            joined = parts_of(fabric, ends[0]) & parts_of(fabric, ends[1])
            why = self.routes.engine if joined else "no links join their parts of the fabric"
            raise RouteError(f"no route from {names}: {why}")
        return [fabric.vertex_id(int(vertex)) for vertex in fabric.link_target[links[:-1]]]

    @property
    def _first(self) -> IntArray:
        """Adapter of each host on its first rail (its first adapter), shape (n,)."""
        adapters: IntArray = self.routes.fabric.rails[0][self.hosts]
        return adapters

    @cached_property
    def leaf(self) -> IntArray:
        """Leaf switch of each host on its first rail, shape (n,)."""
        leaf: IntArray = self.tables.leaf[self._first]
        return leaf

    @cached_property
    def rates(self) -> NDArray[np.float64]:
        """Bandwidth of each host's link into the fabric on its first rail in bytes/s, shape (n,), NaN if unknown."""
        return self.tables.host_rate

    @cached_property
    def on_leaves(self) -> tuple[IntArray, IntArray]:
        """Leaf switches of these hosts over all rails, ascending, and the number of hosts on each; shapes (leaves,)."""
        fabric = self.routes.fabric
        adapters = np.concatenate([np.empty(0, dtype=np.int32), *(fabric.host_adapters[host] for host in self.hosts)])
        leaf = fabric.adapter_leaf[adapters]
        pairs = np.unique(np.stack((leaf, fabric.adapter_host[adapters]))[:, leaf >= 0], axis=1)
        leaves, hosts = np.unique(pairs[0], return_counts=True)
        return leaves, hosts.astype(np.int32)

    def sharing(self) -> list[IntArray]:
        """Groups of hosts to which traffic from other leaf switches arrives by one common link into their leaf switch.

        Each shared link into a leaf switch gives one group, an array of ascending positions in ``hosts``; a host may be
        in several groups.
        Cost: a look-up of one next-hop link for each leaf switch and host; if hosts have several adapters, that of
        `paths`, because only the routes between the chosen adapters count.
        """
        if len(self.tables.adapters) > 1:
            return self._sharing_of_paths()
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

    def _sharing_of_paths(self) -> list[IntArray]:
        paths = self.paths()
        length = (paths >= 0).sum(axis=2)
        sender, receiver = np.nonzero(length >= 3)  # shorter routes stay within a leaf switch
        links = paths[sender, receiver, length[sender, receiver] - 2]
        pairs = np.unique(np.stack((links, receiver.astype(np.int32))), axis=1)
        bounds = np.flatnonzero(np.diff(pairs[0])) + 1
        return [group for group in np.split(pairs[1], bounds) if len(group) > 1]
