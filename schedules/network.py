"""The part of a network's description that schedules use, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..network import Tables, link_loads

__all__ = ["DEPTH_FIRST", "Network", "NoRouteError", "SiblingGroups"]

Integers = NDArray[np.int64]

DEPTH_FIRST: Integers = np.empty(0, dtype=np.int64)  # stands for depth-first order as ``Network.order``
DEPTH_FIRST.setflags(write=False)


class NoRouteError(ValueError):
    """A schedule needs a pair of hosts that has no route."""


@dataclass(frozen=True, eq=False)
class Network:
    """Hosts, the routes between them, and the ranks on them.

    A link with rate 0 has failed. Pairs of hosts whose route crosses one have no route, whatever was given; the rate of
    the link, which nobody uses, is then that of the slowest other link, so that nothing divides by 0.

    :param rank_host: host of each rank, shape (p,).
    :param hops: switches crossed from host i to host j, shape (n, n), 0 on the diagonal, -1 without a route.
    :param paths: links of the route from host i to host j, shape (n, n, longest), padded with -1; or forwarding tables,
        from which ``links`` computes the routes when it is first read.
    :param capacity: rate of each link in bytes/s, shape (links,); 0 if it has failed.
    :param clusters: cluster of each host at each level, coarsest first, leaf switches last; shape (levels, n).
    :param latency: latency of each link in seconds, shape (links,); NaN if unknown.
    :param siblings: all groups of ranks that exchange at the same time, if this network has the ranks of one of these
        groups; else None.
    :param grid: coordinates of each host's switch, shape (n, dimensions), if the switches form a torus or a mesh; else
        None.
    :param adapters: number of adapters of a host over which each message is striped. Routes then have the links of all
        of them, in as many equal parts of ``paths``, and links have this number of times their rate.
    :param order: hosts in their order along rings and chains, shape (n,), or ``DEPTH_FIRST``; None, which also gives
        depth-first order, until ``orders.with_order`` has searched it.
    """

    rank_host: Integers
    hops: NDArray[np.int16]
    paths: NDArray[np.int32] | Tables
    capacity: NDArray[np.float64]
    clusters: Integers
    latency: NDArray[np.float64]
    siblings: SiblingGroups | None = None
    grid: Integers | None = None
    adapters: int = 1
    order: Integers | None = None

    def __post_init__(self) -> None:
        failed = self.capacity == 0
        if failed.any():
            self._leave_out(failed)

    def _leave_out(self, failed: NDArray[np.bool_]) -> None:
        """Remove the routes over failed links. Cost: the routes of all pairs of hosts."""
        paths = np.array(self.links)
        broken = (failed[paths] & (paths >= 0)).any(axis=2)
        paths[broken] = -1
        working = float(self.capacity[~failed].min(initial=np.inf))
        object.__setattr__(self, "paths", paths)
        object.__setattr__(self, "hops", np.where(broken, np.int16(-1), self.hops))
        object.__setattr__(self, "capacity", np.where(failed, working if np.isfinite(working) else 1.0, self.capacity))

    def __repr__(self) -> str:
        return f"Network({self.num_ranks:,} ranks on {self.num_hosts:,} hosts, {len(self.capacity):,} links)"

    @property
    def num_ranks(self) -> int:
        """Number of ranks, p."""
        return len(self.rank_host)

    @property
    def num_hosts(self) -> int:
        """Number of hosts, n."""
        return len(self.hops)

    @property
    def links(self) -> NDArray[np.int32]:
        """Links of the route from host i to host j, shape (n, n, longest), padded with -1."""
        return self.paths if isinstance(self.paths, np.ndarray) else self.paths.every_path

    def routes(self, source: NDArray[np.integer], destination: NDArray[np.integer]) -> NDArray[np.int32]:
        """Links of the routes of some pairs of hosts, shape (pairs, longest), padded with -1.

        :param source: sending host of each pair, shape (pairs,).
        :param destination: receiving host of each pair, shape (pairs,).
        """
        if isinstance(self.paths, np.ndarray):
            found: NDArray[np.int32] = self.paths[source, destination]
            return found
        return self.paths.paths(source, destination)

    def loads_of(
        self, source: NDArray[np.integer], destination: NDArray[np.integer], nbytes: NDArray[np.number]
    ) -> NDArray[np.float64]:
        """The bytes that cross each link, shape (links,), if hosts send messages to hosts.

        :param source: sending host of each message, shape (messages,).
        :param destination: receiving host of each message, shape (messages,).
        :param nbytes: bytes of each message, shape (messages,).
        """
        if isinstance(self.paths, np.ndarray):
            return link_loads(self.paths[source, destination], nbytes, len(self.capacity))
        return self.paths.loads(source, destination, nbytes)

    @property
    def leaf(self) -> Integers:
        """Leaf switch of each host, shape (n,), numbered within this network."""
        return self.clusters[-1] if len(self.clusters) else np.zeros(self.num_hosts, dtype=np.int64)

    def loads(self, traffic: NDArray[np.number]) -> NDArray[np.float64]:
        """The sum of the traffic that crosses each link, shape (links,).

        :param traffic: bytes (or another quantity) from host i to host j, shape (n, n).
        Cost: one pass over each column of ``links``.
        """
        return link_loads(self.links.reshape(traffic.size, -1), traffic.ravel(), len(self.capacity))

    @cached_property
    def ports(self) -> int:
        """Number of links between switches that a host can fill at the same time, if these form a torus; else 1.

        It is the median over hosts of the ratio of the rates of the first two links on a route, rounded down.
        """
        if self.grid is None:
            return 1
        host = np.arange(self.num_hosts)
        links = self.routes(host, np.roll(host, -1))
        first = self.capacity[links[(links >= 0).sum(axis=1) > 2, :2]]  # of routes that leave a switch for another one
        return max(int(np.median(first[:, 0] / first[:, 1]) + 1e-9), 1) if len(first) else 1

    @cached_property
    def ranks_of_host(self) -> tuple[NDArray[np.intp], ...]:
        """The ranks on each host, ascending, one array per host."""
        order = np.argsort(self.rank_host, kind="stable")
        bounds = np.searchsorted(self.rank_host[order], np.arange(1, self.num_hosts))
        return tuple(np.split(order, bounds))

    def part(self, ranks: Integers) -> Network:
        """The network of some of the ranks in a new order; hosts are numbered in the order of their first rank.

        It keeps the order along rings if it has all hosts.

        :param ranks: the ranks in their new order, shape (p,).
        """
        numbers, first, inverse = np.unique(self.rank_host[ranks], return_index=True, return_inverse=True)
        order = np.argsort(first)
        hosts = numbers[order]
        both = np.ix_(hosts, hosts)
        whole = self.order is not None and len(hosts) == self.num_hosts
        return replace(
            self,
            rank_host=np.argsort(order)[inverse],
            hops=self.hops[both],
            paths=self.links[both],
            clusters=self.clusters[:, hosts],
            siblings=None,
            grid=None if self.grid is None else self.grid[hosts],
            order=np.argsort(hosts)[self.order] if whole else None,
        )


@dataclass(frozen=True, eq=False)
class SiblingGroups:
    """Groups of ranks that exchange at the same time, for example the rows of a process grid.

    :param network: network of the ranks of all groups.
    :param groups: ranks of each group; groups are disjoint.
    :param number: index, from 0, of the group in whose network (`Network.siblings`) this object is.
    """

    network: Network
    groups: tuple[Integers, ...]
    number: int

    @classmethod
    def each(cls, network: Network, groups: tuple[Integers, ...]) -> list[Network]:
        """The network of each group, with ``siblings`` set to all groups."""
        parts = (network.part(ranks) for ranks in groups)
        return [replace(part, siblings=cls(network, groups, number)) for number, part in enumerate(parts)]
