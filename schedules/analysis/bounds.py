"""Lower bounds on the time and the number of steps that a collective needs on a network with any schedule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..network import Network, NoRouteError
from ..schedule import COLLECTIVES, ROOTED

__all__ = ["Bound", "link_width", "lower_bound", "min_steps"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bound:
    """Lower bounds on the time of a collective, in seconds if the network's capacities are in bytes/s.

    The bounds of hosts and leaf switches hold for every correct schedule, with any forwarding and aggregation. The
    bound of links holds if each block travels along the route between its own two hosts.

    :param host_out: bytes that must leave the busiest host, over the rate of its links into the fabric.
    :param host_in: bytes that must enter the busiest host, over the rate of its links from the fabric.
    :param leaf_out: bytes that must leave the busiest leaf switch, over the rate of the links by which its hosts'
        routes leave it.
    :param leaf_in: bytes that must enter the busiest leaf switch, over the rate of the links by which routes enter it.
    :param link: bytes on the busiest link over its capacity for alltoall; 0 for other collectives, which prescribe no
        routes.
    :param latency: start-up time of a message times ceil(log2 p) for p ranks, because data must reach all of them.
    """

    host_out: float
    host_in: float
    leaf_out: float
    leaf_in: float
    link: float
    latency: float

    @property
    def seconds(self) -> float:
        """The largest of the bounds."""
        return max(self.host_out, self.host_in, self.leaf_out, self.leaf_in, self.link, self.latency)


def lower_bound(
    network: Network,
    collective: str = "alltoall",
    share: int | Integers = 1,
    *,
    root: int | None = None,
    block_bytes: int = 1,
    alpha: float = 0.0,
) -> Bound:
    """Lower bounds on the time of a collective on a network with any schedule.

    The bytes that cross the border of a host or leaf switch follow from the collective's definition: data that only
    ranks inside have must leave once, data that only ranks outside have must enter once, and reductions may be combined
    before they cross. For an allreduce with ranks in G hosts (or leaf switches), each element crosses borders 2 (G - 1)
    times, the number of one-way messages of a gossip (Harary and Schwenk 1974).

    :param network: the job's network, of p ranks on n hosts.
    :param collective: one of ``COLLECTIVES``.
    :param share: blocks of each rank, shape (p,), or for alltoall of each ordered pair, shape (p, p); or one number.
    :param root: the root of a rooted collective.
    :param block_bytes: bytes per block.
    :param alpha: start-up time of a message in seconds.
    :raises ValueError: if the collective is unknown, the root is missing, or ``share`` has another shape.
    Cost: O(p^2 + n^2 * longest route) for alltoall, O(p + n^2) for the others.
    """
    _check(network, collective, root)
    hosts = _necessary(collective, share, network.rank_host, network.num_hosts, root)
    leaf = np.unique(network.leaf, return_inverse=True)[1]
    leaves = _necessary(collective, share, leaf[network.rank_host], int(leaf.max()) + 1, root)
    sides = []
    for inside, (out, into), depth in ((np.arange(network.num_hosts), hosts, 0), (leaf, leaves, 1)):
        rate_out, rate_in = _border_rates(network, inside, depth)
        sides += [_slowest(collective, out, rate_out), _slowest(collective, into, rate_in)]
    link = 0.0
    if collective == "alltoall":
        load = network.loads(between(share, network.rank_host, network.num_hosts))
        link = float((load / network.capacity).max(initial=0.0))
    host_out, host_in, leaf_out, leaf_in, link = (block_bytes * bound for bound in (*sides, link))
    latency = alpha * (network.num_ranks - 1).bit_length()
    return Bound(host_out, host_in, leaf_out, leaf_in, link, latency)


def min_steps(network: Network, conflicts: int = 1) -> int:
    """The least number of steps of an alltoall in which a rank sends one message per step and no link is over-used.

    With p ranks, it is the largest of p - 1 and, for each link, the messages that cross it over the messages that it
    may carry in a step. The latter number is ``conflicts`` * width (``link_width``) * s, if s is the largest number of
    ranks on a host that sends over the link; ``analyse`` counts conflicts in the same way. To count steps of hosts,
    give a network with one rank per host.

    :param network: the job's network.
    :param conflicts: number of simultaneous transfers allowed on a link as fast as a host's; 1 if none may share it.
    Cost: O(n^2 * longest route).
    """
    ranks = np.bincount(network.rank_host, minlength=network.num_hosts)
    messages = network.loads(np.outer(ranks, ranks)).astype(np.int64)
    source, _, link = _crossings(network)
    senders = np.ones(len(network.capacity), dtype=np.int64)
    np.maximum.at(senders, link, ranks[source])
    steps = -(-messages // (conflicts * link_width(network) * senders))
    return max(network.num_ranks - 1, int(steps.max(initial=0)))


def link_width(network: Network) -> Integers:
    """The number of transfers that fit into each link at full rate, at least 1, shape (links,).

    The full rate of a transfer is that of the slower of its two hosts' links. For each link, the fastest transfer that
    crosses it counts, so that transfers up to the width never exceed the link's capacity.
    """
    source, destination, link = _crossings(network)
    fastest = np.zeros(len(network.capacity))
    np.maximum.at(fastest, link, _pair_rates(network)[source, destination])
    fits = np.divide(network.capacity, fastest, out=np.ones_like(fastest), where=fastest > 0)
    # The division of rates rounds, so a quotient that is just below a whole number is taken as this number.
    return np.maximum(np.floor(fits * (1 + 1e-9)), 1).astype(np.int64)


def distinct(keys: Integers) -> Integers:
    """The distinct values of an array, ascending.

    The array is sorted, because ``np.unique`` uses a hash table, which is far slower if there are a million values.

    :param keys: values, which must not be negative.
    """
    ordered = np.sort(keys)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=-1))]


def require_routes(network: Network, source: Integers, destination: Integers) -> None:
    """Raise NoRouteError for the first pair of hosts that has no route."""
    missing = np.flatnonzero(network.hops[source, destination] < 0)
    if len(missing):
        raise NoRouteError(f"no route from host {source[missing[0]]} to host {destination[missing[0]]}")


def _check(network: Network, collective: str, root: int | None) -> None:
    if collective not in COLLECTIVES:
        raise ValueError(f"expecting one of {', '.join(COLLECTIVES)}, got {collective!r}")
    if collective in ROOTED and root is None:
        raise ValueError(f"expecting a root for {collective}")
    if root is not None and not 0 <= root < network.num_ranks:
        raise ValueError(f"expecting root in range({network.num_ranks}), got {root}")


def _necessary(
    collective: str, share: int | Integers, side: Integers, sides: int, root: int | None
) -> tuple[Floats, Floats]:
    """The number of blocks that must leave each side, and that must enter it, each of shape (sides,).

    A side is a set of ranks with a border around it: those of a host, or those of a leaf switch.

    :param collective: one of ``COLLECTIVES``.
    :param share: blocks of each rank, or for alltoall of each ordered pair; or one number.
    :param side: side of each rank, shape (p,).
    :param sides: number of sides.
    :param root: the root of a rooted collective.
    """
    if collective == "alltoall":
        traffic = between(share, side, sides)
        np.fill_diagonal(traffic, 0)
        return traffic.sum(axis=1), traffic.sum(axis=0)
    each = np.broadcast_to(np.asarray(share, dtype=np.float64), side.shape)
    own = np.bincount(side, weights=each, minlength=sides)
    rest = own.sum() - own
    message = np.where(sides > 1, np.full(sides, each[0]), 0.0)
    at_root = np.arange(sides) == (-1 if root is None else side[root])
    out_in = {
        "bcast": (message * at_root, message * ~at_root),
        "gather": (own * ~at_root, rest * at_root),
        "allgather": (own * (sides > 1), rest),
        "allreduce": (message, message),
        "barrier": (0 * message, 0 * message),
    }
    out_in["scan"] = out_in["exscan"] = message * _precedes(side, sides), message * _precedes(side[::-1], sides)
    out_in["reduce"], out_in["scatter"] = out_in["bcast"][::-1], out_in["gather"][::-1]
    out_in["reduce_scatter"] = out_in["allgather"][::-1]
    return out_in[collective]


def _precedes(side: Integers, sides: int) -> NDArray[np.bool_]:
    """Whether each side (host or leaf switch) has a rank that precedes a rank of another side, shape (sides,)."""
    first = np.full(sides, len(side))
    np.minimum.at(first, side, np.arange(len(side)))
    last_elsewhere = np.full(sides, len(side) - 1)
    others = np.flatnonzero(side != side[-1])
    last_elsewhere[side[-1]] = others[-1] if len(others) else -1
    return first < last_elsewhere


def between(share: int | Integers, side: Integers, sides: int) -> Floats:
    """The number of blocks from each set of ranks to each set, itself included, in an alltoall, shape (sides, sides).

    :param share: blocks of each ordered pair of ranks, shape (p, p), or one number for all pairs.
    :param side: set of each rank, for example its host, from 0, shape (p,).
    :param sides: number of sets.
    """
    ranks = np.bincount(side, minlength=sides).astype(np.float64)
    if np.ndim(share) == 0:
        return np.asarray(share * np.outer(ranks, ranks))
    matrix = np.asarray(share, dtype=np.float64).reshape(len(side), len(side))
    rows = np.zeros((sides, len(side)))
    np.add.at(rows, side, matrix)
    columns = np.zeros((sides, sides))
    np.add.at(columns, side, rows.T)
    return columns.T


def _slowest(collective: str, needed: Floats, rate: Floats) -> float:
    """The time that the slowest border of a host or leaf switch needs for the blocks that must cross it.

    :param collective: one of ``COLLECTIVES``; in an allreduce a share of the crossings of all borders counts, too.
    :param needed: number of blocks that must cross the border of each host or leaf switch.
    :param rate: rate of the links across each border.
    """
    with np.errstate(divide="ignore"):  # infinite for a side that no route enters
        time = np.divide(needed, rate, out=np.zeros_like(needed), where=needed > 0)
        several = collective == "allreduce" and len(rate) > 1
        shared = 2 * (len(rate) - 1) * needed.max() / rate.sum() if several else 0.0
    return float(max(time.max(), shared))


def _border_rates(network: Network, inside: Integers, depth: int) -> tuple[Floats, Floats]:
    """The rate of the links by which routes leave each side (host or leaf switch), and by which they enter it.

    :param network: the job's network.
    :param inside: side of each host, shape (n,).
    :param depth: index of the link that crosses the border, from a route's end: 0 for hosts, 1 for leaf switches.
    """
    crossing = (inside[:, None] != inside[None, :]) & (network.hops > 0)
    source, destination = np.nonzero(crossing)
    links = network.links[source, destination]
    length = (links >= 0).sum(axis=1)
    rates: list[Floats] = []
    for host, place in ((source, np.minimum(depth, length - 1)), (destination, np.maximum(length - 1 - depth, 0))):
        keys = inside[host] * np.int64(len(network.capacity)) + links[np.arange(len(links)), place]
        side, link = np.divmod(distinct(keys), len(network.capacity))
        rate = np.bincount(side, weights=network.capacity[link], minlength=int(inside.max()) + 1)
        rates.append(rate.astype(np.float64))
    return rates[0], rates[1]


def _crossings(network: Network) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int32]]:
    """The links of all routes: sending host, receiving host and link, three arrays of shape (links of all routes,)."""
    source, destination, place = np.nonzero(network.links >= 0)
    return source, destination, network.links[source, destination, place]


def _pair_rates(network: Network) -> Floats:
    """The rate of the slower of the first and the last link of each route, shape (n, n); infinite without a route."""
    length = (network.links >= 0).sum(axis=2)
    ends = np.zeros((2, *length.shape), dtype=np.int64)
    if network.links.shape[2]:
        ends[0] = network.links[:, :, 0]
        ends[1] = np.take_along_axis(network.links, np.maximum(length - 1, 0)[:, :, None], axis=2)[:, :, 0]
    return np.where(length > 0, network.capacity[ends].min(axis=0), np.inf)
