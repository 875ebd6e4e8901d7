"""The arrays that schedules take, made from a job's topology."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..schedules.network import Network

if TYPE_CHECKING:
    from ..topology import TopologyInterface

__all__ = ["network_of"]

UNKNOWN_RATE = 1.0  # links of unknown rate count as equally fast


def network_of(interface: TopologyInterface) -> Network:
    """The network of a job as arrays: hops, routes, capacities, clusters.

    Where nothing above the hosts is known, each host has a link out and a link in, all of one rate, on one switch.
    Cost: n * n * (longest route) numbers.
    """
    if interface.routes is None or interface.host_routes is None:
        return _one_switch(interface)
    fabric = interface.routes.fabric
    known = not np.isnan(fabric.link_rate).any()
    # The leaf switches are a level of the tree only where two hosts share one.
    above = interface.tree.clusters[1:-1][np.array(interface.tree.cuts[1:]) > 1]
    leaf = interface.host_routes.leaf.astype(np.int64)
    return Network(
        rank_host=interface.rank_host.astype(np.int64),
        hops=interface.hop_matrix,
        links=interface.get_network_path_matrix(),
        capacity=fabric.link_rate if known else np.full(fabric.num_links, UNKNOWN_RATE),
        clusters=np.concatenate((above, leaf[None, :])).astype(np.int64),
        latency=fabric.link_latency,
    )


def _one_switch(interface: TopologyInterface) -> Network:
    hosts = interface.num_hosts
    out, into = np.meshgrid(np.arange(hosts), hosts + np.arange(hosts), indexing="ij")
    links = np.stack((out, into), axis=2).astype(np.int32)
    links[np.arange(hosts), np.arange(hosts)] = -1
    return Network(
        rank_host=interface.rank_host.astype(np.int64),
        hops=interface.hop_matrix,
        links=links,
        capacity=np.full(2 * hosts, UNKNOWN_RATE),
        clusters=np.zeros((1, hosts), dtype=np.int64),
        latency=np.full(2 * hosts, np.nan),
    )
