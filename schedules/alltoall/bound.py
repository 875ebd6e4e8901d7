"""Alltoall in as few steps as the links allow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..analysis.bounds import require_routes
from ..network import Network
from .colouring import colour
from .hostschedule import HostSchedule
from .leafroutes import between_switches, room

__all__ = ["bound", "fewest_steps", "schedule_transfers"]

Integers = NDArray[np.int64]


def bound(network: Network, *, blocks: int = 1, counts: Integers | None = None, seed: int = 1) -> HostSchedule:
    """Alltoall between hosts in as few steps as the busiest link or host allows, none of the links shared.

    Faraj and Yuan, "Message scheduling for all-to-all personalized communication on Ethernet switched clusters", IPDPS
    2005, reach the load of the busiest link on trees, where two hosts have one route and one link joins two switches.
    Fat trees with several up-links, uneven leaves and routes from tables have no such construction: there the
    transfers are coloured like edges (``colouring.colour``), which reaches the bound or comes close to it.
    A host sends to one host and receives from one, maybe another, in a step. Step 0 is the exchange inside the hosts.

    :param blocks: blocks of one message.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv.
    :param seed: of the choices among equals.
    :raises ValueError: if two hosts have no route.
    Cost: each rank sends p - 1 messages; some 3 microseconds a pair of hosts to make, more where the bound is hard to
    reach. It wins over TACS1 by the idle steps of the latter, and where routes there and back differ.
    """
    hosts = np.arange(network.num_hosts)
    source, destination = np.nonzero(hosts[:, None] != hosts)
    step = schedule_transfers(network, source, destination, seed=seed)
    rows = np.concatenate(
        (
            np.column_stack((np.zeros_like(hosts), hosts, hosts)),
            np.column_stack((step + 1, source, destination)),
        )
    )
    return HostSchedule.of_rows("bound", network.rank_host, rows, blocks=blocks, counts=counts)


def fewest_steps(network: Network, source: Integers, destination: Integers) -> int:
    """No schedule of these transfers between hosts has fewer steps: the load of the busiest link or host.

    :param source: sending host of each transfer, shape (transfers,); likewise ``destination``.
    Cost: O(transfers x longest route).
    """
    return int(_loads(_resources(network, source, destination)).max(initial=0))


def schedule_transfers(network: Network, source: Integers, destination: Integers, *, seed: int = 1) -> Integers:
    """Step of each transfer between hosts, such that in a step a host sends once, receives once, and no link carries
    more than its room (see ``leafroutes.room``).

    :param source: sending host of each transfer, shape (transfers,); likewise ``destination``.
    :param seed: of the choices among equals.
    :raises ValueError: if two hosts have no route.
    """
    require_routes(network, source, destination)
    uses = _resources(network, source, destination)
    load = _loads(uses)
    if not len(uses):
        return np.zeros(0, dtype=np.int64)
    fewest = int(load.max())
    shift = (destination - source) % network.num_hosts
    # Taken by shifts, first fit makes the shifts of a full permutation, which is best where hosts are the bound;
    # where links are, the transfers over the busiest ones must not come late.
    urgent = np.where(uses >= 0, load[uses], 0).max(axis=1)
    hosts_bind = fewest == load[: 2 * network.num_hosts].max()
    order = np.lexsort((source, shift) if hosts_bind else (source, shift, -urgent))
    listed = [tuple(one for one in of if one >= 0) for of in uses[order].tolist()]
    step = np.empty(len(order), dtype=np.int64)
    step[order] = colour(listed, len(load), fewest, seed=seed)
    return step


def _loads(uses: Integers) -> Integers:
    return np.bincount(uses[uses >= 0])


def _resources(network: Network, source: Integers, destination: Integers) -> Integers:
    """What each transfer needs for itself in a step, shape (transfers, resources), padded with -1.

    Resource h is host h's sending, n + h its receiving; then come the links between switches, a link with room for
    several transfers as so many resources, to which its transfers are dealt in turn.
    """
    hosts = network.num_hosts
    links = between_switches(network.links[source, destination]).astype(np.int64)
    at = np.nonzero(links >= 0)
    link, spread = links[at], room(network)
    first = 2 * hosts + np.cumsum(spread) - spread
    order = np.argsort(link, kind="stable")
    turn = np.empty(len(link), dtype=np.int64)
    turn[order] = np.arange(len(link)) - np.searchsorted(link[order], link[order])
    links[at] = first[link] + turn % spread[link]
    return np.column_stack((source, hosts + destination, links))
