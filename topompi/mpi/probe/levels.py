"""The levels of hosts (those of one leaf switch, those below one upper switch, ...), found by gaps between round trips.

A disturbance makes a measurement longer, never shorter. Therefore groups of hosts are joined by the shortest round trip
between a host of one and a host of the other (single linkage): one undisturbed pair is enough. The confidence of a
level tells how many of all pairs of its groups agree with it, as complete linkage would require of every pair.

Some pairs take longer than others of their level in all measurements (by up to 15 % on emulated networks), and two
hosts on a leaf switch of their own are joined by a single pair. Therefore a gap is compared with the typical round trip
of the level below it, not with the longest one. In this module, H is the number of hosts, and joining times are the
H - 1 round trips at which single linkage joins two groups of hosts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import squareform

from .errors import ProbeError

__all__ = ["RESOLUTION", "STEP", "HostClusters", "disagreeing", "find_levels", "joining_pairs", "joining_times"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
RESOLUTION = 0.1  # fraction of a round trip by which hosts of one level may differ
STEP = 0.04  # least gap between two levels, as a fraction of the joining time at its lower end
# Fraction by which the joining time at the upper end of a gap must exceed the typical round trip of the level below the
# gap; in smaller gaps no level ends.
FURTHER = 0.12
# Place of a level's limit in the gap above the level, as a fraction of the gap. It is nearer the upper end, because
# disturbances lengthen round trips of the lower level, and shorten none of the upper level.
LATE = 0.75
# Upper bound of a level's typical round trip, as a multiple of the median of its joining times. The typical round trip
# is the median of all pairs of the level, many of which may be disturbed.
TYPICAL = 1.05
NOISES = 3.0  # least gap, in multiples of the seconds by which the last measurements have shortened its upper end


@dataclass(frozen=True, eq=False)
class HostClusters:
    """A partition of the hosts into clusters, for example those of leaf switches.

    :param cluster: number of each host's cluster, shape (hosts,); clusters are numbered in the order of their first
        hosts.
    :param round_trip: median round trip, in seconds, of the level's pairs: pairs of hosts that share a cluster of this
        level, but no cluster of a lower level.
    :param limit: longest round trip, in seconds, of a pair that agrees with the level.
    :param confidence: fraction of the level's pairs that agree with it, times the fraction of the gap to the next level
        that exceeds the noise of the measurement; from 0 to 1.
    """

    cluster: IntArray
    round_trip: float
    limit: float
    confidence: float

    @property
    def num_clusters(self) -> int:
        """The number of clusters."""
        return int(self.cluster.max()) + 1


def find_levels(round_trips: FloatArray, noise: FloatArray | float = 0.0) -> tuple[HostClusters, ...]:
    """The levels of H hosts, from the leaf switches to the level with all hosts in one cluster.

    :param round_trips: round trips in seconds, shape (H, H), symmetric, inf if not measured.
    :param noise: seconds by which the last measurements have shortened each of the ``joining_times``, shape (H - 1,),
        or one number for all of them.
    :raises ProbeError: if the measured pairs do not connect all hosts.

    Cost: O(H^2) memory and time.
    """
    hosts = len(round_trips)
    if hosts == 1:
        return (HostClusters(np.zeros(1, dtype=np.int64), 0.0, 0.0, 1.0),)
    joins = _joins(round_trips)
    heights = joins[:, 2]
    levels: list[HostClusters] = []
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
    top = float(heights[-1] * (1 + 2 * RESOLUTION))  # above it, pairs may belong to a level that is not found
    levels.append(_level(round_trips, np.zeros(hosts, dtype=np.int64), top, levels, 1.0))
    return tuple(levels)


def joining_times(round_trips: FloatArray) -> FloatArray:
    """The round trips, in seconds, at which single linkage joins two groups of H hosts, ascending, shape (H - 1,).

    :raises ProbeError: if the measured pairs do not connect all hosts.
    """
    times: FloatArray = _joins(round_trips)[:, 2]
    return times


def joining_pairs(round_trips: FloatArray) -> IntArray:
    """The pairs of H hosts at whose round trips single linkage joins two groups, shape (H - 1, 2), sorted by host."""
    pairs: IntArray = np.argwhere(minimum_spanning_tree(round_trips).toarray())
    return np.sort(pairs, axis=1)


def disagreeing(round_trips: FloatArray, levels: tuple[HostClusters, ...]) -> IntArray:
    """The pairs whose round trip exceeds their level's limit, shape (pairs, 2), those of the lowest level first."""
    found = []
    for number, level in enumerate(levels):
        joined = _joined(level.cluster, levels[:number])
        found.append(np.argwhere(np.triu(joined & (round_trips > level.limit), 1)))
    return np.concatenate(found)


def _joins(round_trips: FloatArray) -> FloatArray:
    """Single linkage as scipy returns it: a row per join; its third column is the groups' shortest round trip."""
    known = np.isfinite(round_trips)
    never = 10 * float(round_trips[known].max(initial=1.0))
    joins: FloatArray = linkage(squareform(np.where(known, round_trips, never), checks=False), "single")
    if joins[-1, 2] >= never:
        raise ProbeError("expecting time to measure every host with another, got too little: give more --seconds")
    return joins


def _level(
    round_trips: FloatArray, cluster: IntArray, limit: float, below: list[HostClusters], left: float
) -> HostClusters:
    times = round_trips[np.triu(_joined(cluster, below), 1)]
    agree = float((times <= limit).mean()) if len(times) else 1.0
    measured = times[np.isfinite(times)]
    typical = float(np.median(measured)) if len(measured) else limit
    return HostClusters(cluster, typical, limit, max(0.0, agree * left))


def _joined(cluster: IntArray, below: list[HostClusters] | tuple[HostClusters, ...]) -> NDArray[np.bool_]:
    """Whether each pair of hosts shares a cluster of this level and none of the level below, shape (hosts, hosts)."""
    joined: NDArray[np.bool_] = cluster[:, np.newaxis] == cluster
    if below:
        joined &= below[-1].cluster[:, np.newaxis] != below[-1].cluster
    return joined


def _in_order(labels: NDArray[np.integer]) -> IntArray:
    """The labels renumbered from 0 in the order in which they first appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    numbered: IntArray = rank[inverse.ravel()]
    return numbered
