"""Broadcasts, reductions and allreduces in lanes."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..network import Network
from ..phases import sequence
from ..schedule import INPUT, OUTPUT, REDUCE, SCRATCH, Schedule
from ..transfers import local_moves
from .stages import AcrossHosts, DividedVector, InsideHosts, from_one, from_owners, to_one, to_owners

__all__ = ["lanes_allreduce", "lanes_bcast", "lanes_reduce"]


def lanes_allreduce(network: Network, across: AcrossHosts, *, blocks: int | None = None) -> Schedule:
    """An allreduce in three stages: sums inside each host, allreduces in lanes across hosts, an exchange inside hosts.

    In the first stage each rank of a host sums up one part of the vector (a lane) for its host. In the second it adds
    up this part with the ranks of other hosts that have the same lane. In the third the ranks of a host exchange sums.
    Träff and Hunold, arXiv:1910.13373, divide collectives in this way. We depart from them in two points: each segment
    begins one step after the segment before it, so that all three stages work at once; and hosts may have different
    numbers of ranks, in any order.

    Messages: those across hosts, and inside a host of r ranks 2 (r - 1) from each rank for each group of blocks that
    the schedule across hosts handles in one step. Bytes: inside a host, 2 (1 - 1/r) of the vector into each rank; over
    a host's link, as many as with one rank per host. It is fast for medium and long vectors with several ranks per
    host. The operation must commute.

    :param network: the job's network.
    :param across: algorithm that the hosts run in each lane.
    :param blocks: if ``across.pipeline``, number of blocks of the algorithm across hosts, by default as many as the
        algorithm chooses; else number of segments into which the vector is divided, by default 1.
    """
    vector = DividedVector.of(network, across, 0, blocks)
    phases = sequence(
        vector.own_parts(OUTPUT),
        (
            (0, InsideHosts.of(vector, to_owners, (INPUT, OUTPUT), REDUCE, before=True)),
            *vector.between(OUTPUT),
            (0, InsideHosts.of(vector, from_owners, (OUTPUT, OUTPUT))),
        ),
    )
    return vector.schedule("allreduce", phases)


def lanes_reduce(network: Network, across: AcrossHosts, *, root: int = 0, blocks: int | None = None) -> Schedule:
    """A reduction in three stages: sums inside each host, reductions in lanes to the root's host, and a gather there.

    The first stage is that of `lanes_allreduce`: each rank of a host sums up one part of the vector (a lane).
    Messages: those of the reductions across hosts, and for each group of blocks that they handle in one step, in hosts
    of r ranks, r - 1 from each rank inside its host and r - 1 to the root. The operation must commute.

    :param network: the job's network.
    :param across: algorithm that the hosts run in each lane.
    :param root: the root's rank.
    :param blocks: if ``across.pipeline``, number of blocks of the algorithm across hosts, by default as many as the
        algorithm chooses; else number of segments into which the vector is divided, by default 1.
    """
    vector = DividedVector.of(network, across, root, blocks)
    host, place = vector.lanes.where(root)
    phases = sequence(
        vector.own_parts(SCRATCH),
        (
            (0, InsideHosts.of(vector, to_owners, (INPUT, SCRATCH), REDUCE, before=True)),
            *vector.between(SCRATCH),
            (0, InsideHosts.of(vector, partial(to_one, root=place), (SCRATCH, OUTPUT), hosts=[host])),
        ),
    )
    return vector.schedule("reduce", phases, root)


def lanes_bcast(network: Network, across: AcrossHosts, *, root: int = 0, blocks: int | None = None) -> Schedule:
    """A broadcast in three stages: a scatter in the root's host, broadcasts in lanes, and an allgather in each host.

    In the second stage each rank of the root's host sends its part (a lane) to the ranks of other hosts with the same
    lane. Segments are pipelined as in `lanes_allreduce`. Messages: those of the broadcasts across hosts, and for each
    group of blocks that they handle in one step, in hosts of r ranks, r - 1 from the root and r - 1 from each rank
    inside its host.

    :param network: the job's network.
    :param across: algorithm that the hosts run in each lane.
    :param root: the root's rank.
    :param blocks: if ``across.pipeline``, number of blocks of the algorithm across hosts, by default as many as the
        algorithm chooses; else number of segments into which the vector is divided, by default 1.
    """
    vector = DividedVector.of(network, across, root, blocks)
    host, place = vector.lanes.where(root)
    others = np.delete(np.arange(network.num_hosts), host)
    phases = sequence(
        local_moves(0, root, (INPUT, 0), (OUTPUT, 0), vector.blocks),
        (
            (0, InsideHosts.of(vector, partial(from_one, root=place), (OUTPUT, OUTPUT), hosts=[host], before=True)),
            *vector.between(OUTPUT),
            (0, InsideHosts.of(vector, partial(from_owners, but=place), (OUTPUT, OUTPUT), hosts=[host])),
            (0, InsideHosts.of(vector, from_owners, (OUTPUT, OUTPUT), hosts=others)),
        ),
    )
    return vector.schedule("bcast", phases, root)
