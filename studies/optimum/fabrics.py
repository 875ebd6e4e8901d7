"""The fabrics of the study, with 64 hosts each, or 16 if it is quick: trees, tori, dragonflies, and real tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from topompi.errors import SourceError
from topompi.schedules import Network
from topompi.topology import Routes, TopologyInterface, load_routes
from topompi.views.network import network_of

__all__ = ["FABRICS", "QUICK", "job", "network", "slowed"]

DATA = Path(os.environ.get("TOPOMPI_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "fabrics"
LATENCY = 1.5e-7  # seconds of each link
HOSTS = 64


@cache
def _routes(spec: str) -> Routes:
    engine = spec.removeprefix("janus ")
    if engine == spec:
        return load_routes(spec)
    tables = DATA / "derived-ibsim-opensm" / f"janus.{engine}.opensm-lfts.dump.xz"
    return load_routes(DATA / "janus-2014.ibnetdiscover.xz", lfts=tables)


def job(spec: str, order: int | None = None, hosts: int = HOSTS) -> Network:
    """One rank on each of the first hosts of a fabric, or on random ones in random order.

    :param spec: specification of a synthetic fabric, or ``janus`` and a routing engine of its tables.
    :param order: seed of the random order; None for the fabric's own order.
    :param hosts: largest number of hosts.
    """
    names = _routes(spec).fabric.hosts
    chosen = range(min(hosts, len(names))) if order is None else np.random.default_rng(order).permutation(len(names))
    return network_of(TopologyInterface.place([names[int(one)] for one in chosen[:hosts]], _routes(spec)))


def _uneven() -> Network:
    """16, 12, 7 and 5 hosts on four leaf switches of 16, each with 8 links up."""
    names = _routes("XGFT(2; 16,4; 1,8)").fabric.hosts
    chosen = [16 * leaf + host for leaf, many in enumerate((16, 12, 7, 5)) for host in range(many)]
    return network_of(TopologyInterface.place([names[one] for one in chosen], _routes("XGFT(2; 16,4; 1,8)")))


def _half_rate() -> Network:
    """A tree of full bisection, one host with links at half rate."""
    return slowed(job("XGFT(2; 16,4; 1,16)"), {5: 0.5})


def slowed(network: Network, rates: Mapping[int, float]) -> Network:
    """The network in which the links of some hosts, out and in, are slower.

    :param network: network of at least two hosts, each with one link out and one in.
    :param rates: rate of each slow host, as a part of the rate of its links.
    """
    capacity, links = network.capacity.copy(), network.links
    for host, rate in rates.items():
        other = (host + 1) % network.num_hosts
        capacity[[links[host, other, 0], links[other, host][links[other, host] >= 0][-1]]] *= rate
    return replace(network, capacity=capacity)


FABRICS: Mapping[str, Callable[[], Network]] = {
    "torus 4x4x4": partial(job, "torus:4x4x4"),
    "torus 4x4x4, random order": partial(job, "torus:4x4x4", 1),
    "torus 8x8": partial(job, "torus:8x8"),
    "torus 8x8, random order": partial(job, "torus:8x8", 1),
    "dragonfly 4,2,2": partial(job, "dragonfly:4,2,2"),
    "dragonfly 8,4,4": partial(job, "dragonfly:8,4,4"),
    "Janus, minhop": partial(job, "janus minhop"),
    "Janus, dfsssp": partial(job, "janus dfsssp"),
    "Janus, nue": partial(job, "janus nue"),
    "Janus, nue, 256 hosts": partial(job, "janus nue", hosts=256),
    "XGFT 2:1": partial(job, "XGFT(2; 8,8; 1,4)"),
    "XGFT 4:1": partial(job, "XGFT(2; 8,8; 1,2)"),
    "uneven leaves": _uneven,
    "one host at half rate": _half_rate,
}
QUICK: Mapping[str, Callable[[], Network]] = {
    "torus 4x4": partial(job, "torus:4x4"),
    "XGFT 2:1, 16 hosts": partial(job, "XGFT(2; 4,4; 1,2)"),
}


def network(make: Callable[[], Network]) -> Network | None:
    """The network of a fabric with latencies, or None if its data are not here."""
    try:
        found = make()
    except SourceError:
        return None
    return replace(found, latency=np.full_like(found.capacity, LATENCY))
