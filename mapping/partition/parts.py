"""The interface of partitioners, and the repair that gives their parts exact sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import TopompiError
from ..graph import Undirected

__all__ = ["PartitionError", "Partitioner", "cut", "partition", "repair", "subgraph", "whole_weights"]

Integers = NDArray[np.int64]
# Largest sum of edge weights, because partitioners add them in 32 bits.
LARGEST_SUM = 2**30


class PartitionError(TopompiError, ValueError):
    """A requested partition is impossible."""


class Partitioner(Protocol):
    """An interface for partitioners; sizes need only be approximate, because `partition` repairs them."""

    def __call__(self, graph: Undirected, sizes: Integers, seed: int) -> Integers:
        """Partition a graph; return the part of each vertex, in range(k), shape (n,).

        :param graph: symmetric graph of n vertices.
        :param sizes: wanted number of vertices of each part, shape (k,); at least two parts, each of at least 1.
        :param seed: seed of the random numbers.
        """


def partition(
    graph: Undirected, sizes: Sequence[int] | Integers, seed: int, by: Partitioner, tries: int = 1
) -> Integers:
    """Partition a graph into parts of exact sizes; return the part of each vertex, shape (n,).

    Of several tries the one with the least weight of edges between parts counts.

    :param graph: symmetric graph of n vertices.
    :param sizes: number of vertices of each part, shape (k,); their sum is n, and 0 is allowed.
    :param seed: seed of the first try; every further try takes the next number.
    :param by: partitioner, whose parts have about the right size.
    :param tries: number of partitions tried.
    :raises PartitionError: if the sum of the sizes is not n.
    """
    wanted = np.asarray(sizes, dtype=np.int64)
    if wanted.sum() != len(graph.offsets) - 1:
        raise PartitionError(f"partition: expecting sizes that add up to {len(graph.offsets) - 1}, got {wanted.sum()}")
    parts = np.flatnonzero(wanted)
    if len(parts) <= 1:
        return np.repeat(np.arange(len(wanted)), wanted)
    least, best = np.inf, np.zeros(0, dtype=np.int64)
    for number in range(tries):
        found = repair(graph, by(graph, wanted[parts], seed + number), wanted[parts])
        crossing = cut(graph, found)
        if crossing < least:
            least, best = crossing, found
    return parts[best]


def cut(graph: Undirected, part: Integers) -> float:
    """The weight of the edges between parts, counted in both directions."""
    crossing = np.repeat(part, np.diff(graph.offsets)) != part[graph.targets]
    return float(graph.weight[crossing].sum())


def subgraph(graph: Undirected, vertices: Integers) -> Undirected:
    """The graph of some vertices and the edges between them; vertices are numbered in the given order."""
    number = np.full(len(graph.offsets) - 1, -1, dtype=np.int64)
    number[vertices] = np.arange(len(vertices))
    degree = np.diff(graph.offsets)[vertices]
    before = np.cumsum(degree) - degree
    edge = np.repeat(graph.offsets[vertices] - before, degree) + np.arange(degree.sum())
    inside = number[graph.targets[edge]] >= 0
    source = np.repeat(np.arange(len(vertices)), degree)[inside]
    offsets = np.searchsorted(source, np.arange(len(vertices) + 1)).astype(np.int64)
    return Undirected(offsets, number[graph.targets[edge]][inside], graph.weight[edge][inside])


def repair(graph: Undirected, part: Integers, sizes: Integers, distance: NDArray[np.float64] | None = None) -> Integers:
    """Make the sizes of parts exact: vertices leave parts that are too large, by the cheapest move first.

    :param graph: symmetric graph of n vertices.
    :param part: part of each vertex, in range(k), shape (n,).
    :param sizes: wanted number of vertices of each part, shape (k,); their sum is n.
    :param distance: distance between parts, shape (k, k), for the cost of a move; by default the cut is the cost.
    Cost: O(n k) once, and O(vertices in too large parts x too small parts) per move.
    """
    part, count = part.copy(), np.bincount(part, minlength=len(sizes))
    if (count == sizes).all():
        return part
    if distance is None:
        distance = 1.0 - np.eye(len(sizes))
    price = _part_weights(graph, part, len(sizes)) @ distance
    while (count > sizes).any():
        under = np.flatnonzero(count < sizes)
        leaving = np.flatnonzero((count > sizes)[part])
        loss = price[np.ix_(leaving, under)] - price[leaving, part[leaving]][:, None]
        which, where = np.unravel_index(np.argmin(loss), loss.shape)
        vertex, old, new = leaving[which], part[leaving[which]], under[where]
        near = slice(graph.offsets[vertex], graph.offsets[vertex + 1])
        price[graph.targets[near]] += graph.weight[near, None] * (distance[new] - distance[old])
        part[vertex] = new
        count[old] -= 1
        count[new] += 1
    return part


def _part_weights(graph: Undirected, part: Integers, parts: int) -> NDArray[np.float64]:
    """The weight from each vertex to each part, shape (n, k)."""
    size = len(part)
    key = np.repeat(np.arange(size), np.diff(graph.offsets)) * parts + part[graph.targets]
    return np.bincount(key, graph.weight, size * parts).astype(np.float64).reshape(size, parts)


def whole_weights(graph: Undirected) -> Integers:
    """The weights as whole numbers of at least 1, scaled so that their sum fits into 32 bits, shape (2 m,)."""
    total = float(graph.weight.sum())
    whole = bool((graph.weight == np.rint(graph.weight)).all())
    scale = 1.0 if whole and total <= LARGEST_SUM else LARGEST_SUM / total
    return np.maximum(np.rint(graph.weight * scale), 1).astype(np.int64)
