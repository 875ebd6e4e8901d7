"""The communication graphs that the arguments of MPI's topology methods describe, for example of ``Create_cart``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from operator import index as whole
from typing import Any

import numpy as np
from mpi4py import MPI

from ....mapping.graph import CommunicationGraph

__all__ = ["DISTRIBUTED", "SHARED", "Distributed", "SharedArguments"]

Given = tuple[Any, ...]
Edges = tuple[Sequence[int], Sequence[int], Sequence[int] | None]


@dataclass(frozen=True)
class SharedArguments:
    """The functions that read the arguments of a method like ``Create_cart``, which are the same on all ranks.

    :param understand: function of the arguments and the number of ranks, which returns the arguments as plain numbers;
        it raises TypeError or ValueError for arguments for which the MPI library will raise an error.
    :param graph: function of the result of ``understand``, which returns the communication graph.
    """

    understand: Callable[[Given, int], Given]
    graph: Callable[[Given], CommunicationGraph]


@dataclass(frozen=True)
class Distributed:
    """The functions that read the arguments of a method in which each rank gives some edges (``Create_dist_graph``).

    :param understand: function of the arguments and the number of ranks, which returns the arguments as lists of
        numbers, with None for absent weights; it raises TypeError or ValueError for arguments that contradict each
        other.
    :param edges: function of a rank and the result of ``understand`` on it, which returns lists of the edges' sources,
        destinations and weights (None if all are 1).
    """

    understand: Callable[[Given, int], Given]
    edges: Callable[[int, Given], Edges]

    def graph(self, told: Sequence[Given]) -> CommunicationGraph:
        """The communication graph of all ranks' edges. Weights of an edge given twice add up; the default weight is 1.

        :param told: the result of ``understand`` on each rank, in rank order.
        """
        columns: tuple[list[int], list[int], list[int]] = ([], [], [])
        for rank, arguments in enumerate(told):
            sources, destinations, weights = self.edges(rank, arguments)
            for column, part in zip(columns, (sources, destinations, weights), strict=True):
                column.extend([1] * len(sources) if part is None else part)
        source, destination, weight = (np.array(column, dtype=np.int64) for column in columns)
        real = (source != MPI.PROC_NULL) & (destination != MPI.PROC_NULL)
        return CommunicationGraph.from_arrays(len(told), source[real], destination[real], weight[real])


def _cart(given: Given, size: int) -> Given:
    """The extents of a grid, and for each dimension whether it is periodic, as plain numbers."""
    dims, periods = given
    extents = _list(dims)
    if periods is None or isinstance(periods, bool):
        periods = [bool(periods)] * len(extents)
    wraps = [bool(one) for one in _list(periods, len(extents))]
    if not extents or min(extents) < 1 or prod(extents) > size:
        raise ValueError(f"expecting extents for at most {size} ranks, got {extents}")
    return extents, wraps


def _graph(given: Given, size: int) -> Given:
    """Two lists: for each node the end of its edges in the list of edges; and the list of edges.

    If the first list begins with 0, this is dropped, as in mpi4py.
    """
    ends, edges = _list(given[0]), _list(given[1])
    if ends and ends[0] == 0 and ends[-1] == len(edges):
        del ends[0]
    nodes = len(ends)
    if not 1 <= nodes <= size or ends[-1] != len(edges) or (np.diff(ends, prepend=0) < 0).any():
        raise ValueError(f"expecting an index of at most {size} nodes over {len(edges)} edges")
    if edges and not 0 <= min(edges) <= max(edges) < nodes:
        raise ValueError(f"expecting edges to nodes in range({nodes})")
    return ends, edges


def _graph_of(understood: Given) -> CommunicationGraph:
    ends, edges = understood
    sources = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    return CommunicationGraph.from_arrays(len(ends), sources, edges, np.ones(len(edges), dtype=np.int64))


def _dist_graph(given: Given, size: int) -> Given:
    """Sources, degree of each source, destinations and weights of the edges."""
    sources, degrees = _list(given[0]), _list(given[1], len(given[0]))
    if degrees and min(degrees) < 0:
        raise ValueError(f"expecting degrees of at least 0, got {min(degrees)}")
    destinations = _list(given[2], sum(degrees))
    _in_range(sources + destinations, size)
    return sources, degrees, destinations, _weights(given[3], len(destinations))


def _dist_graph_edges(rank: int, understood: Given) -> Edges:
    sources, degrees, destinations, weights = understood
    return np.repeat(np.array(sources, dtype=np.int64), degrees).tolist(), destinations, weights


def _adjacent(given: Given, size: int) -> Given:
    """Sources, destinations, weights of the sources, weights of the destinations."""
    sources, destinations = _list(given[0]), _list(given[1])
    _in_range(sources + destinations, size)
    return sources, destinations, _weights(given[2], len(sources)), _weights(given[3], len(destinations))


def _adjacent_edges(rank: int, understood: Given) -> Edges:
    """The edges out of a rank; the edges into it are taken from their senders."""
    _, destinations, _, weights = understood
    return [rank] * len(destinations), destinations, weights


def _list(given: Any, items: int | None = None) -> list[int]:
    """The integers of an argument, which may be any object that mpi4py takes for a list of integers."""
    listed = [whole(one) for one in given]
    if items is not None and len(listed) != items:
        raise ValueError(f"expecting {items} items, got {len(listed)}")
    return listed


def _weights(given: Any, items: int) -> list[int] | None:
    if given is None or (isinstance(given, int) and given == MPI.UNWEIGHTED):
        return None
    listed = _list([] if isinstance(given, int) and given == MPI.WEIGHTS_EMPTY else given, items)
    if listed and min(listed) < 0:
        raise ValueError(f"expecting weights of at least 0, got {min(listed)}")
    return listed


def _in_range(ranks: Sequence[int], size: int) -> None:
    wrong = [rank for rank in ranks if not 0 <= rank < size and rank != MPI.PROC_NULL]
    if wrong:
        raise ValueError(f"expecting ranks in range({size}), got {wrong[0]}")


SHARED = {
    "Create_cart": SharedArguments(_cart, lambda understood: CommunicationGraph.cartesian(*understood)),
    "Create_graph": SharedArguments(_graph, _graph_of),
}
DISTRIBUTED = {
    "Create_dist_graph": Distributed(_dist_graph, _dist_graph_edges),
    "Create_dist_graph_adjacent": Distributed(_adjacent, _adjacent_edges),
}
