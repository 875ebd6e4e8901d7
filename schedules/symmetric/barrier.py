"""Barriers by dissemination among all ranks, or among the leaders of clusters with messages to and from the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exchanges import checked_order
from ..phases import GridPhase, sequence
from ..schedule import COPY, SCRATCH, Schedule

__all__ = ["barrier_leaders"]

Integers = NDArray[np.int64]
Rows = NDArray[np.int64]


def barrier_leaders(
    size: int, clusters: Sequence[ArrayLike] = (), *, order: ArrayLike | None = None, blocks: int = 1
) -> Schedule:
    """A barrier by messages to the leaders of clusters, a dissemination among the outermost leaders, and messages back.

    The leader of a cluster is its lowest rank. Messages go to leaders of innermost clusters first, along binomial
    trees, and come back along the same trees in reverse. The dissemination (D. Hensgen, R. Finkel and U. Manber, Two
    algorithms for barrier synchronization, 1988) is among the n leaders of the outermost clusters, or among all ranks
    if there are no clusters. Messages, all of them empty: n ceil(log2 n) between the leaders, and two for each other
    rank. Steps: ceil(log2 n), and twice those of the trees. A level with a single cluster is ignored.

    :param size: number of ranks, p.
    :param clusters: cluster of each rank at each level, coarsest first, nested, each of shape (p,), any numbers.
    :param order: ranks in an order that keeps near ranks together, shape (p,), by default ascending; in the first steps
        of the dissemination a leader sends to leaders that are near it in this order.
    :param blocks: number of blocks of the schedule, of which no message has any.
    """
    members, inwards = np.arange(size), []
    for label in map(np.asarray, reversed(clusters)):
        if (label != label[0]).any():
            _, first, cluster = np.unique(label[members], return_index=True, return_inverse=True)
            inwards.append(_to_leaders(members, cluster))
            members = np.sort(members[first])
    around = checked_order(size, order)
    around = around[np.isin(around, members)]
    outwards = [_backwards(rows) for rows in reversed(inwards)]
    phases = sequence(*inwards, _dissemination(around), *outwards)
    name = "dissemination, over leaders" if inwards else "dissemination"
    return Schedule.from_phases("barrier", size, name, phases, blocks=blocks)


def _tokens(step: ArrayLike, source: ArrayLike, destination: ArrayLike) -> Rows:
    """The rows of empty messages with the given steps, senders and receivers."""
    columns = np.broadcast_arrays(step, source, destination, SCRATCH, 0, SCRATCH, 0, 0, COPY)
    return np.stack(columns, axis=-1).reshape(-1, len(columns)).astype(np.int64)


def _to_leaders(members: Integers, cluster: Integers) -> Rows:
    """The rows of empty messages along a binomial tree to the first member of each cluster.

    :param members: ranks, ascending, shape (members,).
    :param cluster: number of each member's cluster, shape (members,).
    """
    order = np.argsort(cluster, kind="stable")
    place = np.arange(len(order)) - np.searchsorted(cluster[order], cluster[order])
    tables = [np.empty((0, 9), dtype=np.int64)]
    for step in range(int(place.max(initial=0)).bit_length()):
        sends = np.flatnonzero(place & ((2 << step) - 1) == 1 << step)
        tables.append(_tokens(step, members[order[sends]], members[order[sends - (1 << step)]]))
    return np.concatenate(tables)


def _backwards(rows: Rows) -> Rows:
    """The rows of the same messages with senders and receivers exchanged, and with their steps in reverse order."""
    turned = rows[::-1].copy()
    turned[:, 0] = rows[:, 0].max(initial=0) - turned[:, 0]
    turned[:, [1, 2]] = turned[:, [2, 1]]
    return turned


def _dissemination(members: Integers) -> GridPhase:
    """The phase in which member i sends to member i + 2^k, modulo their number, in step k.

    :param members: ranks that take part, in the order of the dissemination.
    """
    size = len(members)
    steps = (size - 1).bit_length()

    def make(step: Integers, place: Integers) -> Rows:
        return _tokens(step, members[place], members[(place + (1 << step)) % size])

    def near(rank: int) -> Integers:
        (own,) = np.nonzero(members == rank)
        before = (own[:, None] - np.append(0, 1 << np.arange(steps))) % size
        return np.unique(before)

    return GridPhase(steps, members=size, make=make, near=near)
