"""Derivation of the topology of some of a job's ranks from that of the whole job, without reading its source again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..topology import TopologyInterface

__all__ = ["restricted"]


def restricted(interface: TopologyInterface, ranks: NDArray[np.integer]) -> TopologyInterface:
    """Restrict a job's topology to some of its ranks: their hosts, routes, and levels inside hosts.

    :param interface: the whole job's topology.
    :param ranks: ranks of ``interface`` to take, in their new order, shape (p,).
    Cost: the routes between the remaining hosts; none if all ranks are taken in order.
    """
    ranks = np.asarray(ranks)
    if np.array_equal(ranks, np.arange(interface.num_ranks)):
        return interface
    numbers, first, inverse = np.unique(interface.rank_host[ranks], return_index=True, return_inverse=True)
    order = np.argsort(first)  # an interface lists hosts in the order of their first rank
    hosts = numbers[order]
    routes = interface.routes
    if routes is not None and not np.array_equal(hosts, np.arange(interface.num_hosts)):
        routes = routes.restrict(hosts)
    return replace(
        interface,
        hosts=tuple(interface.hosts[host] for host in hosts),
        rank_host=np.argsort(order).astype(np.int32)[inverse],
        routes=routes,
        domains=tuple((name, domain[ranks]) for name, domain in interface.domains),
    )
