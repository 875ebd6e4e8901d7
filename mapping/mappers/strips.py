"""Mappings of grids of ranks by strips: a snake through strips of the grid, cut into intervals as large as clusters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

import numpy as np
from numpy.typing import NDArray

from ..graph import CommunicationGraph
from ..machine import Machine
from ..mapping import Mapping
from .grids import RankGrid
from .levels import cluster_levels, tree_order

__all__ = ["on_strips"]

Integers = NDArray[np.int64]
# Most and fewest shapes of strips tried for each level, nearest to cubes first, and most edges summed over in all.
MOST_SHAPES, FEWEST_SHAPES, MOST_SUMMED = 96, 4, 2**21


def on_strips(graph: CommunicationGraph, machine: Machine, grid: RankGrid) -> Mapping:
    """Cut a grid into strips of equal widths along one dimension, and a snake through all strips into intervals.

    Intervals are as large as the clusters of the coarsest level; each is cut in the same way for the next level, and at
    last for hosts. At each level the widths with the least volume between clusters are taken. Blocks need not divide
    the grid.
    Cost: up to 96 sums over the edges for each level.

    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots and distances; of a tree, or of few levels.
    :param grid: coordinates of each rank.
    """
    hosts = np.argsort(tree_order(machine), kind="stable")
    slots = np.argsort(np.argsort(hosts)[machine.slot_host], kind="stable")[: graph.size]
    host = machine.slot_host[slots]  # of each position along the snake
    source = np.repeat(np.arange(graph.size), np.diff(graph.offsets))
    tried = min(max(MOST_SUMMED // max(graph.num_edges, 1), FEWEST_SHAPES), MOST_SHAPES)
    part, order = np.zeros(graph.size, dtype=np.int64), np.arange(graph.size)
    for level in (*cluster_levels(machine), np.arange(machine.num_hosts)):
        cluster = np.cumsum(np.r_[0, np.diff(level[host]) != 0])
        if not cluster.any():
            continue
        least, found = np.inf, (part, order)
        size = graph.size / (int(cluster.max()) + 1)
        for snake in islice(_snakes(_local(grid.place, part), part, size), tried):
            inside = np.empty_like(part)
            inside[snake] = cluster
            crossing = float(graph.volume[inside[source] != inside[graph.targets]].sum(dtype=np.float64))
            if crossing < least:
                least, found = crossing, (inside, snake)
        part, order = found
    slot = np.empty(graph.size, dtype=np.int64)
    slot[order] = slots
    return Mapping.of(slot, machine.hosts, machine.slots)


def _local(place: Integers, part: Integers) -> tuple[Integers, Integers]:
    """The coordinates of each rank within the bounding box of its part, and the extents of this box, both (n, d)."""
    low = np.full((int(part.max(initial=0)) + 1, place.shape[1]), place.max(initial=0))
    high = np.zeros_like(low)
    np.minimum.at(low, part, place)
    np.maximum.at(high, part, place)
    return place - low[part], (high - low + 1)[part]


def _snakes(local: tuple[Integers, Integers], part: Integers, size: float) -> Iterator[Integers]:
    """Yield the ranks in the order of snakes through strips of several widths; parts stay one after another.

    :param local: coordinates within the box of the part, and extents of the box, both of shape (n, d).
    :param part: part of each rank, shape (n,).
    :param size: mean number of ranks of a cluster.
    """
    at, box = local
    dimensions, longest = at.shape[1], box.max(axis=0)
    usual = size ** (1 / dimensions)
    widths = [sorted({-(-int(extent) // count) for count in range(1, int(extent) + 1)}) for extent in longest]
    shapes = [
        (float(sum(abs(np.log(width / usual)) for width in chosen)), along, chosen)
        for along in range(dimensions)
        for chosen in product(*(widths[other] for other in range(dimensions) if other != along))
    ]
    for _, along, chosen in sorted(shapes):
        others = [other for other in range(dimensions) if other != along]
        strip, keys = np.zeros(len(part), dtype=np.int64), [part]
        for other, width in zip(others, chosen, strict=True):
            count = np.maximum(np.rint(box[:, other] / width).astype(np.int64), 1)
            ahead = at[:, other] * count // box[:, other]
            strip = strip * int(count.max()) + np.where(strip % 2, count - 1 - ahead, ahead)
            keys.append(strip)
        keys.append(np.where(strip % 2, box[:, along] - 1 - at[:, along], at[:, along]))
        yield np.lexsort((*(at[:, other] for other in others), *keys[::-1]))
