"""The routes of packets, and the lanes of their links."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..tables import Integers, Tables

__all__ = ["RISES", "flat_routes", "lanes_along"]

RISES = 1 << 28  # added to the number of a link on which a packet's lane is one higher than on the link before


def lanes_along(tables: Tables, paths: NDArray[np.int32], hop_lanes: int) -> Integers:
    """The lane of a packet on each link of its path, counted from its job's first lane, shape of ``paths``.

    It begins at 0 and rises by one behind each link that ``Tables.rises`` names, up to the last lane. The link to a
    host has the lane of the link before it.

    :param tables: the network.
    :param paths: links of each path, padded with -1, shape (paths, length of the longest).
    :param hop_lanes: number of lanes.
    """
    lanes = np.zeros(paths.shape, dtype=np.int64)
    if hop_lanes > 1:
        to_switch = tables.target[paths[:, 1:]] >= tables.first_switch
        lanes[:, 1:] = np.cumsum(tables.rises_behind[paths[:, :-1]] & to_switch & (paths[:, 1:] >= 0), axis=1)
    return np.minimum(lanes, hop_lanes - 1)


def flat_routes(
    tables: Tables, source: Integers, destination: Integers, hop_lanes: int
) -> tuple[NDArray[np.int32], Integers]:
    """The links behind the host's own of each pair's route, in one array, and the place of each pair's first.

    A link on which the packet's lane rises has ``RISES`` added to its number.

    :param tables: the network.
    :param source: sending host of each pair, shape (pairs,); a pair of equal hosts has no links.
    :param destination: receiving host of each pair, shape (pairs,).
    :param hop_lanes: number of lanes among which packets rise.
    :raises NetsimError: if two hosts have no route.
    Cost: the distinct pairs' routes, computed in chunks.
    """
    size = tables.num_hosts
    key, which = np.unique(source * size + destination, return_inverse=True)
    links, counts = [np.empty(0, dtype=np.int32)], [np.zeros(1, dtype=np.int64)]
    for _, paths in tables.chunks(key // size, key % size):
        rises = np.diff(lanes_along(tables, paths, hop_lanes), axis=1).astype(np.int32)
        behind = paths[:, 1:]
        links.append((behind + RISES * rises)[behind >= 0])
        counts.append((behind >= 0).sum(axis=1))
    return np.concatenate(links), np.cumsum(np.concatenate(counts))[:-1][which] if len(key) else which
