"""Conversion of a job's network and a schedule into the input of network simulations."""

from __future__ import annotations

import numpy as np

from ..netsim import RECEIVE, SEND, Program, Tables, Wiring
from ..schedules import Network, Schedule
from ..schedules.analysis.loads import messages_of

__all__ = ["program_of", "wiring_of"]


def wiring_of(network: Network) -> Tables | Wiring:
    """Convert a job's network into the links and routes of a simulation.

    Tables of next-hop links are kept as they are, so that the routes of all pairs need not be computed.

    :param network: the network of the job.
    :raises NetsimError: if a rate or a latency is unknown.
    """
    paths = network.paths
    if isinstance(paths, np.ndarray):
        return Wiring(network.capacity, network.latency, paths)
    return Tables(
        source=paths.source,
        target=paths.target,
        rate=network.capacity,
        latency=network.latency,
        next_link=paths.next_link,
        names=paths.names,
        adapters=paths.adapters,
    )


def program_of(schedule: Schedule, network: Network, block_bytes: float = 1) -> Program:
    """Convert the messages of a schedule into a program to simulate; local moves and reductions take no time.

    :param schedule: the schedule to run.
    :param network: the network of the ranks.
    :param block_bytes: size of one block in bytes.
    :raises ValueError: if the network has another number of ranks than the schedule.
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
