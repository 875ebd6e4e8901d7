"""Static random routing of fat trees: a table of next-hop links whose links upwards are drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from topompi.machine.interference.network import shared_network
from topompi.machine.jobs import Cluster
from topompi.netsim import Tables
from topompi.topology import Fabric, load
from topompi.views.cluster import cluster_of

__all__ = ["fat_tree", "randomly_routed"]

AT_ONCE = 1 << 22  # table entries


def fat_tree(specification: str, latency: float, seed: int) -> tuple[Cluster, Tables, Tables]:
    """Make a fat tree: its cluster, and its network with the routes of d-mod-k and with drawn ones.

    :param specification: such as ``XGFT(3; 16,16,8; 1,2,2)@rate=1xFDR10``.
    :param latency: latency in seconds of each link.
    :param seed: seed of the drawn routes.
    """
    routes = load(specification).routes
    assert routes is not None  # load() computes missing routes
    cluster = cluster_of(routes)
    tables = shared_network(cluster, latency=latency)
    return cluster, tables, randomly_routed(tables, routes.fabric, seed)


def randomly_routed(tables: Tables, fabric: Fabric, seed: int) -> Tables:
    """Draw the link upwards of each switch towards each destination; ways down stay as they are.

    Every shortest path of an XGFT goes up, then down, and all ways up of the same height are as good.

    :param tables: links and shortest routes between the fabric's hosts, one adapter each.
    :param fabric: the fat tree.
    :param seed: seed of the draws.
    Cost: a table of switches x hosts.
    """
    draw, first = np.random.default_rng(seed), tables.first_switch
    height = np.concatenate((np.full(first, -1), fabric.switch_level))
    rises = height[tables.target] > height[tables.source]
    table = _whole(tables)
    for switch, row in enumerate(table[0]):
        ups = np.flatnonzero(rises & (tables.source == first + switch)).astype(np.int32)
        upwards = (row >= 0) & rises[row]
        if len(ups):
            row[upwards] = draw.choice(ups, int(upwards.sum()))
    return replace(tables, next_link=table)


def _whole(tables: Tables) -> NDArray[np.int32]:
    """The next-hop links of the first path as an array, shape (1, switches, adapters)."""
    if isinstance(tables.next_link, np.ndarray):
        return tables.next_link[:1].copy()
    _, switches, adapters = tables.next_link.shape
    table = np.empty((1, switches, adapters), dtype=np.int32)
    every = np.arange(adapters, dtype=np.int32)
    for some in np.array_split(np.arange(switches, dtype=np.int32), -(-switches * adapters // AT_ONCE)):
        rows = tables.next_link.at(0, np.repeat(some, adapters), np.tile(every, len(some)))
        table[0, some] = rows.reshape(-1, adapters)
    return table
