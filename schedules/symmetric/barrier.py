"""Barriers: dissemination among all ranks, or among leaders between a tree towards them and one back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exchanges import checked_order
from ..phases import Grid, sequence
from ..schedule import COPY, SCRATCH, Schedule

__all__ = ["barrier_leaders"]

Integers = NDArray[np.int64]
Rows = NDArray[np.int64]


def barrier_leaders(
    size: int, clusters: Sequence[ArrayLike] = (), *, order: ArrayLike | None = None, blocks: int = 1
) -> Schedule:
    """Ranks tell the leaders of their clusters, innermost first; the outermost leaders disseminate, and tell the ranks.

    D. Hensgen, R. Finkel and U. Manber, Two algorithms for barrier synchronization, 1988, among the leaders, the lowest
    ranks of the outermost clusters; binomial trees inside. Messages, all of them empty: n ceil(log2 n) between the n
    leaders, and two for each further rank, in ceil(log2 n) steps and twice those of the trees. Without clusters every
    rank is a leader. A level that is one cluster is passed over.

    :param size: number of ranks.
    :param clusters: cluster of each rank at each level, coarsest first, nested, each shape (p,), any numbers.
    :param order: order of all ranks in which the leaders stand around, by default ascending. Early steps are near ones.
    :param blocks: blocks of the schedule, which sends none.
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
    """Rows of empty messages."""
    columns = np.broadcast_arrays(step, source, destination, SCRATCH, 0, SCRATCH, 0, 0, COPY)
    return np.stack(columns, axis=-1).reshape(-1, len(columns)).astype(np.int64)


def _to_leaders(members: Integers, cluster: Integers) -> Rows:
    """A binomial tree towards the first member of each cluster.

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
    """The same messages the other way, the last ones first."""
    turned = rows[::-1].copy()
    turned[:, 0] = rows[:, 0].max(initial=0) - turned[:, 0]
    turned[:, [1, 2]] = turned[:, [2, 1]]
    return turned


def _dissemination(members: Integers) -> Grid:
    """In step k the member at place i tells the one at place i + 2^k, counted around."""
    size = len(members)
    steps = (size - 1).bit_length()

    def make(step: Integers, place: Integers) -> Rows:
        return _tokens(step, members[place], members[(place + (1 << step)) % size])

    def near(rank: int) -> Integers:
        (own,) = np.nonzero(members == rank)
        before = (own[:, None] - np.append(0, 1 << np.arange(steps))) % size
        return np.unique(before)

    return Grid(steps, members=size, make=make, near=near)
