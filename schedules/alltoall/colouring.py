"""Alltoall by edge colouring, in the fewest steps that the links allow or a few more steps."""

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
    """An alltoall between hosts in as few steps as the busiest link or host allows, without sharing a link in a step.

    Faraj and Yuan, "Message scheduling for all-to-all personalized communication on Ethernet switched clusters", IPDPS
    2005, reach the load of the busiest link on trees, in which two hosts have one route and two switches have one link.
    Their construction does not extend to fat trees with several up-links, uneven leaves or routes from tables. There
    the transfers are coloured like edges (``edgecolouring.colour``), which reaches the bound or comes close to it.
    In a step a host sends to one host and receives from one, which may be another. Step 0 is the exchange inside hosts.

    :param network: network of the job's p ranks.
    :param blocks: number of blocks that each rank sends to each rank.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv.
    :param seed: seed of the random choices among equals.
    :raises ValueError: if two hosts have no route.
    Cost: each rank sends p - 1 messages. Generation takes about 3 microseconds per pair of hosts, more if the bound is
    hard to reach. It takes fewer steps than TACS1 (`tacs.tacs1`), which leaves links idle in some steps, especially if
    the routes of the two directions differ.
    """
    source, destination = np.nonzero(~np.eye(network.num_hosts, dtype=bool))
    step = schedule_transfers(network, source, destination, seed=seed)
    rows = inside_first(np.column_stack((step, source, destination)), network.num_hosts)
    return HostSchedule.of_rows("colouring", network.rank_host, rows, blocks=blocks, counts=counts)


def fewest_steps(network: Network, source: Integers, destination: Integers) -> int:
    """The number of transfers on the busiest link or host, below which no schedule's number of steps can be.

    :param network: the job's network.
    :param source: sending host of each transfer, shape (transfers,).
    :param destination: receiving host of each transfer, shape (transfers,).
    Cost: O(transfers x longest route).
    """
    return int(loads(_resources(network, source, destination)).max(initial=0))


def schedule_transfers(network: Network, source: Integers, destination: Integers, *, seed: int = 1) -> Integers:
    """Assign a step to each transfer between hosts so that transfers of one step share no host or link.

    In a step a host sends once and receives once, and no link carries more transfers than fit at full rate (see
    ``leafroutes.room``).

    :param network: the job's network.
    :param source: sending host of each transfer, shape (transfers,).
    :param destination: receiving host of each transfer, shape (transfers,).
    :param seed: seed of the random choices among equals.
    :raises ValueError: if two hosts have no route.
    """
    require_routes(network, source, destination)
    uses = _resources(network, source, destination)
    load = loads(uses)
    fewest = int(load.max(initial=0))
    shift = (destination - source) % network.num_hosts
    # In the order of (destination - source) modulo the number of hosts, transfers that take the first free step form
    # full permutations, the best result if hosts limit the number of steps. If links limit it, transfers over the
    # busiest links must be placed early.
    urgent = np.where(uses >= 0, load[uses], 0).max(axis=1, initial=0)
    hosts_bind = fewest == load[: 2 * network.num_hosts].max(initial=0)
    order = np.lexsort((source, shift) if hosts_bind else (source, shift, -urgent))
    return coloured(uses, order, fewest, seed=seed)


def _resources(network: Network, source: Integers, destination: Integers) -> Integers:
    """The resources that each transfer occupies in its step; a link with room for k transfers counts as k resources."""
    places = np.concatenate((np.ones(2 * network.num_hosts, dtype=np.int64), room(network)))
    return divided(occupied(network, source, destination), places)
