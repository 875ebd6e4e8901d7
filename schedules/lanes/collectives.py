"""Broadcasts, reductions and allreduces in lanes."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..network import Network
from ..phases import sequence
from ..schedule import INPUT, OUTPUT, REDUCE, SCRATCH, Schedule
from ..transfers import local_moves
from .stages import Across, Inside, Vector, from_one, from_owners, to_one, to_owners

__all__ = ["lanes_allreduce", "lanes_bcast", "lanes_reduce"]


def lanes_allreduce(network: Network, across: Across, *, blocks: int | None = None) -> Schedule:
    """Ranks add up parts inside their host, the hosts exchange them in all lanes, and a host's ranks share the sums.

    Träff and Hunold, arXiv:1910.13373: the decomposition of a collective into as many lanes as there are local ranks.
    We depart from it in two ways: segments follow one another at the distance of one step, so that all three stages
    work at once; and hosts may have different numbers of ranks, in any order.

    Messages: those of the exchange across hosts, and inside a host of r ranks 2 (r - 1) of each rank for each group of
    blocks that is due in one step.
    Bytes: twice (1 - 1/r) of the vector into each rank inside, and of a host's link what one rank a host would send.
    It wins for medium and long vectors with several ranks a host. For commutative operations.

    :param network: the job's network.
    :param across: what hosts run.
    :param blocks: number of segments, by default 1; if ``across`` is a pipeline, of its blocks, by default its own.
    """
    vector = Vector.of(network, across, 0, blocks)
    phases = sequence(
        vector.own_parts(OUTPUT),
        (
            (0, Inside.of(vector, to_owners, (INPUT, OUTPUT), REDUCE, before=True)),
            *vector.between(OUTPUT),
            (0, Inside.of(vector, from_owners, (OUTPUT, OUTPUT))),
        ),
    )
    return vector.schedule("allreduce", phases)


def lanes_reduce(network: Network, across: Across, *, root: int = 0, blocks: int | None = None) -> Schedule:
    """As `lanes_allreduce`, but hosts reduce in each lane to the root's host, whose ranks hand their parts to the root.

    Messages: those of the reductions across hosts, and for each group of blocks that is due in one step r - 1 of each
    rank inside its host and r - 1 to the root.

    :param network: the job's network.
    :param across: what hosts run.
    :param root: the root's rank.
    :param blocks: number of segments, by default 1; if ``across`` is a pipeline, of its blocks, by default its own.
    """
    vector = Vector.of(network, across, root, blocks)
    host, place = vector.lanes.where(root)
    phases = sequence(
        vector.own_parts(SCRATCH),
        (
            (0, Inside.of(vector, to_owners, (INPUT, SCRATCH), REDUCE, before=True)),
            *vector.between(SCRATCH),
            (0, Inside.of(vector, partial(to_one, root=place), (SCRATCH, OUTPUT), hosts=[host])),
        ),
    )
    return vector.schedule("reduce", phases, root)


def lanes_bcast(network: Network, across: Across, *, root: int = 0, blocks: int | None = None) -> Schedule:
    """The root scatters parts inside its host, the host broadcasts them in all lanes, and each host's ranks share them.

    As `lanes_allreduce`. Messages: those of the broadcasts across hosts, and for each group of blocks that is due in
    one step r - 1 from the root and r - 1 of each rank inside its host.

    :param network: the job's network.
    :param across: what hosts run.
    :param root: the root's rank.
    :param blocks: number of segments, by default 1; if ``across`` is a pipeline, of its blocks, by default its own.
    """
    vector = Vector.of(network, across, root, blocks)
    host, place = vector.lanes.where(root)
    others = np.delete(np.arange(network.num_hosts), host)
    phases = sequence(
        local_moves(0, root, (INPUT, 0), (OUTPUT, 0), vector.blocks),
        (
            (0, Inside.of(vector, partial(from_one, root=place), (OUTPUT, OUTPUT), hosts=[host], before=True)),
            *vector.between(OUTPUT),
            (0, Inside.of(vector, partial(from_owners, but=place), (OUTPUT, OUTPUT), hosts=[host])),
            (0, Inside.of(vector, from_owners, (OUTPUT, OUTPUT), hosts=others)),
        ),
    )
    return vector.schedule("bcast", phases, root)
