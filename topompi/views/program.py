"""From a job's network and a schedule to what simulated networks take."""

from __future__ import annotations

import numpy as np

from ..netsim import RECEIVE, SEND, Program, Tables, Wiring
from ..schedules import Network, Schedule
from ..schedules.analysis.loads import messages_of

__all__ = ["program_of", "wiring_of"]


def wiring_of(network: Network) -> Tables | Wiring:
    """The links and routes of a job's network; its tables, if it has them, and no routes of all pairs.

    :param network: of the job.
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
