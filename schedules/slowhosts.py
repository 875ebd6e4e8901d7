"""Hosts whose own links are so slow that they should not pass on data of others, and the rates of hosts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .network import Network

__all__ = ["host_rates", "standing_aside", "without_slow_hosts"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def host_rates(network: Network) -> Floats:
    """The rate in bytes/s of the slower of each host's own links, out and in, shape (n,); infinite without a route.

    Cost: n routes.
    """
    out, into = _own_links(network)
    capacity = np.append(network.capacity, np.inf)
    rates: Floats = np.minimum(capacity[out], capacity[into])
    return rates


def _own_links(network: Network) -> tuple[Integers, Integers]:
    """The link out of each host towards the next host, and the link into it from the previous one, two of shape (n,).

    A host without a route has the link -1.
    """
    here = np.arange(network.num_hosts)
    paths = network.routes(here, np.roll(here, -1)).astype(np.int64)
    if not paths.size:
        return here * 0 - 1, here * 0 - 1
    last = np.maximum((paths >= 0).sum(axis=1), 1) - 1
    return paths[:, 0], np.roll(paths[here, last], 1)


def without_slow_hosts(network: Network) -> Network:
    """The network in which hosts that stand aside have links as fast as the slowest other host's.

    In a ring of all hosts each host's own links pass one message, in any order. This network shows how orders differ.
    """
    aside = standing_aside(network)
    if not aside.any():
        return network
    capacity, own = network.capacity.copy(), np.concatenate([one[aside] for one in _own_links(network)])
    own = own[own >= 0]
    capacity[own] = np.maximum(capacity[own], host_rates(network)[~aside].min())
    return replace(network, capacity=capacity)


def standing_aside(network: Network) -> NDArray[np.bool_]:
    """The hosts that stand aside from an exchange of long vectors, because it is then faster, shape (n,).

    In an exchange of p ranks each host sends and receives 2 (1 - 1/p) vectors. A rank that stands aside sends and
    receives one vector, and each of the n ranks that take part in the exchange 1/n more for each rank that does not.
    The hosts that stand aside are the slowest ones, as many as make the time of the busiest host's link least; none if
    that gains nothing.

    Cost: n routes, and O(n) for each rate that a host has.
    """
    rates, ranks = host_rates(network), np.bincount(network.rank_host, minlength=network.num_hosts)
    best, least = np.zeros(len(rates), dtype=bool), _seconds(rates, ranks, np.zeros(len(rates), dtype=bool))
    for rate in np.unique(rates)[:-1]:
        aside = rates <= rate
        seconds = _seconds(rates, ranks, aside)
        if seconds < least * (1 - 1e-9):
            best, least = aside, seconds
    return best


def _seconds(rates: Floats, ranks: NDArray[np.integer], aside: NDArray[np.bool_]) -> float:
    """The time of the busiest host's link in seconds per byte of the vector, if some hosts stand aside."""
    within, beside = ranks[~aside].sum(), ranks[aside].sum()
    vectors = np.where(aside, ranks, 2 * (1 - 1 / within) + ranks * beside / within)
    return float(np.divide(vectors, rates, out=np.full(len(rates), np.inf), where=rates > 0).max())
