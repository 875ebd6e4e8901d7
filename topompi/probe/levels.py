"""Levels from round trips: where the times that join hosts have gaps.

What disturbs a measurement makes it longer, never shorter. So hosts are joined by the shortest round trip between two
groups (single linkage): one undisturbed pair suffices. That all pairs of a group agree (complete linkage) is what the
confidence tells.

Some pairs take longer than others of their level through all measurements (by up to 15 % on emulated networks), and
hosts of a leaf of two are joined by just one. So a gap is judged by what is typical of the level below it, not by the
largest time there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import squareform

from .errors import ProbeError

__all__ = ["RESOLUTION", "STEP", "Level", "disagreeing", "find_levels", "joining_pairs", "joining_times"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
RESOLUTION = 0.1  # of a round trip: a smaller difference is one between hosts, not between levels
STEP = 0.04  # of a round trip: how much longer at least the first time above a gap is than the last one below it
FURTHER = 0.12  # of what is typical of the level below a gap: how much longer at least the first time above it is
LATE = 0.75  # of a gap: below it a pair is of the level below; nothing makes a pair of the level above so much shorter
TYPICAL = 1.05  # times the median of the times that join hosts: what is typical at most, as pairs may be disturbed
NOISES = 3.0  # a gap is at least so many times what measuring again has taken from its upper end


@dataclass(frozen=True, eq=False)
class Level:
    """Hosts in clusters, such as those of one leaf switch.

    :param cluster: number of each host's cluster, shape (H,), in the order of their first hosts.
    :param round_trip: seconds, the median of the pairs that this level joins.
    :param limit: seconds; a pair within a cluster that takes longer disagrees with it.
    :param confidence: share of the pairs that the level joins which agree, times the share of the gap above it that
        noise leaves; 0 to 1.
    """

    cluster: IntArray
    round_trip: float
    limit: float
    confidence: float

    @property
    def num_clusters(self) -> int:
        """How many clusters there are."""
        return int(self.cluster.max()) + 1


def find_levels(round_trips: FloatArray, noise: FloatArray | float = 0.0) -> tuple[Level, ...]:
    """The levels, from the leaves to the one that holds all hosts.

    :param round_trips: seconds, shape (H, H), symmetric, inf where not measured.
    :param noise: seconds by which measuring again has lately shortened each of ``joining_times``, shape (H - 1,).
    :raises ProbeError: if what was measured does not connect all hosts.
    Cost: O(H^2) memory and time.
    """
    hosts = len(round_trips)
    if hosts == 1:
        return (Level(np.zeros(1, dtype=np.int64), 0.0, 0.0, 1.0),)
    joins = _joins(round_trips)
    heights = joins[:, 2]
    levels: list[Level] = []
    noise = np.broadcast_to(noise, heights.shape)
    gaps, first = np.diff(heights), 0
    for at in np.flatnonzero(gaps > np.maximum(STEP * heights[:-1], NOISES * noise[1:])):
        limit = float(heights[at] + LATE * gaps[at])
        cluster = _in_order(fcluster(joins, limit, "distance"))
        level = _level(round_trips, cluster, limit, levels, 1 - float(noise[at + 1] / gaps[at]))
        typical = min(level.round_trip, TYPICAL * float(np.median(heights[first : at + 1])))
        if heights[at + 1] > (1 + FURTHER) * typical:
            levels.append(level)
            first = int(at) + 1
    top = float(heights[-1] * (1 + 2 * RESOLUTION))  # pairs beyond may be of a level that was missed
    levels.append(_level(round_trips, np.zeros(hosts, dtype=np.int64), top, levels, 1.0))
    return tuple(levels)


def joining_times(round_trips: FloatArray) -> FloatArray:
    """The round trips by which hosts are joined, ascending, shape (H - 1,); ProbeError if not all hosts are."""
    times: FloatArray = _joins(round_trips)[:, 2]
    return times


def joining_pairs(round_trips: FloatArray) -> IntArray:
    """The pairs whose round trips join hosts, shape (H - 1, 2)."""
    pairs: IntArray = np.argwhere(minimum_spanning_tree(round_trips).toarray())
    return np.sort(pairs, axis=1)


def disagreeing(round_trips: FloatArray, levels: tuple[Level, ...]) -> IntArray:
    """Pairs whose round trip is longer than their level's limit, shape (P, 2), the lowest level first."""
    found = []
    for number, level in enumerate(levels):
        joined = _joined(level.cluster, levels[:number])
        found.append(np.argwhere(np.triu(joined & (round_trips > level.limit), 1)))
    return np.concatenate(found)


def _joins(round_trips: FloatArray) -> FloatArray:
    """Single linkage: a row a join, its third column the shortest round trip between the two."""
    known = np.isfinite(round_trips)
    never = 10 * float(round_trips[known].max(initial=1.0))
    joins: FloatArray = linkage(squareform(np.where(known, round_trips, never), checks=False), "single")
    if joins[-1, 2] >= never:
        raise ProbeError("expecting time to measure every host with another, got too little: give more --seconds")
    return joins


def _level(round_trips: FloatArray, cluster: IntArray, limit: float, below: list[Level], left: float) -> Level:
    times = round_trips[np.triu(_joined(cluster, below), 1)]
    agree = float((times <= limit).mean()) if len(times) else 1.0
    measured = times[np.isfinite(times)]
    typical = float(np.median(measured)) if len(measured) else limit
    return Level(cluster, typical, limit, max(0.0, agree * left))


def _joined(cluster: IntArray, below: list[Level] | tuple[Level, ...]) -> NDArray[np.bool_]:
    """Which pairs are in one cluster here and in none of the level below, shape (H, H)."""
    joined: NDArray[np.bool_] = cluster[:, np.newaxis] == cluster
    if below:
        joined &= below[-1].cluster[:, np.newaxis] != below[-1].cluster
    return joined


def _in_order(labels: NDArray[np.integer]) -> IntArray:
    """The labels numbered from 0 in the order in which they appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    numbered: IntArray = rank[inverse.ravel()]
    return numbered
