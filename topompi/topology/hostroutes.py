"""Routes between hosts: which pair of rails two hosts talk over, and the path between these."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import RouteError
from ..inputs.limits import current_limits
from .fabric import IntArray
from .routes import Routes

__all__ = ["HostRoutes"]


@dataclass(frozen=True, eq=False)
class HostRoutes:
    """The routes between all ordered pairs of some hosts.

    Two hosts talk over the pair of rails with the fewest hops; among equals over rails of the same number, then
    the lowest.

    :param routes: the routes between adapters.
    :param hosts: host numbers in the routes' fabric, shape (n,).
    """

    routes: Routes
    hosts: IntArray

    def __repr__(self) -> str:
        return f"HostRoutes(between {len(self.hosts):,} hosts, {self.routes!r})"

    @cached_property
    def hops(self) -> NDArray[np.int16]:
        """Switches crossed from host i to host j, shape (n, n): 0 on the diagonal, -1 where there is no route."""
        return self._best[0]

    @cached_property
    def rails(self) -> tuple[IntArray, IntArray]:
        """Adapter used by the sender and by the receiver of each ordered pair, each of shape (n, n)."""
        return self._best[1], self._best[2]

    @cached_property
    def _best(self) -> tuple[NDArray[np.int16], IntArray, IntArray]:
        adapters, count = self._adapters_by_rail, len(self.hosts)
        current_limits().check("routes", count * count, self.routes.fabric.name, RouteError)
        leaf = [self.routes.fabric.adapter_leaf[of_rail] for of_rail in adapters]
        sender = np.broadcast_to(adapters[0][:, None], (count, count))
        receiver = np.broadcast_to(adapters[0][None, :], (count, count))
        if len(adapters) == 1:
            hops = self.routes.hops_from(leaf[0], adapters[0])
            np.maximum(hops, -1, out=hops)
            np.fill_diagonal(hops, 0)
            return hops, sender, receiver
        sender, receiver = sender.copy(), receiver.copy()
        hops = np.full((count, count), -1, dtype=np.int16)
        rails = range(len(adapters))
        for i, j in sorted(((i, j) for i in rails for j in rails), key=lambda pair: (pair[0] != pair[1], pair)):
            rows, columns = np.flatnonzero(adapters[i] >= 0), np.flatnonzero(adapters[j] >= 0)
            found = self.routes.hops_from(leaf[i][rows], adapters[j][columns])
            pairs = np.ix_(rows, columns)
            better = (found > 0) & ((hops[pairs] < 0) | (found < hops[pairs]))
            hops[pairs] = np.where(better, found, hops[pairs])
            sender[pairs] = np.where(better, adapters[i][rows][:, None], sender[pairs])
            receiver[pairs] = np.where(better, adapters[j][columns][None, :], receiver[pairs])
        np.fill_diagonal(hops, 0)
        return hops, sender, receiver

    @cached_property
    def _adapters_by_rail(self) -> list[IntArray]:
        """Adapter of each host on each rail, -1 where the host has fewer."""
        fabric = self.routes.fabric
        adapters = [fabric.host_adapters[host] for host in self.hosts]
        rails = max(len(rails) for rails in adapters)
        table = np.full((rails, len(adapters)), -1, dtype=np.int32)
        for host, of_host in enumerate(adapters):
            table[: len(of_host), host] = of_host
        return list(table)

    def paths(self, path: int = 0) -> IntArray:
        """Links from host i to host j in order, shape (n, n, longest), padded with -1.

        Raises nothing: a pair without a route, and a host to itself, have no links.
        Cost: n * n * (longest path) numbers, and one array operation over the pairs for each hop.
        """
        fabric, count = self.routes.fabric, len(self.hosts)
        sender, receiver = (rail.ravel() for rail in self.rails)
        apart = self.hops.ravel() > 0
        leaf = np.where(apart, fabric.adapter_leaf[sender], -1)
        _, links, _ = self.routes.walk(leaf, receiver, path)
        links = np.concatenate((fabric.adapter_uplink[sender][:, None], links), axis=1)
        links[~apart] = -1
        return links.reshape(count, count, -1)

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

    @cached_property
    def leaf(self) -> IntArray:
        """Leaf switch of each host (of its first rail), shape (n,)."""
        return self.routes.fabric.adapter_leaf[self._adapters_by_rail[0]]

    @cached_property
    def rates(self) -> NDArray[np.float64]:
        """Rate of each host's link into the fabric in bytes/s (of its first rail), shape (n,), NaN where unknown."""
        return self.routes.fabric.link_rate[self.routes.fabric.adapter_uplink[self._adapters_by_rail[0]]]

    def sharing(self) -> list[IntArray]:
        """Groups of hosts whose traffic from other leaves enters their leaf switch by the same link.

        With routes that follow the destination this is the link just above the leaf level that two hosts must
        share. One group a shared link, ascending positions in ``hosts``; a host may be in several.
        Cost: a link from each leaf switch to each host.
        """
        adapters, fabric = self._adapters_by_rail[0], self.routes.fabric
        switch, host, link = self.routes.crossed(adapters)
        leaf, target = self.leaf[host], fabric.link_end[link]
        arrives = np.zeros(len(adapters), dtype=bool)
        arrives[host[(switch == leaf) & (target == adapters[host])]] = True
        entering = np.flatnonzero((target == leaf + fabric.num_adapters) & (leaf >= 0) & arrives[host])
        order = np.lexsort((host[entering], link[entering]))
        link, host = link[entering][order], host[entering][order]
        bounds = np.flatnonzero(np.diff(link)) + 1
        return [group for group in np.split(host, bounds) if len(group) > 1]
