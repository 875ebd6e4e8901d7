"""From a job's network and a schedule to what simulated networks take."""

from __future__ import annotations

import numpy as np

from ..netsim import RECEIVE, SEND, Program, Tables, Wiring
from ..schedules import Network, Schedule
from ..schedules.analysis.loads import messages_of
from ..topology import Routes

__all__ = ["program_of", "wiring_of", "wiring_of_routes"]


def wiring_of(network: Network) -> Wiring:
    """The links and routes of a job's network; raises NetsimError where a rate or a latency is unknown."""
    return Wiring(network.capacity, network.latency, network.links)


def wiring_of_routes(routes: Routes, latency: float | None = None) -> Wiring:
    """The links of a whole fabric and its routing tables, for as many hosts as it has; each uses its first rail.

    :param routes: the fabric's.
    :param latency: seconds of a link whose latency the fabric does not have; None where it has all.
    :raises NetsimError: where a rate or a latency is unknown.
    Cost: the tables of one path, hosts times switches; no path is spelt out.
    """
    fabric = routes.fabric
    adapters = np.array([rails[0] for rails in fabric.host_adapters])
    end = np.where(
        fabric.link_target >= fabric.num_adapters,
        fabric.link_target - fabric.num_adapters,
        -1 - fabric.adapter_host[np.minimum(fabric.link_target, fabric.num_adapters - 1)],
    )
    known = fabric.link_latency if latency is None else np.nan_to_num(fabric.link_latency, nan=latency)
    tables = Tables(fabric.adapter_uplink[adapters], routes.next_link[0][:, adapters], end.astype(np.int32))
    return Wiring(fabric.link_rate, known, tables)


def program_of(schedule: Schedule, network: Network, block_bytes: int = 1) -> Program:
    """The messages of a schedule; local moves and reductions take no time.

    :param schedule: what the ranks do.
    :param network: where they sit.
    :param block_bytes: bytes of one block.
    :raises ValueError: if the network has another number of ranks.
    """
    if schedule.size != network.num_ranks:
        raise ValueError(f"expecting a network of {schedule.size} ranks, got {network.num_ranks}")
    messages = messages_of(schedule)
    return Program(
        network.rank_host,
        rank=np.concatenate((messages.source, messages.destination)),
        step=np.tile(messages.step, 2),
        kind=np.repeat([SEND, RECEIVE], len(messages)),
        peer=np.concatenate((messages.destination, messages.source)),
        amount=np.tile(messages.blocks * float(block_bytes), 2),
        window=schedule.window if schedule.independent else 1,
        name=f"{schedule.collective} {schedule.algorithm}",
    )
