"""Cycles of links that wait for each other: possible ones from routes, and actual ones from packets."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..errors import NetsimError
from ..tables import Integers, Tables
from .routes import lanes_along

__all__ = ["dependency_cycle", "least_hop_lanes", "link_names", "waiting_cycle"]


def dependency_cycle(tables: Tables, source: Integers, destination: Integers, hop_lanes: int = 1) -> list[int]:
    """The links of a cycle in the channel dependency graph of the given routes, in order; empty if there is none.

    The vertices of the graph are pairs of a link and a lane. A pair depends on the next pair of a route if both links
    end in a switch. Without a cycle the network cannot deadlock (W. J. Dally and C. L. Seitz, IEEE Transactions on
    Computers C-36(5), 1987); with a cycle it may.

    :param tables: the network.
    :param source: sending host of each pair, shape (pairs,).
    :param destination: receiving host of each pair, shape (pairs,).
    :param hop_lanes: number of lanes among which packets rise along their routes; see ``Settings.hop_lanes``.
    Cost: the routes of the pairs, computed in chunks, and a sort of their links.
    """
    found = np.empty(0, dtype=np.int64)
    size = len(tables.rate) * hop_lanes
    for _, paths in tables.chunks(source, destination):
        vertex = paths.astype(np.int64) * hop_lanes + lanes_along(tables, paths, hop_lanes)
        first, then = vertex[:, :-1], vertex[:, 1:]
        both = (paths[:, 1:] >= 0) & (tables.target[paths[:, 1:]] >= tables.first_switch)
        found = np.union1d(found, first[both] * size + then[both])
    return [vertex // hop_lanes for vertex in _cycle(found // size, found % size, size)]


def least_hop_lanes(tables: Tables, source: Integers, destination: Integers) -> int:
    """The least ``Settings.hop_lanes`` with which the given routes cannot deadlock; 1 for routes of a fat tree.

    :param tables: the network.
    :param source: sending host of each pair, shape (pairs,).
    :param destination: receiving host of each pair, shape (pairs,).
    :raises NetsimError: if no number of lanes suffices, because packets do not rise on all parts of a cycle.
    Cost: as ``dependency_cycle``, for each number of lanes up to the result.
    """
    longest = max((paths.shape[1] for _, paths in tables.chunks(source, destination)), default=1)
    for lanes in range(1, longest + 1):
        circle = dependency_cycle(tables, source, destination, lanes)
        if not circle:
            return lanes
    raise NetsimError(f"packets: expecting lanes that rise on each circle, got {link_names(tables, circle)}")


def waiting_cycle(waiting: Iterable[tuple[int, int, int, int]], links: int, lanes: int) -> list[int]:
    """The links of a cycle in which the packets from each link wait for room behind the next; empty if there is none.

    :param waiting: the link on which each packet arrived, its lane there, the link that it needs, and its lane there.
    :param links: number of links.
    :param lanes: number of lanes.
    """
    rows = np.array([*waiting, (-1, -1, -1, -1)][:-1], dtype=np.int64).reshape(-1, 4)
    edges = np.unique(rows[:, ::2] * lanes + rows[:, 1::2], axis=0)
    return [vertex // lanes for vertex in _cycle(edges[:, 0], edges[:, 1], links * lanes)]


def _cycle(first: NDArray[np.int64], then: NDArray[np.int64], size: int) -> list[int]:
    """The vertices of a cycle in a directed graph; empty if there is none."""
    if not len(first):
        return []
    graph = coo_array((np.ones(len(first), dtype=np.int8), (first, then)), shape=(size, size))
    _, part = connected_components(graph, connection="strong")
    inside = part[first] == part[then]  # no edge is a loop, because no route takes a link twice in a row
    if not inside.any():
        return []
    edges = zip(first[inside].tolist(), then[inside].tolist(), strict=True)
    return [edge[0] for edge in nx.find_cycle(nx.DiGraph(edges))]


def link_names(tables: Tables, links: Iterable[int]) -> str:
    """The links, described by the names of their ends."""
    ends = ((tables.name(int(tables.source[link])), tables.name(int(tables.target[link]))) for link in links)
    return ", ".join(f"{source} -> {target}" for source, target in ends)
