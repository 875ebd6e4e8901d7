"""Cycles of links that wait for each other: possible ones from routes, and actual ones from packets."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..tables import Integers, Tables

__all__ = ["dependency_cycle", "link_names", "waiting_cycle"]


def dependency_cycle(tables: Tables, source: Integers, destination: Integers) -> list[int]:
    """The links of a cycle in the channel dependency graph of the given routes, in order; empty if there is none.

    A link depends on the next link of a route if both end in a switch. Without a cycle the network cannot deadlock (W.
    J. Dally and C. L. Seitz, IEEE Transactions on Computers C-36(5), 1987); with a cycle it may.

    :param tables: the network.
    :param source: sending host of each pair, shape (pairs,).
    :param destination: receiving host of each pair, shape (pairs,).
    Cost: the routes of the pairs, computed in chunks, and a sort of their links.
    """
    found = np.empty(0, dtype=np.int64)
    links = len(tables.rate)
    for _, paths in tables.chunks(source, destination):
        first, then = paths[:, :-1], paths[:, 1:]
        both = (then >= 0) & (tables.target[then] >= tables.first_switch)
        found = np.union1d(found, first[both].astype(np.int64) * links + then[both])
    return _cycle(found // links, found % links, links)


def waiting_cycle(waiting: Iterable[tuple[int, int, int]], links: int, lanes: int) -> list[int]:
    """The links of a cycle in which the packets from each link wait for room behind the next; empty if there is none.

    :param waiting: the link on which each packet arrived, the link that it needs, and its lane.
    :param links: number of links.
    :param lanes: number of lanes.
    """
    rows = np.array([*waiting, (-1, -1, -1)][:-1], dtype=np.int64).reshape(-1, 3)
    edges = np.unique(rows[:, :2] * lanes + rows[:, 2:], axis=0)
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
