"""Recognition of grids and tori in a graph: coordinates of each rank, whether ranks are in row-major order or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..graph import CommunicationGraph, Undirected

__all__ = ["RankGrid", "coordinates_of", "grid_of_strides", "heavy_parts"]

Integers = NDArray[np.int64]
MOST_WEDGES = 2**22  # most pairs of edges that meet, because each takes some 100 bytes while factors are searched for
GAP, GAPS = 3.0, 3  # least ratio between the weights of heavy and light edges, and most ways to divide them
SHARE = 0.05  # least fraction of all bytes between ranks whose numbers differ by a stride


class RankGrid(NamedTuple):
    """The places of all ranks on a grid; dimensions may wrap around.

    :param extents: extent of each of the d dimensions.
    :param place: coordinates of each rank, shape (ranks, d).
    :param exact: whether the graph declares the grid, or has no other edges than those of the grid.
    """

    extents: tuple[int, ...]
    place: Integers
    exact: bool = False


def coordinates_of(graph: CommunicationGraph) -> RankGrid | None:
    """The grid of the ranks; None if the graph is no grid.

    A grid that the graph declares is taken as it is. Otherwise a grid or torus with edges between nearest neighbours is
    recognised in any order of ranks, first from all edges, then from the heavy ones alone, because a program adds
    small sums over all ranks, or small messages across corners, to the exchange of halos. Rings of four ranks are
    2 x 2 grids. Cost: O(edges x degree x log ranks) for each of up to four sets of edges.
    """
    if graph.dims is not None:
        place = np.stack(np.unravel_index(np.arange(graph.size), graph.dims), axis=1).astype(np.int64)
        return RankGrid(graph.dims, place, True)
    for number, part in enumerate(heavy_parts(graph.undirected())):
        found = _product(part)
        if found is not None:
            return found._replace(exact=number == 0)
    return None


def grid_of_strides(graph: CommunicationGraph) -> RankGrid | None:
    """The grid of the ranks in row-major order, from the differences of the numbers of ranks that communicate.

    Strides are the differences that divide each other and the number of ranks and have at least 5 % of all bytes. This
    is only a supposition: edges that the grid has not are ignored. None if there are not at least two strides.
    """
    source = np.repeat(np.arange(graph.size), np.diff(graph.offsets))
    apart = np.abs(source - graph.targets)
    share = np.bincount(apart, graph.volume, graph.size + 1)
    share[0] = 0
    strides: list[int] = []
    for stride in np.flatnonzero(share >= max(SHARE * share.sum(), 1)).tolist():
        while strides and stride % strides[-1] and share[stride] > share[strides[-1]]:
            strides.pop()
        if graph.size % stride == 0 and (not strides or stride % strides[-1] == 0):
            strides.append(stride)
    if len(strides) < 2:
        return None
    ends = np.array([graph.size, *strides[:0:-1]]), np.array([*strides[:0:-1], 1])
    extents = ends[0] // ends[1]
    place = np.arange(graph.size)[:, None] // ends[1] % extents
    return RankGrid(tuple(extents.tolist()), place.astype(np.int64))


def heavy_parts(graph: Undirected) -> Iterator[Undirected]:
    """Yield the graph itself, then its heavy edges alone, for up to three gaps between weights, widest gap first."""
    yield graph
    if not len(graph.weight):
        return
    weights, count = np.unique(graph.weight, return_counts=True)
    ratio = weights[1:] / np.maximum(weights[:-1], 1e-300)
    # A connected graph of heavy edges has at least one edge fewer than ranks, and each is counted in both directions.
    enough = np.cumsum(count[::-1])[::-1][1:] >= 2 * (len(graph.offsets) - 2)
    wide = np.flatnonzero((ratio >= GAP) & enough)
    for gap in wide[np.argsort(-ratio[wide], kind="stable")][:GAPS]:
        heavy = graph.weight >= weights[gap + 1]
        offsets = np.r_[0, np.cumsum(heavy)][graph.offsets]
        yield Undirected(offsets.astype(np.int64), graph.targets[heavy], graph.weight[heavy])


def _product(graph: Undirected) -> RankGrid | None:
    """The grid if the graph is the Cartesian product of paths and rings, else None.

    Each class of parallel edges is one factor (Imrich, Peterin 2007). Without the edges of a class, the graph falls
    into components: the layers of this factor, whose order gives the coordinate. The result is checked: all
    coordinates are different, and there are as many edges as the product has.
    """
    size, degree = len(graph.offsets) - 1, np.diff(graph.offsets)
    wedges = int((degree * (degree - 1) // 2).sum())
    if size < 2 or degree.min() < 1 or wedges > MOST_WEDGES:
        return None
    source = np.repeat(np.arange(size), degree)
    factor = _parallel(graph, source)
    extents, place, edges = [], [], 0
    for number in range(int(factor.max()) + 1):
        others, own = factor != number, factor == number
        layer = _components(size, source[others], graph.targets[others])
        ends = np.unique(np.stack([layer[source[own]], layer[graph.targets[own]]]), axis=1)
        count = int(layer.max()) + 1
        line = _line(ends, count)
        if line is None or size % count:
            return None
        extents.append(count)
        place.append(line[layer])
        edges += ends.shape[1] * (size // count)
    coordinates = np.stack(place, axis=1)
    if np.prod(extents, dtype=np.float64) != size or edges != len(source):
        return None
    if len(np.unique(np.ravel_multi_index(tuple(place), tuple(extents)))) < size:
        return None
    return RankGrid(tuple(extents), coordinates)


def _parallel(graph: Undirected, source: Integers) -> Integers:
    """The class of each edge, from 0, shape (edges,); opposite edges of squares without diagonals are in one class.

    Two edges that meet are in one class, too, unless they are sides of exactly one square without a diagonal.

    :param graph: symmetric graph.
    :param source: rank from which each edge starts, shape (edges,).
    """
    size, edge = len(graph.offsets) - 1, np.arange(len(source))
    later = graph.offsets[source + 1] - edge - 1
    one = np.repeat(edge, later)
    two = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(later) - later, later)
    key, adjacent = graph.targets[one] * size + graph.targets[two], source * size + graph.targets
    order = np.argsort(key, kind="stable")
    one, two, key = one[order], two[order], key[order]
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    square = (count == 2) & ~np.isin(key[first], adjacent)
    at = first[square]
    alone = np.repeat(~square, count)
    back = np.searchsorted(adjacent, graph.targets * size + source)
    pairs = [(one[alone], two[alone]), (one[at], two[at + 1]), (two[at], one[at + 1]), (edge, back)]
    left, right = (np.concatenate([pair[end] for pair in pairs]) for end in (0, 1))
    return _components(len(edge), left, right)


def _components(size: int, source: Integers, target: Integers) -> Integers:
    """The component of each vertex of the graph with these edges, numbered from 0, shape (size,)."""
    from scipy.sparse import coo_array  # imported late because few programs map ranks
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(source), dtype=np.int8), (source, target)), shape=(size, size))
    return np.asarray(connected_components(edges, directed=False)[1], dtype=np.int64)


def _line(ends: Integers, count: int) -> Integers | None:
    """The position of each vertex along a path or ring; None if the graph is neither.

    :param ends: both ends of each edge, in both directions, sorted by the first, shape (2, edges).
    :param count: number of vertices.
    """
    degree = np.bincount(ends[0], minlength=count)
    if count < 2 or degree.min() < 1 or degree.max() > 2 or (ends[0] == ends[1]).any():
        return None
    first = np.cumsum(degree) - degree
    position, here, before = np.full(count, -1, dtype=np.int64), int(np.argmin(degree)), -1
    for step in range(count):
        position[here] = step
        near = ends[1, first[here] : first[here] + degree[here]]
        before, here = here, int(near[0] if near[0] != before else near[-1])
        if position[here] >= 0:
            break
    return position if position.min() >= 0 else None
