"""A job's view of the network: the places of its ranks, and the routes between its hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import HostError, RouteError
from ..inputs.limits import current_limits
from ..network import rate_delay
from .hostnames import find_hosts, require_hosts

if TYPE_CHECKING:
    from .fabric import IntArray
    from .hostroutes import HostRoutes
    from .routes import Routes
    from .served import Served
    from .tree import ClusterTree

__all__ = ["Level", "TopologyInterface", "within"]


@dataclass(frozen=True, eq=False)
class Level:
    """A partition of a job's p ranks into clusters of ranks that are near each other, by one measure of distance.

    :param name: kind of cluster at this level: ``within 3 hops``, ``host``, ``package``.
    :param cluster: cluster of each rank, shape (p,), numbered by the cluster's lowest rank (its leader).
    """

    name: str
    cluster: IntArray

    def __repr__(self) -> str:
        return f"Level({self.name!r}: {len(self.leaders):,} clusters of {len(self.cluster):,} ranks)"

    @cached_property
    def leaders(self) -> IntArray:
        """Lowest rank of each cluster, ascending."""
        return np.unique(self.cluster)


@dataclass(frozen=True, eq=False)
class TopologyInterface:
    """A job's view of the network: the host of each of its p ranks, and the routes between its n hosts.

    :param source: source of the topology, in words.
    :param hosts: the job's host names in the order of their first rank, length n.
    :param rank_host: position of each rank's host in ``hosts``, shape (p,).
    :param routes: routes over the part of the fabric that joins these hosts, with hosts numbered as in ``hosts``; None
        if only the hosts are known; all hosts then count as equally near.
    :param virtual: whether the placement is hypothetical, that is, the ranks do not run on these hosts.
    :param domains: levels inside hosts, coarsest first, each as its name, for example ``package``, and the number of
        each rank's domain (part of the host), -1 if the rank is bound to none.
    :param served: the topology service that the routes came from; None if they did not come from one.
    """

    source: str
    hosts: tuple[str, ...]
    rank_host: IntArray
    routes: Routes | None = None
    virtual: bool = False
    domains: tuple[tuple[str, IntArray], ...] = field(default=())
    served: Served | None = None

    @classmethod
    def place(
        cls,
        rank_hosts: Sequence[str],
        routes: Routes | None = None,
        *,
        source: str = "",
        virtual: bool = False,
        missing: str = "error",
    ) -> TopologyInterface:
        """Make the view of a job whose rank i runs on host ``rank_hosts[i]``.

        :param rank_hosts: host name of each rank, length p.
        :param routes: routes over the whole fabric; None if only the hosts are known; all hosts then count as equally
            near.
        :param source: source of the topology, in words; the fabric's name if empty.
        :param virtual: whether the placement is hypothetical.
        :param missing: reaction to hosts that the fabric does not have: ``error`` raises HostError, ``flat`` proceeds
            as if ``routes`` were None.
        :raises HostError: if ``rank_hosts`` is empty, or, with ``missing="error"``, if hosts are not in the fabric; the
            message contains their names.
        :raises RouteError: if the number of pairs of hosts exceeds the limit ``routes``.
        Cost: that of ``Routes.restrict`` for the job's hosts.
        """
        order: dict[str, int] = {}
        rank_host = np.array([order.setdefault(host, len(order)) for host in rank_hosts], dtype=np.int32)
        hosts = tuple(order)
        if routes is None:
            return cls(source or "hosts only", hosts, rank_host, None, virtual)
        source = source or routes.fabric.name
        if not hosts:
            raise HostError(f"{source}: expecting at least one host, got none")
        numbers = find_hosts(routes.fabric, hosts)
        absent = int((numbers < 0).sum())
        if absent and missing == "flat":
            return cls(
                f"hosts only: {absent} host{'s are' if absent > 1 else ' is'} not in {source}",
                hosts,
                rank_host,
                None,
                virtual,
            )
        numbers = require_hosts(routes.fabric, hosts)
        current_limits().check("routes", len(hosts) ** 2, routes.fabric.name, RouteError)
        return cls(source, hosts, rank_host, routes.restrict(numbers), virtual)

    def with_domains(self, domains: Sequence[tuple[str, Sequence[int]]]) -> TopologyInterface:
        """A copy of this view with other levels inside hosts.

        :param domains: name of each level, and the number of each rank's domain or -1, coarsest level first.
        """
        return replace(self, domains=tuple((name, np.array(of_rank, dtype=np.int32)) for name, of_rank in domains))

    def __repr__(self) -> str:
        return f"TopologyInterface({self.describe()})"

    def __getstate__(self) -> dict[str, object]:
        """The fields without cached properties, for small pickles; cached properties are computed again when read."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def num_ranks(self) -> int:
        """Number of ranks, p."""
        return len(self.rank_host)

    @property
    def num_hosts(self) -> int:
        """Number of the job's hosts, n."""
        return len(self.hosts)

    def describe(self) -> str:
        """One line with the numbers of ranks and hosts, the topology's source, and whether the placement is virtual."""
        placed = "virtual placement, " if self.virtual else ""
        ranks, hosts = (
            f"{count} {word}{'s' * (count != 1)}"
            for count, word in ((self.num_ranks, "rank"), (self.num_hosts, "host"))
        )
        return f"{placed}{ranks} on {hosts}, topology from {self.source}"

    @cached_property
    def host_routes(self) -> HostRoutes | None:
        """Routes between the job's hosts, None if only the hosts are known."""
        if self.routes is None:
            return None
        from .hostroutes import HostRoutes  # imported here, because a job on one host needs no routes

        return HostRoutes(self.routes, np.arange(self.num_hosts, dtype=np.int32))

    @cached_property
    def hop_matrix(self) -> NDArray[np.int16]:
        """Number of switches crossed from host i to host j, shape (n, n): 0 on the diagonal, -1 without a route.

        If only the hosts are known, all of them are one hop apart.
        """
        if self.host_routes is None:
            return (1 - np.eye(self.num_hosts)).astype(np.int16)
        return self.host_routes.hops

    def delay_matrix(self, by: str = "hops") -> NDArray[np.float64]:
        """Compute the delay matrix over the job's hosts, shape (n, n) (Subramoni 2013, section 4).

        :param by: measure of the delay: if ``hops``, the number of switches crossed; if ``rate``, 1 / min(rate_i,
            rate_j) in s/byte with the bandwidths of the two hosts' links, 0 on the diagonal, NaN if one of them is
            unknown.
        :raises ValueError: if ``by`` is another word.
        """
        if by == "hops":
            return self.hop_matrix.astype(np.float64)
        if by != "rate":
            raise ValueError(f"expecting by='hops' or by='rate', got {by!r}")
        rates = np.full(self.num_hosts, np.nan) if self.host_routes is None else self.host_routes.rates
        delay = rate_delay(rates)
        np.fill_diagonal(delay, 0.0)
        return delay

    @cached_property
    def tree(self) -> ClusterTree:
        """The cluster tree over the job's hosts."""
        from .tree import cluster_tree

        return cluster_tree(self.hop_matrix)

    # The methods below have the names of the functions of Subramoni 2013, sections 5.2.1, 6.2.1, 8.2.2, without the
    # prefix that is common to them.

    def get_network_depth(self) -> int:
        """Depth of the cluster tree: the root is at depth 0, the hosts are at the returned depth."""
        return self.tree.depth

    def num_switch_clusters_at_depth(self, depth: int) -> int:
        """Number of clusters of the job's hosts at a depth of the cluster tree; ValueError if the tree is less deep."""
        return len(np.unique(self._clusters_at(depth)))

    def connected_switch_cluster_at_depth(self, rank: int, depth: int) -> int:
        """The cluster (tree node) that contains a rank at a depth.

        :param rank: rank of the job.
        :param depth: depth in the cluster tree, 0 for the root.
        :raises ValueError: if the rank is not in the job, or the tree is less deep.
        """
        if not 0 <= rank < self.num_ranks:
            raise ValueError(f"expecting rank in range({self.num_ranks}), got {rank}")
        return int(self._clusters_at(depth)[self.rank_host[rank]])

    def _clusters_at(self, depth: int) -> IntArray:
        if not 0 <= depth <= self.tree.depth:
            raise ValueError(f"expecting depth in range({self.tree.depth + 1}), got {depth}")
        clusters: IntArray = self.tree.clusters[depth]
        return clusters

    def get_network_path_matrix(self) -> IntArray:
        """Links on the route from host i to host j in order, shape (n, n, length of the longest route), padded with -1.

        Link numbers are those of ``routes.fabric``. Cost: memory for n * n * (longest route) numbers.
        """
        if self.host_routes is None:
            return np.empty((self.num_hosts, self.num_hosts, 0), dtype=np.int32)
        return self.host_routes.paths()

    @cached_property
    def sharing_groups(self) -> tuple[tuple[str, ...], ...]:
        """The distinct groups of host names that traffic from other leaf switches reaches by one link into the leaf."""
        groups = [] if self.host_routes is None else self.host_routes.sharing()
        return tuple(dict.fromkeys(tuple(self.hosts[host] for host in group) for group in groups))

    def get_hosts_sharing_links(self) -> tuple[str, ...]:
        """The job's hosts that share a link into their leaf switch with another of its hosts (``sharing_groups``)."""
        sharing = {host for group in self.sharing_groups for host in group}
        return tuple(host for host in self.hosts if host in sharing)

    def get_num_hosts_sharing_links(self) -> int:
        """Number of the job's hosts that share a link into their leaf switch with another of its hosts."""
        return len(self.get_hosts_sharing_links())

    def get_avg_hosts_per_leaf_switch(self) -> float:
        """Mean number of the job's hosts per leaf switch; the number of all its hosts if only the hosts are known.

        A host with adapters on several leaf switches counts on each of them.
        """
        if self.host_routes is None:
            return float(self.num_hosts)
        hosts = self.host_routes.on_leaves[1]
        return float(hosts.mean()) if len(hosts) else float(self.num_hosts)

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The informative partitions of the ranks, coarsest first: by switch clusters, by hosts, by parts of hosts.

        A level is left out if it is a single cluster, repeats the level above, or puts every rank in a cluster of its
        own.
        """
        cuts, clusters = self.tree.cuts, self.tree.clusters
        named = [(within(int(cut)), clusters[1 + depth][self.rank_host]) for depth, cut in enumerate(cuts[1:])]
        named.append(("host", self.rank_host))
        for name, domain in self.domains:
            inner = named[-1][1].astype(np.int64) * (int(domain.max(initial=0)) + 2) + domain + 1
            named.append((name, np.unique(inner, return_inverse=True)[1]))
        return _telling_levels(named)


def within(hops: int) -> str:
    """The level's name ``within N hops``, for clusters whose hosts are at most ``hops`` switches apart."""
    return f"within {hops} hop{'s' * (hops != 1)}"


def _telling_levels(named: Sequence[tuple[str, IntArray]]) -> tuple[Level, ...]:
    levels: list[Level] = []
    above = 1
    for name, cluster in named:
        _, first, inverse = np.unique(cluster, return_index=True, return_inverse=True)
        if above < len(first) < len(cluster):
            levels.append(Level(name, first.astype(np.int32)[inverse]))
            above = len(first)
    return tuple(levels)
