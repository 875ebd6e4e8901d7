"""The order of hosts in which rings and chains follow the network's routes and rates."""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from .network import DEPTH_FIRST, Network
from .ringsearch import AS_GOOD, RingLoads, search
from .slowhosts import without_slow_hosts
from .trees import depth_first, rank_clusters

__all__ = ["MOST_LINKS", "depth_first_hosts", "with_order"]

Integers = NDArray[np.int64]

# Maximum number of links of all routes between a job's hosts, which the search has in memory: 1,024 hosts on a large
# torus, 2,048 on a dragonfly. The search of a job of this size takes some seconds.
MOST_LINKS = 30_000_000

_ordered: WeakKeyDictionary[Network, Network] = WeakKeyDictionary()


def with_order(network: Network, former: Integers | None = None) -> Network:
    """The network with the order of hosts in which a ring loads its busiest link least, see ``ringsearch.search``.

    If hosts can fill several links at the same time, rings run in both directions, and the order suits both. It is
    ``DEPTH_FIRST`` if the search finds no order with a less loaded busiest link, and if all routes have
    more than ``MOST_LINKS`` links. Hosts that stand aside (``slowhosts``) count as if they were as fast as others,
    because their own links pass one message in any order. It depends on the network alone, and is searched once per
    network.

    :param network: the job's network.
    :param former: an order that was good before rates or routes changed, with which the search begins; None for
        none. The order found is then no worse than this one either.
    Cost: the n routes of the depth-first ring over n hosts, if these show that no order is better; else the routes of
    all pairs of hosts and a search. None if the network has an order.
    """
    if network.order is not None:
        return network
    if network not in _ordered:
        _ordered[network] = replace(network, order=_host_order(network, former))
    return _ordered[network]


def depth_first_hosts(network: Network) -> Integers:
    """The hosts in the order in which a depth-first order of the ranks visits them, shape (n,)."""
    hosts = network.rank_host[depth_first(rank_clusters(network), network.num_ranks)]
    return hosts[np.sort(np.unique(hosts, return_index=True)[1])]


def _host_order(network: Network, former: Integers | None) -> Integers:
    longest = 1 + int(network.hops.max(initial=0))
    if network.num_hosts < 3 or network.num_hosts**2 * longest > MOST_LINKS:
        return DEPTH_FIRST
    both, network = network.ports > 1, without_slow_hosts(network)
    first = depth_first_hosts(network)
    if _is_best(network, first):
        return DEPTH_FIRST
    loads = RingLoads(network, both=both)
    found = search(loads, first, former=former if former is None or len(former) else first)
    before, after = loads.judge(np.stack((first, found)))[0]
    return found if after * AS_GOOD < before else DEPTH_FIRST


def _is_best(network: Network, order: Integers) -> bool:
    """Whether one host's own link needs as much time for its one message as the busiest link of the ring.

    It is known only if all messages of a host leave it by the same link, as with one adapter per host.
    """
    after, own = np.roll(order, -1), _own_links(network)
    if own is None or (network.hops[order, after] < 0).any():
        return False
    busiest = (network.loads_of(order, after, np.ones(len(order))) / network.capacity).max()
    return bool(busiest <= AS_GOOD * (1.0 / network.capacity[own]).max())


def _own_links(network: Network) -> NDArray[np.integer] | None:
    """The link by which every route from each host begins, shape (n,); None if they begin by several."""
    paths = network.paths
    if not isinstance(paths, np.ndarray) and len(paths.adapters) == 1:
        uplink: NDArray[np.integer] = paths.uplink[paths.adapters[0]]
        return uplink
    first = network.links[:, :, 0]
    own: NDArray[np.int32] = first.max(axis=1)
    return None if ((first >= 0) & (first != own[:, None])).any() else own
