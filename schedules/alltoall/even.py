"""Alltoall in which every step loads the links in proportion to their total load, so that fair sharing fills them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..analysis.bounds import require_routes
from ..network import Network
from .colouring import fewest_steps
from .hostschedule import HostSchedule, inside_first
from .resources import coloured, divided, loads, occupied

__all__ = ["even", "even_steps"]

Integers = NDArray[np.int64]
SHARED = 2  # transfers per step on the busiest link, so that it does not idle while one of them waits for its partner
WINDOW, IN_FLIGHT = 8, 16  # most steps in flight of one rank, and of all ranks of the fullest host together
# Largest ratio, to the least number of steps, of the number of steps in which every host sends and receives once. Up to
# this ratio the schedule consists of these steps, because they load all hosts equally.
CLOSE = 1.1
# Displacements without progress before a step is added: fewer than by default, because a further step costs little if
# steps overlap.
PATIENCE = 1_000


def even(
    network: Network,
    *,
    window: int | None = None,
    rotated: bool = True,
    blocks: int = 1,
    counts: Integers | None = None,
    seed: int = 1,
) -> HostSchedule:
    """An alltoall in which each step loads all links in the proportions of the whole exchange; a few steps overlap.

    Our own algorithm. With L transfers on the busiest link there are L / 2 steps. In each, every link carries its load
    divided by L / 2, rounded up or down: the busiest links two transfers, others one or two, and a host sends and
    receives once or twice. Transfers share a link fairly, so a step takes the time of its busiest link. Because this
    link is busy in every step, all steps together take the time of L transfers. In the same way all messages at once
    take no longer than the busiest link needs (``direct.alltoall_at_once``); here only the messages of a few steps are
    in flight at a time.

    ``colouring`` and TACS require that all ranks are in the same step, and nothing enforces it: a host without a
    transfer in a step proceeds to its next one, hosts drift apart, and steps are no longer free of conflicts. Here
    hosts have a transfer in nearly every step, which keeps them together, and a link with two transfers does not idle
    while one of them waits for its partner. Further steps in flight hide start-ups and the remaining drift. Steps in
    which a link has fewer transfers than its part come first, because steps in flight after them then fill the link. If
    steps in which every host sends and receives once need few steps more, they are taken: on a complete fat tree they
    are the steps of `direct.alltoall_shift` in reverse.

    Each rank of a host begins with a different step, so that ranks of a host do not send to one target at once; a step
    of the ranks is then a mixture of host steps, and links keep their proportions. In packet simulations with 16 ranks
    per host this reduces the excess over the bound to half or less (docs/lab/checks.md).

    Messages: p - 1 per rank. It is faster than `direct.alltoall_shift` if routes load links unevenly: on part of a
    machine, with leaf switches of different sizes, or with irregular forwarding tables. Cost: about 5 microseconds per
    pair of hosts to generate.

    :param network: network of the job's p ranks.
    :param window: largest number of steps that a rank has in flight, 0 for no limit. Default: min(8, 16 // ranks on the
        fullest host), at least 1.
    :param rotated: whether each rank of a host begins with a different step.
    :param blocks: number of blocks that each rank sends to each rank.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv.
    :param seed: seed of the random choices among equals.
    :raises ValueError: if two hosts have no route.
    """
    if window is None:
        window = min(WINDOW, max(1, IN_FLIGHT // int(np.bincount(network.rank_host).max())))
    source, destination = np.nonzero(~np.eye(network.num_hosts, dtype=bool))
    step = even_steps(network, source, destination, seed=seed)
    rows = inside_first(np.column_stack((step, source, destination)), network.num_hosts)
    return HostSchedule.of_rows(
        "even", network.rank_host, rows, blocks=blocks, counts=counts, window=window, rotated=rotated
    )


def even_steps(
    network: Network,
    source: Integers,
    destination: Integers,
    *,
    ranks: tuple[Integers, Integers] | None = None,
    shared: int = SHARED,
    seed: int = 1,
) -> Integers:
    """Assign a step to each transfer between hosts so that each step loads links in the proportions of all transfers.

    A step puts on each link, sending host and receiving host at most its total load divided by the number of steps,
    rounded up.

    :param network: the job's network.
    :param source: sending host of each transfer, shape (transfers,).
    :param destination: receiving host of each transfer, shape (transfers,).
    :param ranks: sending and receiving rank of each transfer, two arrays of shape (transfers,), if each rank's load is
        to be spread over the steps, too.
    :param shared: number of transfers per step on the busiest link.
    :param seed: seed of the random choices among equals.
    :raises ValueError: if two hosts have no route.
    """
    require_routes(network, source, destination)
    least = -(-fewest_steps(network, source, destination) // shared)
    if not least:
        return np.zeros(0, dtype=np.int64)
    # In the order of (destination - source) modulo the number of hosts, transfers that take the first free step form
    # permutations of the hosts. ``divided`` deals transfers to the parts of a resource in this order, too.
    order = np.lexsort((source, (destination - source) % network.num_hosts))
    uses = occupied(network, source[order], destination[order])
    if ranks is not None:
        first = 2 * network.num_hosts + len(network.capacity) + np.array([0, network.num_ranks])
        uses = np.column_stack((uses, np.stack(ranks, axis=1)[order] + first))
    load, whole = loads(uses), network.num_hosts - 1
    tries = [(whole, 0)] if least <= whole <= CLOSE * least else []
    for steps, patience in (*tries, (least, PATIENCE)):
        placed = coloured(divided(uses, -(-load // steps)), np.arange(len(order)), steps, seed=seed, patience=patience)
        if placed.max() < steps:
            break
    step = np.empty(len(order), dtype=np.int64)
    step[order] = placed.max() - placed
    return step
