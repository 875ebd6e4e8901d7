"""Cuts of a network that prove how long its hosts must exchange data: the worst one is found by maximum flows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, maximum_flow

from ..network import Network

__all__ = ["Graph", "Need", "fabric_graph", "plain_partitions", "tree_partition", "violated", "worst_cut"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Side = NDArray[np.bool_]

WHOLE = 1 << 29  # units of all flow: scipy's capacities are 32-bit integers
NEAR = 1e-7  # part of a flow that may be missing because capacities are rounded to units


@dataclass(frozen=True, eq=False)
class Graph:
    """Directed edges with rates between vertices, of which the first are hosts and the others switches.

    :param tail: vertex that each edge leaves, shape (edges,).
    :param head: vertex that each edge enters, shape (edges,).
    :param rate: rate of each edge in bytes/s, shape (edges,).
    :param link: number of each edge in the network, shape (edges,).
    :param hosts: number of hosts.
    :param vertices: number of vertices.
    """

    tail: Integers
    head: Integers
    rate: Floats
    link: Integers
    hosts: int
    vertices: int

    @cached_property
    def reverse(self) -> Graph:
        """The graph with all edges turned round."""
        return replace(self, tail=self.head, head=self.tail)

    @cached_property
    def is_balanced(self) -> bool:
        """Whether the rates into each vertex sum up to the rates out of it."""
        out, into = (np.bincount(end, self.rate, self.vertices) for end in (self.tail, self.head))
        return bool(np.allclose(out, into, rtol=1e-9))

    @cached_property
    def home(self) -> Integers:
        """The only switch to which each host is joined, or the vertex itself, shape (vertices,)."""
        home = np.arange(self.vertices)
        ends = np.concatenate((self.tail, self.head)), np.concatenate((self.head, self.tail))
        mine = ends[0] < self.hosts
        low, high = np.full(self.hosts, self.vertices), np.full(self.hosts, -1)
        np.minimum.at(low, ends[0][mine], ends[1][mine])
        np.maximum.at(high, ends[0][mine], ends[1][mine])
        alone = np.flatnonzero((low == high) & (low >= self.hosts))
        home[alone] = low[alone]
        return home

    def leaving(self, side: Side) -> NDArray[np.intp]:
        """The edges that leave a set of vertices.

        :param side: whether each vertex is in the set, shape (vertices,).
        """
        return np.flatnonzero(side[self.tail] & ~side[self.head])

    def rate_out(self, side: Side) -> float:
        """The rate of all edges that leave a set of vertices."""
        return float(self.rate[self.leaving(side)].sum())


@dataclass(frozen=True, eq=False)
class Need:
    """The bytes that must leave a set of hosts.

    :param kind: ``all``: what the hosts of the set have, if a host is outside; ``one``: one byte, if the root is in the
        set and a host is outside; ``each``: what is destined for the hosts outside, if the root is in the set.
    :param weight: bytes of each host, above 0, shape (hosts,).
    :param root: the root's host; not used by ``all``.
    """

    kind: Literal["all", "one", "each"]
    weight: Floats
    root: int = 0

    def of(self, inside: Side) -> float:
        """The bytes that must leave the hosts for which ``inside``, of shape (hosts,), is true."""
        if inside.all() or (self.kind != "all" and not inside[self.root]):
            return 0.0
        if self.kind == "one":
            return 1.0
        return float(self.weight[inside if self.kind == "all" else ~inside].sum())

    def seconds(self, graph: Graph, side: Side) -> float:
        """The time that the edges that leave a set of vertices need for the bytes that must leave it."""
        needed, rate = self.of(side[: graph.hosts]), graph.rate_out(side)
        return needed / rate if rate else (np.inf if needed else 0.0)


def fabric_graph(network: Network) -> Graph:
    """The links of a network between its hosts and switches.

    If the network has forwarding tables, all links of the fabric count, except for those of hosts that are not in the
    job. If it has routes only, the links of these routes count, and the switches follow from their order. Links have
    their own rates, also if messages are striped.
    """
    hosts = network.num_hosts
    if isinstance(network.paths, np.ndarray):
        ends = _ends_of_routes(np.split(network.links, network.adapters, axis=2), len(network.capacity))
    else:
        tables = network.paths
        number = np.concatenate((np.full(tables.first_switch, -1), hosts + np.arange(tables.num_switches)))
        for rail in tables.adapters:
            number[rail[rail >= 0]] = np.flatnonzero(rail >= 0)
        ends = number[tables.source], number[tables.target]
    link = np.flatnonzero((ends[0] >= 0) & (ends[1] >= 0) & (network.capacity > 0))
    tail, head = (end[link].astype(np.int64) for end in ends)
    vertices = int(np.concatenate((tail, head)).max(initial=hosts - 1)) + 1
    return Graph(tail, head, network.capacity[link] / network.adapters, link, hosts, vertices)


def _ends_of_routes(rails: Sequence[NDArray[np.int32]], links: int) -> tuple[Integers, Integers]:
    """The vertices at both ends of each link, as the routes join them; -1 for links on no route.

    :param rails: for each rail the links of the route from host i to host j, shape (hosts, hosts, longest), padded with
        -1.
    :param links: number of links.
    """
    hosts, ones, others, used = len(rails[0]), list[Integers](), list[Integers](), np.zeros(links, dtype=bool)
    head = hosts + links + np.arange(links)  # before joining: hosts, tails of links, heads of links
    for paths in rails:
        source, destination, place = np.nonzero(paths >= 0)
        link = paths[source, destination, place].astype(np.int64)
        last = np.append((paths >= 0).sum(axis=2)[source, destination] - 1 == place, True)[: len(link)]
        ones += [source[place == 0], head[link[:-1][~last[:-1]]], head[link[last]]]
        others += [hosts + link[place == 0], hosts + link[1:][~last[:-1]], destination[last]]
        used[link] = True
    joined = np.concatenate(ones), np.concatenate(others)
    size = hosts + 2 * links
    number = connected_components(csr_array((np.ones(len(joined[0])), joined), shape=(size, size)), directed=False)[1]
    vertex = np.full(int(number.max()) + 1, -1)
    vertex[number[:hosts]] = np.arange(hosts)
    switches = np.flatnonzero(vertex < 0)
    vertex[switches] = hosts + np.arange(len(switches))
    tails, heads = vertex[number[hosts : hosts + links]], vertex[number[hosts + links :]]
    return np.where(used, tails, -1), np.where(used, heads, -1)


class _Flows:
    """Maximum flows through a graph with two more vertices, a source and a sink, whose edges change.

    :param tail: vertex that each edge leaves, shape (edges,).
    :param head: vertex that each edge enters, shape (edges,).
    :param rate: rate of each edge, shape (edges,).
    :param vertices: number of vertices.
    """

    def __init__(self, tail: Integers, head: Integers, rate: Floats, vertices: int) -> None:
        apart = tail != head
        self.vertices = vertices
        self.source, self.sink = vertices, vertices + 1
        size = vertices + 2
        summed = csr_array((rate[apart], (tail[apart], head[apart])), shape=(size, size)).tocoo()
        self._tail, self._head = summed.coords
        self._rate = summed.data

    def cut(
        self, seconds: float, wanted: float, into: tuple[Integers, Floats], out: tuple[Integers, Floats]
    ) -> tuple[float, Side]:
        """The maximum flow in bytes, and the source's side of the minimum cut next to the sink, shape (vertices,).

        :param seconds: time that the edges have.
        :param wanted: largest possible flow in bytes.
        :param into: vertices that the source feeds, and the bytes that each gets from it.
        :param out: vertices that end in the sink, and the bytes that each passes to it.
        """
        unit = wanted / WHOLE
        # Integers of 32 bits, because not all versions of scipy find the maximum flow with longer ones.
        tail = np.concatenate((self._tail, np.full(len(into[0]), self.source), out[0]), dtype=np.int32)
        head = np.concatenate((self._head, into[0], np.full(len(out[0]), self.sink)), dtype=np.int32)
        amount = np.concatenate((self._rate * seconds, into[1], out[1])) / unit
        size = self.vertices + 2
        capacity = np.rint(np.minimum(amount, 2 * WHOLE)).astype(np.int32)
        graph = csr_array(coo_array((capacity, (tail, head)), shape=(size, size)))
        found = maximum_flow(graph, self.source, self.sink)
        left = csr_array(graph - found.flow)
        left.data = np.maximum(left.data, 0)
        left.eliminate_zeros()
        side = np.ones(size, dtype=bool)
        side[breadth_first_order(csr_array(left.T), self.sink, return_predecessors=False)] = False
        return found.flow_value * unit, side[:-2]


def worst_cut(graph: Graph, need: Need, guesses: Iterable[Side] = ()) -> tuple[float, Side]:
    """The set of vertices whose edges out need the longest time for the bytes that must leave it, and this time.

    The ratio of bytes and rate is raised from cut to cut, as in Newton's method for fractional programs (Dinkelbach
    1967); a maximum flow to each place that must get all bytes finds a worse cut or proves that there is none (Zhao et
    al., ForestColl, 2024). Hosts on a single switch are joined with it, because only their own links matter besides.

    :param graph: the graph.
    :param need: the bytes that must leave a set of hosts.
    :param guesses: further sets to begin with, each of shape (vertices,).
    Cost: for ``all`` and ``one`` a maximum flow for each switch with hosts, for ``each`` a few. Flows are rounded, so
    that a cut that is worse by less than 1e-6 may be missed; the time of the returned cut is exact.
    """
    alone = _alone(graph)
    best, side = 0.0, np.zeros(graph.vertices, dtype=bool)
    for guess in (*alone, *(~one for one in alone), *guesses):
        if need.seconds(graph, guess) > best * (1 + 1e-9):
            best, side = need.seconds(graph, guess), guess
    if not 0 < best < np.inf:
        return best, side
    for sink in _sinks(graph, need):
        while True:
            flow, found = sink.cut(best)
            seconds = need.seconds(graph, found)
            if flow >= sink.wanted * (1 - NEAR) or seconds <= best * (1 + 1e-9):
                break
            best, side = seconds, found
    return best, side


def violated(graph: Graph, need: Need, seconds: float) -> Iterator[Side]:
    """The sets of vertices, one for each place that must get bytes, whose edges out need more than a time.

    :param graph: the graph.
    :param need: the bytes that must leave a set of hosts.
    :param seconds: the time.
    """
    for sink in _sinks(graph, need):
        flow, side = sink.cut(seconds)
        if flow < sink.wanted * (1 - NEAR) and need.seconds(graph, side) > seconds * (1 + 1e-6):
            yield side


@dataclass(frozen=True, eq=False)
class _Sink:
    """A place that must get bytes: the flow to it, and the bytes that it must have."""

    flows: _Flows
    home: Integers
    wanted: float
    into: tuple[Integers, Floats]
    out: tuple[Integers, Floats]

    def cut(self, seconds: float) -> tuple[float, Side]:
        """The bytes that a flow brings within a time, and the set of vertices whose edges out are all full."""
        flow, side = self.flows.cut(seconds, self.wanted, self.into, self.out)
        return flow, side[self.home]


def _sinks(graph: Graph, need: Need) -> Iterator[_Sink]:
    """All places that must get bytes, one after the other; for ``each`` they are one."""
    home = graph.home
    flows = _Flows(home[graph.tail], home[graph.head], graph.rate, graph.vertices)
    weight = np.bincount(home[: graph.hosts], need.weight, graph.vertices)
    places, root = np.flatnonzero(weight), home[need.root]
    for sink in [root] if need.kind == "each" else places.tolist():
        others = places[places != sink]
        into, end = (others, weight[others]), (np.array([sink]), np.array([np.inf]))
        wanted = float(weight[others].sum())
        if need.kind == "one":
            into, wanted = (np.array([root]), np.array([1.0])), float(sink != root)
        if need.kind == "each":
            into, end = end, into
        if wanted:
            yield _Sink(flows, home, wanted, into, end)


def _alone(graph: Graph) -> list[Side]:
    """Each host alone, and each switch with the hosts that are joined to it only."""
    every = np.arange(graph.vertices)
    sets = [every == host for host in range(graph.hosts)]
    return sets + [graph.home == one for one in np.unique(graph.home[: graph.hosts]).tolist() if one >= graph.hosts]


def tree_partition(graph: Graph) -> tuple[float, Integers]:
    """The largest rate at which the hosts can send data to all hosts if any host may have any part of it, with a proof.

    By a theorem of Frank (1978) the rate is the least of (sum of rates into the sets) / (number of sets - 1) over
    disjoint sets of vertices, each with a host. Shares of hosts are lowered one by one until a set of vertices
    prevents it; the sets that overlap are joined.

    :param graph: the graph, with at least two hosts.
    :returns: the rate in bytes/s, and the set of each vertex, shape (vertices,), -1 if it is in none.
    Cost: a maximum flow for each host, two or three times.
    """
    flows = _Flows(graph.tail, graph.head, graph.rate, graph.vertices)
    best, parts = np.inf, np.full(graph.vertices, -1)
    side = worst_cut(graph, Need("all", np.ones(graph.hosts)))[1]
    for guess in (*plain_partitions(graph), side.astype(np.int64)):
        if _rate_of(graph, guess) < best:
            best, parts = _rate_of(graph, guess), guess
    while 0 < best < np.inf:
        tight = _tight_sets(flows, best, graph.hosts)
        if tight is None or _rate_of(graph, tight) >= best * (1 - 1e-9):
            break
        best, parts = _rate_of(graph, tight), tight
    return best, parts


def plain_partitions(graph: Graph) -> tuple[Integers, Integers]:
    """Each host as a set, and each switch with the hosts that are joined to it only: the set of each vertex or -1."""
    every = np.arange(graph.vertices)
    with_hosts = np.isin(graph.home, graph.home[: graph.hosts])
    return np.where(every < graph.hosts, every, -1), np.where(with_hosts, graph.home, -1)


def _rate_of(graph: Graph, parts: Integers) -> float:
    """The sum of the rates into all parts, over their number less one; infinite if fewer than two have hosts."""
    number = len(np.unique(parts[: graph.hosts][parts[: graph.hosts] >= 0]))
    into = (parts[graph.head] >= 0) & (parts[graph.tail] != parts[graph.head])
    return float(graph.rate[into].sum()) / (number - 1) if number > 1 else np.inf


def _tight_sets(flows: _Flows, rate: float, hosts: int) -> Integers | None:
    """The sets that keep hosts from sending at a rate, as a set of each vertex; None if nothing keeps them."""
    share = np.full(hosts, rate)
    parts = np.full(flows.vertices, -1)
    for host in range(hosts):
        others = np.flatnonzero(np.arange(hosts) != host)
        end = np.array([host]), np.array([np.inf])
        flow, side = flows.cut(1.0, float(share.sum()), (others, share[others]), end)
        excess = share[host] + flow - rate
        if excess < share[host]:
            met = np.unique(parts[:hosts][~side[:hosts]])
            parts[~side | np.isin(parts, met[met >= 0])] = host
        share[host] -= min(share[host], max(excess, 0.0))
    return parts if share.sum() > rate * (1 + 1e-6) else None
