"""The least time of a collective for long messages on a network, on any routes and on its own, with what proves it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...network.spreading import spread_loads
from ..network import Network
from ..schedule import ROOTED
from .concurrent import concurrent_flow, distance_bound
from .cuts import Graph, Need, Side, fabric_graph, plain_partitions, tree_partition, worst_cut
from .overlay import CLOSE, MOST_HOSTS, least_on_routes

__all__ = ["LONG", "MOST_HOSTS", "Certificate", "Optimum", "optimum"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

LONG = ("bcast", "reduce", "gather", "scatter", "allgather", "reduce_scatter", "allreduce", "alltoall")
KINDS: dict[str, Literal["all", "one", "each"]] = {
    **dict.fromkeys(("bcast", "reduce"), "one"),
    **dict.fromkeys(("scatter", "gather"), "each"),
    **dict.fromkeys(("allgather", "reduce_scatter"), "all"),
}
BACKWARDS = ("reduce", "gather", "reduce_scatter")  # data come together: all directions of links are turned round


@dataclass(frozen=True, eq=False)
class Certificate:
    """A time that no schedule can beat, what proves it, and a time that is known to be possible.

    The time is the sum over links of price times bytes at least, and prices times rates sum up to 1. For a cut all of
    its links have one price.

    :param seconds: least time in seconds per byte of a message, start-ups left out.
    :param reached: time in seconds per byte that trees, or flows, can reach; infinite if none is known.
    :param kind: proof: ``cut`` of the hosts in two sets, ``partition`` in several, ``link`` whose routes are given, or
        ``prices`` of links.
    :param sets: hosts of each set; the links of a cut lead from the first set to the second.
    :param links: links between the sets, or those that have a price, shape (links in the proof,).
    :param needed: bytes that must cross these links, per byte of a message; for ``prices`` their number of crossings.
    :param rate: rate of these links in bytes/s.
    """

    seconds: float
    reached: float
    kind: Literal["cut", "partition", "link", "prices"]
    sets: tuple[Integers, ...]
    links: Integers
    needed: float
    rate: float

    def __repr__(self) -> str:
        return f"Certificate({self.seconds:.4g} s/B, {self.words})"

    @property
    def is_reached(self) -> bool:
        """Whether the time is the least, and not only a bound."""
        return self.reached <= self.seconds * (1 + 2 * CLOSE)

    @property
    def words(self) -> str:
        """One or two sentences that say what proves the time, and whether it is reached."""
        return _words(self)


@dataclass(frozen=True, eq=False)
class Optimum:
    """The least time of a collective for long messages, in seconds per byte of the message of ``topompi schedule``.

    The message is, for bcast, reduce and allreduce, the whole vector; for gather, scatter, allgather and reduce_scatter
    one rank's share; for alltoall the part that one rank has for one other.

    :param collective: name of the collective.
    :param free: the time if messages may take any routes over the network's links, and hosts may pass data on.
    :param given: the time if each message takes the route of its two hosts; hosts may pass data on, except in alltoall.
    """

    collective: str
    free: Certificate
    given: Certificate

    def __repr__(self) -> str:
        return (
            f"Optimum({self.collective}, {self.given.seconds:.4g} s/B on given routes, {self.free.seconds:.4g} on any)"
        )


def optimum(collective: str, network: Network, *, root: int = 0) -> Optimum:
    """The least time of a collective for long messages on a network.

    A job's network has the links that the routes between its hosts use, so that others of the fabric do not count.

    - allgather: the largest ratio of the bytes in a set of hosts and switches, and the rate out of it; trees reach it
      if as much rate enters each switch as leaves it (Zhao et al., ForestColl, 2024). reduce_scatter is its reverse.
    - bcast: a byte over the least maximum flow from the root to another host (Edmonds 1973); reduce is its reverse.
    - scatter and gather: the largest ratio for sets with the root, which a flow reaches.
    - allreduce: each byte crosses the borders of G sets 2 (G - 1) times (Harary and Schwenk 1974), and leaves and
      enters each set once. This is a bound; a reduce_scatter and an allgather with the best shares reach ``reached``.
    - alltoall: cuts, distances, and for small networks the linear program, which flows reach.

    :param collective: one of ``LONG``.
    :param network: the job's network; the ranks of a host count as one source, and data inside hosts cost nothing.
    :param root: root's rank of a rooted collective.
    :raises ValueError: if the collective has no such time, or the root is no rank.
    Cost: a maximum flow for each switch with hosts, for allreduce also for each host; on given routes some linear
    programs of about 10 variables per host, which are left out with more than 256 hosts.
    """
    if collective not in LONG:
        raise ValueError(f"expecting one of {', '.join(LONG)}, got {collective!r}")
    if collective in ROOTED and not 0 <= root < network.num_ranks:
        raise ValueError(f"expecting root in range({network.num_ranks}), got {root}")
    graph = fabric_graph(network)
    ranks = np.bincount(network.rank_host, minlength=network.num_hosts).astype(np.float64)
    if network.num_hosts < 2:
        nothing = Certificate(0.0, 0.0, "cut", (np.arange(network.num_hosts),), np.empty(0, dtype=np.int64), 0.0, 0.0)
        return Optimum(collective, nothing, nothing)
    if collective == "alltoall":
        return _both(collective, _alltoall(graph, network, ranks), _by_routes(network, np.outer(ranks, ranks)))
    if collective == "allreduce":
        free = _allreduce(graph)
        return _both(collective, free, _allreduce_on_routes(free, graph, network))
    need = Need(KINDS[collective], ranks, int(network.rank_host[root]))
    turned = collective in BACKWARDS
    free = _rooted_or_gathered(graph, need, _clusters(graph, network), turned)
    return _both(collective, free, _on_routes(free, network, need, turned))


def _both(collective: str, free: Certificate, given: Certificate) -> Optimum:
    """The result; the given routes are some of any routes, so that these reach at least the same time."""
    return Optimum(collective, _better(free, min(free.reached, given.reached)), given)


def _clusters(graph: Graph, network: Network) -> Iterator[Side]:
    """The sets of hosts that share a cluster, with their leaf switches, and all others, each of shape (vertices,)."""
    for level in network.clusters:
        for number in np.unique(level).tolist():
            hosts = np.flatnonzero(level == number)
            inside = np.isin(graph.home, graph.home[hosts])
            inside[: graph.hosts] = level == number
            yield inside
            yield ~inside


def _of_cut(graph: Graph, side: Side, needed: float, reached: float = np.inf, *, turned: bool = False) -> Certificate:
    """The proof by one set of vertices, in a graph whose links may be turned round."""
    crossed = graph.leaving(side)
    rate = float(graph.rate[crossed].sum())
    seconds = _ratio(needed, rate)
    inside = side[: graph.hosts]
    sets = np.flatnonzero(inside), np.flatnonzero(~inside)
    sets = sets[::-1] if turned else sets
    return Certificate(seconds, max(reached, seconds), "cut", sets, graph.link[crossed], needed, rate)


def _ratio(needed: float, rate: float) -> float:
    """The seconds that links of a rate need for bytes, infinite if there are none."""
    return needed / rate if rate else (np.inf if needed else 0.0)


def _rooted_or_gathered(graph: Graph, need: Need, guesses: Iterator[Side], turned: bool) -> Certificate:
    """The least time on any routes by the worst cut.

    :param graph: the links.
    :param need: bytes that must leave a set of hosts, or enter it if ``turned``.
    :param guesses: sets of vertices to begin with.
    :param turned: whether data come together, so that cuts are found with all links turned round.
    """
    graph = graph.reverse if turned else graph
    side = worst_cut(graph, need, guesses)[1]
    is_reached = graph.is_balanced or need.kind == "each"
    return _of_cut(graph, side, need.of(side[: graph.hosts]), 0.0 if is_reached else np.inf, turned=turned)


def _on_routes(free: Certificate, network: Network, need: Need, turned: bool) -> Certificate:
    """The least time on given routes: at least that on free routes."""
    if not 0 < free.seconds < np.inf:
        return free
    if need.kind == "each":
        traffic = np.zeros((network.num_hosts, network.num_hosts))
        traffic[need.root] = need.weight
        direct = _by_routes(network, traffic.T if turned else traffic)
        return _better(free, direct.seconds)
    if network.num_hosts > MOST_HOSTS:
        return _better(free, np.inf)
    paths = network.links.transpose(1, 0, 2) if turned else network.links
    leaf, inside = network.leaf, np.isin(np.arange(network.num_hosts), free.sets[0])
    groups = [leaf == one for one in np.unique(leaf)]
    found = least_on_routes(paths, network.capacity, need, free.seconds, (inside, *groups, *(~one for one in groups)))
    if found.seconds <= free.seconds * (1 + CLOSE):
        return _better(free, found.reached)
    priced = np.flatnonzero(found.prices > 0)
    rate = float(network.capacity[priced].sum())
    return Certificate(found.seconds, found.reached, "prices", (), priced, found.seconds * rate, rate)


def _better(found: Certificate, reached: float) -> Certificate:
    """The same proof, with another time that is known to be possible."""
    reached = max(reached, found.seconds)
    return Certificate(found.seconds, reached, found.kind, found.sets, found.links, found.needed, found.rate)


def _by_routes(network: Network, traffic: Floats) -> Certificate:
    """The time of the busiest link if hosts send each other data directly, infinite if two of them have no route.

    :param traffic: bytes from host to host, per byte of the message, shape (hosts, hosts).
    """
    apart = traffic * ~np.eye(len(traffic), dtype=bool)
    without = float(apart[network.hops < 0].sum())
    if without:
        return Certificate(np.inf, np.inf, "link", (), np.empty(0, dtype=np.int64), without, 0.0)
    loads = network.loads(apart)
    times = np.divide(loads, network.capacity, out=np.zeros_like(loads), where=loads > 0)
    link = int(times.argmax())
    needed, rate, one = float(loads[link]), float(network.capacity[link]), np.array([link])
    return Certificate(float(times[link]), float(times[link]), "link", (), one, needed, rate)


def _allreduce(graph: Graph) -> Certificate:
    """The bound by sets of hosts, and the time of a reduce_scatter and an allgather with the best shares."""
    ones = np.ones(graph.hosts)
    rates = []
    best = _of_cut(graph, np.zeros(graph.vertices, dtype=bool), 0.0)
    for one in (graph, graph.reverse):
        for host in range(graph.hosts):  # a byte from each host must leave every set of hosts, and enter it
            side = np.arange(graph.vertices) == host
            best = max(best, _of_cut(one, side, 1.0, turned=one is not graph), key=lambda proof: proof.seconds)
        rate, tight = tree_partition(one)
        rates.append(rate)
        for parts in (tight, *plain_partitions(one)):
            best = max(best, _of_partition(one, parts), key=lambda proof: proof.seconds)
        if graph.is_balanced:
            break
    root = Need("one", ones)
    for one in (graph, graph.reverse):
        side = worst_cut(one, root)[1]
        best = max(best, _of_cut(one, side, 1.0, turned=one is not graph), key=lambda proof: proof.seconds)
    # Balanced graphs have the same cuts both ways, so that the trees and the trees turned round take the same shares.
    return _better(best, 2 / rates[0] if len(rates) == 1 and rates[0] else np.inf)


def _of_partition(graph: Graph, parts: Integers) -> Certificate:
    """The proof by s sets: each byte crosses their borders 2 (s - 1) times."""
    parts = parts.copy()
    parts[: graph.hosts][parts[: graph.hosts] < 0] = graph.vertices  # hosts in no set form one further set
    numbers = np.unique(parts[: graph.hosts])
    switches = np.arange(graph.vertices) >= graph.hosts
    parts[switches & ~np.isin(parts, numbers)] = -1
    crossed = np.flatnonzero((parts[graph.head] >= 0) & (parts[graph.tail] != parts[graph.head]))
    needed, rate = 2.0 * (len(numbers) - 1), float(graph.rate[crossed].sum())
    sets = tuple(np.flatnonzero(parts[: graph.hosts] == one) for one in numbers.tolist())
    return Certificate(_ratio(needed, rate), np.inf, "partition", sets, graph.link[crossed], needed, rate)


def _allreduce_on_routes(free: Certificate, graph: Graph, network: Network) -> Certificate:
    """The bound on free routes, and the time of a reduce_scatter and an allgather of equal shares on given routes."""
    reached = 0.0
    for turned in (False, True):
        need = Need("all", np.full(network.num_hosts, 1 / network.num_hosts))
        part = _rooted_or_gathered(graph, need, _clusters(graph, network), turned)
        reached += _on_routes(part, network, need, turned).reached
    return _better(free, reached)


def _alltoall(graph: Graph, network: Network, ranks: Floats) -> Certificate:
    """The bound by cuts of hosts and clusters, by distances, or by the linear program."""
    total = ranks.sum()
    alone = (np.arange(graph.vertices) == host for host in range(graph.hosts))
    proofs = []
    for side in (*alone, *_clusters(graph, network)):
        inside = float(ranks[side[: graph.hosts]].sum())
        for one in (graph, graph.reverse):
            proofs.append(_of_cut(one, side, inside * (total - inside), turned=one is not graph))
    best = max(proofs, key=lambda proof: proof.seconds)
    flow = concurrent_flow(graph, ranks)
    seconds, prices = distance_bound(graph, ranks) if flow is None else flow
    if seconds > best.seconds * (1 + CLOSE):
        priced = np.flatnonzero(prices > 0)
        rate = float(graph.rate[priced].sum())
        best = Certificate(seconds, np.inf, "prices", (), graph.link[priced], seconds * rate, rate)
    if flow is not None and (graph.home[: graph.hosts] >= graph.hosts).all():
        own = max(one.seconds for one in proofs[: 2 * graph.hosts])
        return _better(best, max(seconds, own))
    return _better(best, _spread(network, ranks))


def _spread(network: Network, ranks: Floats) -> float:
    """The time if each pair's bytes are divided over all shortest paths; that of the given routes without tables."""
    given = _by_routes(network, np.outer(ranks, ranks)).seconds
    if isinstance(network.paths, np.ndarray):
        return given
    source, destination = np.nonzero(~np.eye(network.num_hosts, dtype=bool))
    loads = spread_loads(network.paths, source, destination, ranks[source] * ranks[destination])
    return min(given, float(np.divide(loads, network.capacity, out=np.zeros_like(loads), where=loads > 0).max()))


def _words(proof: Certificate) -> str:
    if not proof.needed:
        return "no data between hosts"
    links = "1 link" if len(proof.links) == 1 else f"{len(proof.links):,} links together"
    rate = f"{proof.rate / 1e9:.4g} GB/s"
    amount = f"{proof.needed:,.6g} times the message must cross {links} of {rate}"
    if proof.kind == "cut":
        inside, outside = (len(one) for one in proof.sets)
        text = f"cut between {inside:,} and {outside:,} hosts: {amount}"
    elif proof.kind == "partition":
        text = f"{len(proof.sets):,} sets of hosts: {amount}"
    elif proof.kind == "link" and not len(proof.links):
        return f"{proof.needed:,.6g} times the message is for hosts to which there is no route"
    elif proof.kind == "link":
        text = f"busiest link on the given routes: {proof.needed:,.6g} times the message at {rate}"
    else:
        text = f"prices of {len(proof.links):,} links: each schedule pays for its routes at least this time"
    if proof.is_reached:
        return text + ". This is the optimum"
    if np.isinf(proof.reached):
        return text + ". It is a bound; no schedule that reaches it is known"
    return text + f". It is a bound; {proof.reached / proof.seconds:.3f} times it can be reached"
