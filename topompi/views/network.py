"""Conversion of a job's topology into the network, as arrays, that schedules take."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..network import Tables, known_or
from ..schedules.network import Network

if TYPE_CHECKING:
    from ..topology import TopologyInterface

__all__ = ["UNKNOWN_RATE", "known_rates", "network_of"]

UNKNOWN_RATE = 1.0  # bytes/s; the rate of all links if no rate is known


def known_rates(rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Replace unknown rates by the most frequent known rate, or by ``UNKNOWN_RATE`` if no rate is known.

    Of two equally frequent rates, the slower is taken. The rate 0 of failed links does not count.

    :param rate: bandwidth of each link in bytes/s, shape (links,), NaN if unknown.
    """
    values, counts = np.unique(rate[rate > 0], return_counts=True)
    return known_or(rate, float(values[counts.argmax()]) if len(values) else UNKNOWN_RATE)


def network_of(interface: TopologyInterface, *, striped: bool = False) -> Network:
    """Make the network of a job as arrays: hops, routes, bandwidths, clusters.

    If messages are striped, each is divided equally over the rails of its hosts, as some MPI libraries do with long
    messages. The route of two hosts then has the links of all rails, and so that the times are right, each link has its
    rate times the number of rails, and its latency divided by it.

    Links of unknown rate get the most frequent known rate. Routes over links of rate 0, which have failed, are left
    out. If only the hosts are known, they are on one switch, each with one link out and one link in, all of equal rate.

    :param interface: topology of the job.
    :param striped: whether messages are striped over the rails on which all hosts have routes to all others.
    Cost: the hops of all pairs of hosts; the links of their routes are computed when they are first used.
    """
    if interface.routes is None or interface.host_routes is None:
        return _one_switch(interface)
    fabric = interface.routes.fabric
    # Clusters of the levels above the leaf switches. The leaf switches are appended below as the last level, because
    # the tree lacks their level if no two hosts share a leaf switch.
    above = interface.tree.clusters[1:-1][np.array(interface.tree.cuts[1:]) > 1]
    leaf = interface.host_routes.leaf.astype(np.int64)
    torus = fabric.torus
    rails = _whole_rails(interface.host_routes.tables) if striped else []
    adapters = max(len(rails), 1)
    return Network(
        rank_host=interface.rank_host.astype(np.int64),
        hops=interface.hop_matrix,
        paths=_side_by_side(rails) if adapters > 1 else interface.host_routes.tables,
        capacity=known_rates(fabric.link_rate) * adapters,
        clusters=np.concatenate((above, leaf[None, :])).astype(np.int64),
        latency=fabric.link_latency / adapters,
        adapters=adapters,
        grid=None if torus is None or (leaf < 0).any() else torus.coordinates[leaf],
    )


def _whole_rails(tables: Tables) -> list[NDArray[np.int32]]:
    """The routes of all pairs of hosts on each rail on which all of these have routes, each of shape (n, n, longest).

    On a rail both hosts use their adapter of that number.
    """
    apart, found = ~np.eye(tables.num_hosts, dtype=bool), []
    for adapters in tables.adapters:
        if (adapters >= 0).all():
            paths = replace(tables, adapters=adapters[None]).every_path
            if (paths[apart] >= 0).any(axis=1).all():
                found.append(paths)
    return found


def _side_by_side(rails: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """The routes on all rails, one behind the other, each padded with -1 to the longest."""
    longest = max(paths.shape[2] for paths in rails)
    padded = [np.pad(paths, ((0, 0), (0, 0), (0, longest - paths.shape[2])), constant_values=-1) for paths in rails]
    return np.concatenate(padded, axis=2)


def _one_switch(interface: TopologyInterface) -> Network:
    hosts = interface.num_hosts
    paths = Tables.one_switch(hosts)
    return Network(
        rank_host=interface.rank_host.astype(np.int64),
        hops=interface.hop_matrix,
        paths=paths,
        capacity=known_rates(paths.rate),
        clusters=np.zeros((1, hosts), dtype=np.int64),
        latency=paths.latency,
    )
