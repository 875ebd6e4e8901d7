"""Recognition of a grid in a graph: coordinates of each rank, whether ranks are in row-major order or not."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..graph import CommunicationGraph, Undirected

__all__ = ["coordinates_of"]

Integers = NDArray[np.int64]
MOST_DIMENSIONS = 4


def coordinates_of(graph: CommunicationGraph) -> tuple[tuple[int, ...], Integers] | None:
    """The extents, and the coordinates of each rank, shapes (d,) and (n, d); None if the graph is no grid.

    A grid that the graph declares is taken as it is. Otherwise a grid without wrap-around, with edges between nearest
    neighbours only, is recognised in any order of ranks: its corners have the fewest neighbours, and the distances from
    two corners on one axis give the coordinate on it. Cost: O(edges) for each of 2^d corners.
    """
    if graph.dims is not None:
        return graph.dims, np.stack(np.unravel_index(np.arange(graph.size), graph.dims), axis=1).astype(np.int64)
    plain = graph.undirected()
    degree = np.diff(plain.offsets)
    dimensions = int(degree.min(initial=MOST_DIMENSIONS + 1))
    corners = np.flatnonzero(degree == dimensions)
    if not 1 <= dimensions <= MOST_DIMENSIONS or len(corners) != 2**dimensions:
        return None
    return _from_corners(plain, corners, dimensions)


def _from_corners(graph: Undirected, corners: Integers, dimensions: int) -> tuple[tuple[int, ...], Integers] | None:
    """The extents and coordinates, as in `coordinates_of`, if ``corners`` are the corners of a grid, else None.

    Each choice of d other corners is tried as the ends of the grid's edges from the first corner.
    """
    size = len(graph.offsets) - 1
    away = {int(corner): _distances(graph, int(corner)) for corner in corners}
    first, *others = map(int, corners)
    for axes in combinations(others, dimensions):
        extents = tuple(int(away[first][corner]) + 1 for corner in axes)
        if np.prod(extents, dtype=np.int64) != size:
            continue
        doubled = np.stack([away[first] - away[corner] + away[first][corner] for corner in axes], axis=1)
        if _is_grid(graph, doubled, extents):
            return extents, doubled // 2
    return None


def _is_grid(graph: Undirected, doubled: Integers, extents: tuple[int, ...]) -> bool:
    """Whether the coordinates are those of a grid: whole, different for all vertices, and 1 apart along each edge.

    :param graph: symmetric graph.
    :param doubled: twice the coordinates of each vertex, shape (n, d); odd if a coordinate is no whole number.
    :param extents: extents of the grid.
    """
    place = doubled // 2
    if (doubled % 2).any() or (place < 0).any() or (place >= np.array(extents)).any():
        return False
    source = np.repeat(np.arange(len(place)), np.diff(graph.offsets))
    unit = np.abs(place[source] - place[graph.targets]).sum(axis=1) == 1
    return bool(unit.all()) and len(np.unique(np.ravel_multi_index(tuple(place.T), extents))) == len(place)


def _distances(graph: Undirected, start: int) -> Integers:
    """The number of edges from a vertex to each vertex; -1 if there is no path."""
    away = np.full(len(graph.offsets) - 1, -1, dtype=np.int64)
    frontier, step = np.array([start]), 0
    while len(frontier):
        away[frontier] = step
        degree = np.diff(graph.offsets)[frontier]
        edge = np.repeat(graph.offsets[frontier] - np.cumsum(degree) + degree, degree) + np.arange(degree.sum())
        reached = np.unique(graph.targets[edge])
        frontier, step = reached[away[reached] < 0], step + 1
    return away
