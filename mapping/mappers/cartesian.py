"""Mappings of grids of ranks by blocks with the best shape at every level of the machine, or by repeated halving."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..distances import TreeDistances
from ..evaluate import doubled_hop_bytes
from ..graph import CommunicationGraph, Undirected
from ..machine import Machine
from ..mapping import Mapping, MappingError
from ..partition import subgraph
from .folds import folded
from .grids import RankGrid, coordinates_of
from .levels import cluster_levels, tree_order
from .multilevel import with_empty
from .strips import on_strips

__all__ = ["block_shapes", "cartesian"]

Integers = NDArray[np.int64]
Shape = tuple[int, ...]


def cartesian(graph: CommunicationGraph, machine: Machine, seed: int = 0, *, grid: RankGrid | None = None) -> Mapping:
    """Map blocks of a grid to hosts, and blocks of blocks to clusters, with the best shapes that divide the grid.

    If the machine is no regular tree, or no shape divides the grid, the grid is halved repeatedly across the dimension
    with the least cut (k-d), into parts of exact sizes. On trees the result is that of strips if these have fewer
    hop-bytes, see `mapping.mappers.strips`, and on tori that of folds, see `mapping.mappers.folds`.

    :param graph: communication graph that is a grid of ranks in any order.
    :param machine: hosts with their slots and distances.
    :param seed: ignored, because nothing is random.
    :param grid: coordinates of each rank; by default they are searched for.
    :raises MappingError: if the graph is no grid, see `mapping.mappers.grids.coordinates_of`.
    """
    grid = grid or coordinates_of(graph)
    if grid is None:
        raise MappingError("cartesian: expecting a graph that is a grid, got another one")
    found = [_in_blocks(graph, machine, grid)]
    with suppress(MappingError):
        found.append(on_strips(graph, machine, grid) if _is_tree(machine) else folded(graph, machine, grid))
    return min(found, key=lambda mapping: doubled_hop_bytes(mapping, graph, machine))


def _is_tree(machine: Machine) -> bool:
    return isinstance(machine.distances, TreeDistances)


def _in_blocks(graph: CommunicationGraph, machine: Machine, grid: RankGrid) -> Mapping:
    shapes = block_shapes(graph, machine, grid)
    if shapes is None:
        return _halved(graph, machine, grid.place)
    order = _block_order(grid.place, [*shapes, grid.extents])
    slots = np.argsort(tree_order(machine)[machine.slot_host], kind="stable")
    slot_of_rank = np.empty(graph.size, dtype=np.int64)
    slot_of_rank[order] = slots
    return Mapping.of(slot_of_rank, machine.hosts, machine.slots)


def block_shapes(graph: CommunicationGraph, machine: Machine, grid: RankGrid | None = None) -> list[Shape] | None:
    """The shapes of the blocks of ranks for a host, a cluster, ...; None if there is no grid, or no shapes divide it.

    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots and distances.
    :param grid: coordinates of each rank; by default they are searched for.
    """
    grid = grid or coordinates_of(graph)
    tree = _regular_tree(machine) if graph.size == machine.num_slots else None
    return _best_shapes(graph, tree[1], grid.extents, grid.place, tree[0]) if grid and tree else None


def _regular_tree(machine: Machine) -> tuple[list[int], NDArray[np.float64]] | None:
    """The number of slots of a host, of a finest cluster, ..., of a coarsest one; and per level the saving per byte.

    The saving is the distance by which bytes inside a cluster of this level travel less than bytes that leave it. The
    result is None if clusters of a level differ in size, or the machine is no tree.
    """
    if not isinstance(machine.distances, TreeDistances) or not len(machine.slots):
        return None
    sizes = []
    for cluster in (np.arange(machine.num_hosts), *machine.distances.clusters[::-1]):
        slots = np.bincount(np.unique(cluster, return_inverse=True)[1], machine.slots)
        if slots.min() != slots.max():
            return None
        sizes.append(int(slots[0]))
    return sizes, -np.diff(machine.distances.distance)[::-1].astype(np.float64)


def _best_shapes(
    graph: CommunicationGraph, saving: NDArray[np.float64], extents: Shape, place: Integers, sizes: list[int]
) -> list[Shape] | None:
    """The shapes of a host's block, a cluster's block, ... with the least hop-bytes; None if no shape divides the grid.

    Among shapes with equal hop-bytes, those are taken whose busiest block sends the fewest bytes out of the block, at
    the coarsest level first.

    :param graph: communication graph, with a vertex per rank.
    :param saving: saving per byte that stays in a block of each level: the difference between this level's distance and
        the next one's, so that levels add up.
    :param extents: extents of the grid.
    :param place: coordinates of each rank, shape (n, d).
    :param sizes: number of ranks of a host, a finest cluster, ...
    """
    proper = graph.sources != graph.targets
    source, target = place[graph.sources[proper]], place[graph.targets[proper]]
    volume = graph.volume[proper].astype(np.float64)

    @cache
    def together(dimension: int, length: int) -> NDArray[np.bool_]:
        same: NDArray[np.bool_] = source[:, dimension] // length == target[:, dimension] // length
        return same

    @cache
    def kept(shape: Shape) -> float:
        same = together(0, shape[0])
        for dimension, length in enumerate(shape[1:], 1):
            same = same & together(dimension, length)
        return float(volume[same].sum())

    @cache
    def busiest(shape: Shape) -> float:
        block = np.unique(place // np.array(shape, dtype=np.int64), axis=0, return_inverse=True)[1].reshape(-1)
        here, there = block[graph.sources[proper]], block[graph.targets[proper]]
        leaves = here != there
        return float(np.bincount(here[leaves], volume[leaves], 1).max())

    chains: dict[Shape, tuple[float, list[Shape]]] = {(1,) * len(extents): (0.0, [])}
    for size, worth in zip(sizes, saving, strict=True):
        longer: dict[Shape, tuple[float, list[Shape]]] = {}
        for inner, (value, chain) in chains.items():
            for shape in _multiples(inner, extents, size):
                total = value + worth * kept(shape)
                if shape not in longer or total > longer[shape][0]:
                    longer[shape] = (total, [*chain, shape])
        chains = longer
    if not chains:
        return None
    most = max(value for value, _ in chains.values())
    equal = [chain for value, chain in chains.values() if value == most]
    return equal[0] if len(equal) == 1 else min(equal, key=lambda chain: [busiest(shape) for shape in chain[::-1]])


def _multiples(inner: Shape, extents: Shape, size: int) -> Iterator[Shape]:
    """Yield the shapes of ``size`` ranks that are multiples of the inner shape and divide the extents."""
    if not extents:
        if size == 1:
            yield ()
        return
    for length in range(inner[0], min(extents[0], size) + 1, inner[0]):
        if extents[0] % length == 0 and size % length == 0:
            for rest in _multiples(inner[1:], extents[1:], size // length):
                yield (length, *rest)


def _block_order(place: Integers, shapes: list[Shape]) -> Integers:
    """The ranks block by block: coarsest blocks in row-major order, and within each the next finer blocks."""
    keys = [
        place[:, dimension] // shape[dimension] for shape in shapes for dimension in reversed(range(place.shape[1]))
    ]
    ranks = [place[:, dimension] for dimension in reversed(range(place.shape[1]))]
    return np.lexsort(tuple(ranks + keys))


def _halved(graph: CommunicationGraph, machine: Machine, place: Integers) -> Mapping:
    """Halve the grid, and with it the hosts in tree order, until each part has one host.

    Each halving cuts across the dimension in which the edges cut have the least weight.

    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots and distances.
    :param place: coordinates of each rank in the grid, shape (ranks, dimensions).
    """
    full = with_empty(graph, machine)
    # Empty slots count as ranks behind the last corner of the grid.
    behind = np.repeat(place.max(axis=0, initial=0)[None, :] + 1, machine.num_slots - graph.size, axis=0)
    hosts = np.argsort(tree_order(machine), kind="stable")
    host = np.zeros(machine.num_slots, dtype=np.int64)
    work = [(full, np.arange(machine.num_slots), hosts[machine.slots[hosts] > 0])]
    everywhere, levels = np.vstack([place, behind]), cluster_levels(machine)
    while work:
        part, ranks, on = work.pop()
        if len(on) <= 1:
            host[ranks] = on[0] if len(on) else 0
            continue
        middle = _middle(levels[:, on])
        low = _least_cut(part, everywhere[ranks], int(machine.slots[on[:middle]].sum()))
        for inside, those in ((low, on[:middle]), (~low, on[middle:])):
            chosen = np.flatnonzero(inside)
            work.append((subgraph(part, chosen), ranks[chosen], those))
    return Mapping.on_hosts(host[: graph.size], machine)


def _middle(levels: Integers) -> int:
    """The index at which hosts in tree order are halved: the border of coarsest clusters that is nearest the middle.

    :param levels: cluster of each of these hosts at each level, coarsest first, shape (levels, hosts).
    """
    hosts = int(levels.shape[1])
    for cluster in levels:
        bounds = np.flatnonzero(np.diff(cluster)) + 1
        if len(bounds):
            return int(bounds[np.argmin(np.abs(2 * bounds - hosts))])
    return hosts // 2


def _least_cut(graph: Undirected, place: Integers, size: int) -> NDArray[np.bool_]:
    """Whether each vertex is in the lower part, if the grid is cut across the dimension with the least weight cut.

    :param graph: symmetric graph of the vertices.
    :param place: coordinates of each vertex, shape (vertices, dimensions).
    :param size: number of vertices of the lower part.
    """
    source = np.repeat(np.arange(len(place)), np.diff(graph.offsets))
    best, kept = np.inf, np.zeros(len(place), dtype=bool)
    for dimension in range(place.shape[1]):
        others = [place[:, other] for other in range(place.shape[1]) if other != dimension]
        low = np.zeros(len(place), dtype=bool)
        low[np.lexsort((*others, place[:, dimension]))[:size]] = True
        weight = float(graph.weight[low[source] != low[graph.targets]].sum())
        if weight < best:
            best, kept = weight, low
    return kept
