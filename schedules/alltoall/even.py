"""Alltoall whose every step loads the links in the proportions of the whole, so that fair sharing keeps them busy."""

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
SHARED = 2  # transfers of a step on the busiest link
WINDOW, IN_FLIGHT = 8, 16  # steps of a rank in flight, and of the fullest host where that makes fewer
CLOSE = 1.1  # permutations of all hosts are preferred to as many times the steps, being what all find equally long
PATIENCE = 1_000  # fewer than where each step counts: here they overlap


def even(
    network: Network,
    *,
    window: int | None = None,
    rotated: bool = True,
    blocks: int = 1,
    counts: Integers | None = None,
    seed: int = 1,
) -> HostSchedule:
    """Alltoall in steps that are small copies of the whole exchange, a few of them in flight.

    Ours. With L transfers on the busiest link there are L / 2 steps, and in each a link carries its load over L / 2,
    rounded up or down: the busiest two, others one or two, a host sends and receives once or twice. Links share
    fairly, so a step takes as long as its busiest link, which is busy in all of them: L transfers' time in all. This is
    the argument by which everything at once takes no longer than the busiest link does (``direct.alltoall_at_once``),
    applied to a piece at a time, with few messages in flight.

    ``colouring`` and TACS need ranks that are all in the same step, and nothing makes them so: a host with nothing
    to do in a step goes on to its next one, hosts drift apart, and steps are no longer free of conflicts. Here hosts
    have something to do in nearly every step, which holds them together; and a link that two transfers share
    does not idle while one of them waits for its partner. The further steps in flight hide start-ups and the drift that
    remains.
    Steps that could not be filled come first, where those behind them fill the links. Where permutations of all hosts
    fit, and are few steps more, these are taken: on a whole fat tree even steps are those of the shift, backwards.

    Each rank of a host begins with another step, so that ranks of a host do not meet on one target: a step of the ranks
    is a mixture of steps, in which links have their proportions still. On packets with 16 ranks a host this halves
    what the bound is missed by, and more (docs/models.md).

    Messages: p - 1 from each rank. It wins over shifts where routes are uneven: part of a machine, odd leaves, routes
    from tables. Cost: some 5 microseconds a pair of hosts to make.

    :param network: the job's network.
    :param window: steps that a rank has in flight at most, 0 for no bound; None for 8, or as many as make 16 of the
        fullest host, at least one.
    :param rotated: whether each rank of a host begins with another step.
    :param blocks: blocks of one message.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv.
    :param seed: of the choices among equals.
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
    """Step of each transfer between hosts, such that each step is a small copy of the whole exchange.

    A step puts on each link, out of each host and into each host at most its whole load divided by the first number of
    steps, rounded up.

    :param network: the job's network.
    :param source: sending host of each transfer, shape (transfers,); likewise ``destination``.
    :param ranks: sending and receiving rank of each transfer, where ranks are to send in proportion as well.
    :param shared: transfers of a step on the busiest link.
    :param seed: of the choices among equals.
    :raises ValueError: if two hosts have no route.
    """
    require_routes(network, source, destination)
    least = -(-fewest_steps(network, source, destination) // shared)
    if not least:
        return np.zeros(0, dtype=np.int64)
    # By shifts first fit fills each step with permutations; a resource's parts take its transfers in that order.
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
