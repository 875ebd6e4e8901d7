"""What no schedule can beat: time and steps that a collective needs on a network, whatever its order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..network import Network
from ..schedule import COLLECTIVES, ROOTED

__all__ = ["Bound", "link_width", "lower_bound", "min_steps"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bound:
    """Lower bounds on the time of a collective, in seconds where the network's capacities are bytes/s.

    Bounds of hosts and of leaf switches hold for every correct schedule, with any forwarding and aggregation. That of
    links holds where each block travels the route between its own two hosts.

    :param host_out: the busiest host's necessary bytes out over the rate of its links into the fabric.
    :param host_in: the same, in.
    :param leaf_out: the busiest leaf switch's necessary bytes to other leaves over the rate of the links that its
        hosts' routes leave by.
    :param leaf_in: the same, in.
    :param link: the busiest link's bytes over its capacity, for alltoall; 0 for the others, which force no route.
    :param latency: alpha * ceil(log2 p).
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
    """The time that a collective needs on a network, whatever the schedule.

    What crosses the border of a host, or of a leaf switch, follows from the collective's definition alone: data that
    only ranks inside have must leave once, data that only ranks outside have must enter once, and reductions may be
    combined before they cross. An allreduce over G sides of borders moves each element 2 (G - 1) times, the number of
    one-way messages of a gossip (Harary and Schwenk 1974).

    :param network: the job's network.
    :param collective: one of ``COLLECTIVES``.
    :param share: blocks of each rank, shape (p,), of each ordered pair, shape (p, p), for alltoall, or one number.
    :param root: the root of a rooted collective.
    :param block_bytes: bytes of one block.
    :param alpha: seconds to start a message.
    :raises ValueError: for an unknown collective, a missing root, or a share of another shape.
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
    """Steps that an alltoall needs at least if a rank sends one message a step and links are not over-used.

    The largest of: p - 1, and for each link the messages that cross it over those that it may carry in one step, which
    are ``conflicts`` times its width (``link_width``) for each rank of the largest host that sends over it: so
    ``analyse`` counts conflicts. For steps of hosts instead of ranks give a network of one rank a host.

    :param conflicts: transfers allowed at once on a link as fast as a host's; 1 for none that share it.
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
    """How many transfers fit into each link at full rate, at least 1, shape (links,).

    The full rate of a transfer is that of the slower host link at its ends; of all host pairs whose route crosses the
    link the fastest counts, so that transfers up to the width never over-subscribe the link.
    """
    source, destination, link = _crossings(network)
    fastest = np.zeros(len(network.capacity))
    np.maximum.at(fastest, link, _pair_rates(network)[source, destination])
    fits = np.divide(network.capacity, fastest, out=np.ones_like(fastest), where=fastest > 0)
    # Quotients of rates such as 54 Gbit/s are not exact: a hair below a whole number is that number.
    return np.maximum(np.floor(fits * (1 + 1e-9)), 1).astype(np.int64)


def distinct(keys: Integers) -> Integers:
    """The distinct keys (none negative), ascending; np.unique hashes, far slower than a sort for a million keys."""
    ordered = np.sort(keys)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=-1))]


def require_routes(network: Network, source: Integers, destination: Integers) -> None:
    """Raise ValueError naming the first pair of hosts that has no route."""
    missing = np.flatnonzero(network.hops[source, destination] < 0)
    if len(missing):
        raise ValueError(f"no route from host {source[missing[0]]} to host {destination[missing[0]]}")


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
    """Blocks that must leave each side of the borders, and that must enter it, each of shape (sides,)."""
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
    """Whether a rank of each side comes before a rank of another one."""
    first = np.full(sides, len(side))
    np.minimum.at(first, side, np.arange(len(side)))
    last_elsewhere = np.full(sides, len(side) - 1)
    others = np.flatnonzero(side != side[-1])
    last_elsewhere[side[-1]] = others[-1] if len(others) else -1
    return first < last_elsewhere


def between(share: int | Integers, side: Integers, sides: int) -> Floats:
    """Blocks from side to side in an alltoall, shape (sides, sides)."""
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
    """The largest of the necessary blocks over the rate of the border that they cross."""
    with np.errstate(divide="ignore"):  # a side that no route enters: infinite
        time = np.divide(needed, rate, out=np.zeros_like(needed), where=needed > 0)
    shared = 2 * (len(rate) - 1) * needed.max() / rate.sum() if collective == "allreduce" and len(rate) > 1 else 0.0
    return float(max(time.max(), shared))


def _border_rates(network: Network, inside: Integers, depth: int) -> tuple[Floats, Floats]:
    """Rate of the links by which routes leave each side of the borders, and by which they enter it.

    :param inside: the side of each host, shape (n,).
    :param depth: which link of a route, from its ends, crosses the border: 0 a host's, 1 a leaf switch's.
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
    """Sending host, receiving host and link of each link of each route."""
    source, destination, place = np.nonzero(network.links >= 0)
    return source, destination, network.links[source, destination, place]


def _pair_rates(network: Network) -> Floats:
    """Rate of the slower host link of each route, shape (n, n); infinite where there is none."""
    length = (network.links >= 0).sum(axis=2)
    ends = np.zeros((2, *length.shape), dtype=np.int64)
    if network.links.shape[2]:
        ends[0] = network.links[:, :, 0]
        ends[1] = np.take_along_axis(network.links, np.maximum(length - 1, 0)[:, :, None], axis=2)[:, :, 0]
    return np.where(length > 0, network.capacity[ends].min(axis=0), np.inf)
