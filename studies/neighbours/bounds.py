"""A lower bound on the time of a neighbourhood alltoall by any schedule, in the simulated model of hosts and links."""

from __future__ import annotations

from functools import cache

import numpy as np

from topompi.netsim.flows import Hosts
from topompi.schedules.neighbourhood import Neighbourhood
from topompi.topology import TopologyInterface

__all__ = ["bound_of", "least_time"]


def bound_of(graph: Neighbourhood, interface: TopologyInterface, hosts: Hosts) -> float:
    """Seconds that every schedule takes at least, whatever messages it joins or passes on.

    It is the largest of: the time in which the link of a host, or all links of a leaf switch to other switches, pass
    the bytes that must cross them; and the time in which the data of all sources of a rank can reach it, or those for
    all of its destinations can leave it.

    :param graph: the edges with their bytes.
    :param interface: the placement of the ranks on trees of switches.
    :param hosts: costs of messages in hosts.
    """
    assert interface.routes is not None
    assert interface.host_routes is not None
    edges, fabric = graph.edges, interface.routes.fabric
    host = interface.rank_host.astype(np.int64)
    leaf = interface.host_routes.leaf[host].astype(np.int64)
    between = fabric.switch_links
    up = np.bincount(fabric.link_source[between] - fabric.num_adapters, weights=fabric.link_rate[between])
    rates = ((host, np.full(interface.num_hosts, fabric.link_rate.max())), (leaf, up))
    found = []
    for place, rate in rates:
        leaves = place[edges.source] != place[edges.destination]
        for end in (edges.source, edges.destination):
            nbytes = np.bincount(place[end[leaves]], weights=edges.size[leaves], minlength=len(rate))[: len(rate)]
            found.append(float((nbytes[nbytes > 0] / rate[nbytes > 0]).max(initial=0.0)))
    away = edges.chosen(edges.source != edges.destination)
    pairs = np.unique(np.stack((away.source, away.destination)), axis=1)
    most = max(int(np.bincount(end).max(initial=0)) for end in pairs)
    return max(*found, least_time(most, hosts.send_overhead, hosts.receive_overhead))


def least_time(others: int, send: float, receive: float) -> float:
    """Seconds in which the data of a number of other ranks can reach one rank, if messages travel in no time.

    With its last message a rank learns what the sender knew before it sent, in addition to what it knew itself before
    it received (Karp, Sahay, Santos and Schauser 1993, Optimal broadcast and summation in the LogP model).

    :param others: number of other ranks.
    :param send: seconds for which a message keeps its sender's processor busy, above 0.
    :param receive: seconds for which it keeps its receiver's processor busy, above 0.
    """

    @cache
    def known(sends: int, receives: int) -> int:
        """The most ranks known to one that has as many seconds as these sends and receives take."""
        left = time - sends * send - receives * receive
        if left < 0.999 * (send + receive):
            return 1
        return known(sends, receives + 1) + known(sends + 1, receives + 1)

    times = sorted(one * send + other * receive for one in range(64) for other in range(64))
    for time in times:
        known.cache_clear()
        if known(0, 0) > others:
            return time
    raise ValueError(f"expecting fewer ranks, got {others}")
