"""Alltoall by edge colouring, in as few steps as the links allow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..analysis.bounds import require_routes
from ..network import Network
from .hostschedule import HostSchedule, inside_first
from .leafroutes import room
from .resources import coloured, divided, loads, occupied

__all__ = ["colouring", "fewest_steps", "schedule_transfers"]

Integers = NDArray[np.int64]


def colouring(network: Network, *, blocks: int = 1, counts: Integers | None = None, seed: int = 1) -> HostSchedule:
    """Alltoall between hosts in as few steps as the busiest link or host allows, none of the links shared.

    Faraj and Yuan, "Message scheduling for all-to-all personalized communication on Ethernet switched clusters", IPDPS
    2005, reach the load of the busiest link on trees, where two hosts have one route and one link joins two switches.
    Fat trees with several up-links, uneven leaves and routes from tables have no such construction: there the
    transfers are coloured like edges (``edgecolouring.colour``), which reaches the bound or comes close to it.
    A host sends to one host and receives from one, maybe another, in a step. Step 0 is the exchange inside the hosts.

    :param network: the job's network.
    :param blocks: blocks of one message.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv.
    :param seed: of the choices among equals.
    :raises ValueError: if two hosts have no route.
    Cost: each rank sends p - 1 messages; some 3 microseconds a pair of hosts to make, more where the bound is hard to
    reach. It wins over TACS1 by the steps in which TACS1 leaves links idle, and where routes there and back differ.
    """
    source, destination = np.nonzero(~np.eye(network.num_hosts, dtype=bool))
    step = schedule_transfers(network, source, destination, seed=seed)
    rows = inside_first(np.column_stack((step, source, destination)), network.num_hosts)
    return HostSchedule.of_rows("colouring", network.rank_host, rows, blocks=blocks, counts=counts)


def fewest_steps(network: Network, source: Integers, destination: Integers) -> int:
    """The load of the busiest link or host: no schedule of these transfers between hosts has fewer steps.

    :param network: the job's network.
    :param source: sending host of each transfer, shape (transfers,); likewise ``destination``.
    Cost: O(transfers x longest route).
    """
    return int(loads(_resources(network, source, destination)).max(initial=0))


def schedule_transfers(network: Network, source: Integers, destination: Integers, *, seed: int = 1) -> Integers:
    """Step of each transfer between hosts, such that no host or link is shared in a step.

    In a step a host sends once and receives once, and no link carries more than its room (see ``leafroutes.room``).

    :param network: the job's network.
    :param source: sending host of each transfer, shape (transfers,); likewise ``destination``.
    :param seed: of the choices among equals.
    :raises ValueError: if two hosts have no route.
    """
    require_routes(network, source, destination)
    uses = _resources(network, source, destination)
    load = loads(uses)
    fewest = int(load.max(initial=0))
    shift = (destination - source) % network.num_hosts
    # Taken by shifts, first fit makes the shifts of a full permutation, which is best where hosts are the bound;
    # where links are, the transfers over the busiest ones must not come late.
    urgent = np.where(uses >= 0, load[uses], 0).max(axis=1, initial=0)
    hosts_bind = fewest == load[: 2 * network.num_hosts].max(initial=0)
    order = np.lexsort((source, shift) if hosts_bind else (source, shift, -urgent))
    return coloured(uses, order, fewest, seed=seed)


def _resources(network: Network, source: Integers, destination: Integers) -> Integers:
    """What each transfer needs for itself in a step: a link with room for several transfers is as many resources."""
    places = np.concatenate((np.ones(2 * network.num_hosts, dtype=np.int64), room(network)))
    return divided(occupied(network, source, destination), places)
