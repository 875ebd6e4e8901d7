"""Artificial communication graphs that imitate programs of many kinds, on 1,024 ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from topompi.mapping.graph import CommunicationGraph
from topompi.mapping.machine import Machine

__all__ = ["made", "refined_mesh"]

Edges = NDArray[np.int64]


def made(distance: str) -> Iterator[tuple[str, CommunicationGraph, Machine]]:
    """Yield graphs of many kinds, of 1,024 ranks in the order of the program, each with a machine of 16:8:8."""
    machine = Machine.hierarchy("16:8:8", distance)
    for name, source, target, volume in _patterns(np.random.default_rng(7)):
        yield name, CommunicationGraph.from_arrays(1024, source, target, volume), machine
    for name, dims, wraps, weights in (
        ("2D 32 x 32, torus, uneven", (32, 32), True, (1, 4)),
        ("3D 8 x 8 x 16, torus, uneven", (8, 8, 16), True, (8, 2, 1)),
        ("4D 4 x 4 x 8 x 8, torus", (4, 4, 8, 8), True, 1),
        ("4D 4 x 4 x 8 x 8, uneven", (4, 4, 8, 8), False, (1, 2, 4, 8)),
    ):
        yield name, CommunicationGraph.cartesian(dims, [wraps] * len(dims), weights), machine


def refined_mesh(ranks: int) -> CommunicationGraph:
    """Return the graph of neighbours in a mesh that is refined along a circle, 100 bytes in each direction."""
    source, target = _refined(0.3, ranks)
    return CommunicationGraph.from_arrays(ranks, *_both((source, target), np.full(len(source), 100)))


def _patterns(rng: np.random.Generator) -> Iterator[tuple[str, Edges, Edges, Edges]]:
    """Yield name, sources, targets and bytes; edges in both directions if a program sends in both."""
    ranks = np.arange(1024)
    points = rng.random((1024, 3))
    for name, dimensions in (("mesh of triangles", 2), ("mesh of tetrahedra", 3)):
        pairs = _mesh(points[:, :dimensions])
        yield name, *_both(pairs.T, rng.integers(500, 2000, len(pairs)))
    bits = np.repeat(1 << np.arange(10), 1024)
    yield "butterfly", np.tile(ranks, 10), np.tile(ranks, 10) ^ bits, np.full(10240, 4096)
    scale = np.minimum(rng.pareto(1.2, 6000) * 40, 1023).astype(np.int64)
    yield "power law", *_both((scale, rng.integers(0, 1024, 6000)), rng.integers(1, 100, 6000))
    hub = ranks // 64 * 64
    chain = np.r_[ranks, ranks[:-1]], np.r_[hub, ranks[1:]]
    yield "hub every 64 ranks", *_both(chain, np.r_[np.full(1024, 50), np.full(1023, 20)])
    yield "master and workers", *_both((np.zeros(1023, dtype=int), ranks[1:]), rng.integers(1, 100, 1023))
    noise = rng.integers(0, 1024, (2, 2000))
    ring = np.r_[ranks, noise[0]], np.r_[(ranks + 1) % 1024, noise[1]], np.r_[np.full(1024, 100), np.full(2000, 5)]
    yield "ring and noise", *ring
    order = rng.permutation(1024)
    dense = np.argwhere(np.kron(np.eye(64, dtype=int), np.ones((16, 16), dtype=int)))
    yield "blocks of 16, shuffled", *order[dense].T, np.full(len(dense), 10)
    rough = np.argwhere(np.kron(np.eye(43, dtype=int), np.ones((24, 24), dtype=int))[:1024, :1024])
    yield "blocks of 24 on hosts of 16", *rough.T, np.full(len(rough), 10)
    for name, radius in (("refined mesh, few levels", 0.3), ("refined mesh, many levels", 0.12)):
        source, target = _refined(radius, 1024)
        yield name, *_both((source, target), np.full(len(source), 100))
    fft = np.argwhere(np.kron(np.eye(32, dtype=int), np.ones((32, 32), dtype=int)))
    turned = fft % 32 * 32 + fft // 32
    yield "pencil FFT, 32 x 32", *np.r_[fft, turned].T, np.full(2 * len(fft), 64)
    tree = np.stack([(ranks[1:] - 1) // 2, ranks[1:]])
    yield "binary tree and ring", *_both(np.c_[tree, np.stack([ranks, (ranks + 1) % 1024])], np.full(2047, 8))


def _both(ends: Iterable[Edges], volume: Edges) -> tuple[Edges, Edges, Edges]:
    """Return sources, targets and bytes of edges and of their reverses."""
    source, target = ends
    return np.r_[source, target], np.r_[target, source], np.r_[volume, volume]


def _mesh(points: NDArray[np.float64]) -> Edges:
    """Return edges of the Delaunay triangulation of the points, numbered along the first axis."""
    from scipy.spatial import Delaunay

    corners = Delaunay(points[np.argsort(points[:, 0])]).simplices
    pairs = np.concatenate([corners[:, [i, j]] for i, j in combinations(range(corners.shape[1]), 2)])
    return np.unique(np.sort(pairs, axis=1), axis=0)


def _refined(radius: float, ranks: int) -> tuple[Edges, Edges]:
    """Return neighbours among blocks of a square; blocks at a circle are quartered until each rank has one block."""
    blocks = [(0.0, 0.0, 1.0)]
    while len(blocks) + 3 <= ranks:
        far = [abs(math.hypot(x + a / 2 - 0.5, y + a / 2 - 0.5) - radius) / a + 0.02 / a for x, y, a in blocks]
        x, y, a = blocks.pop(int(np.argmin(far)))
        blocks += [(x + i * a / 2, y + j * a / 2, a / 2) for i in (0, 1) for j in (0, 1)]
    x, y, a = np.array(sorted(blocks)).T
    side = np.minimum(x + a, (x + a)[:, None]) - np.maximum(x, x[:, None])
    height = np.minimum(y + a, (y + a)[:, None]) - np.maximum(y, y[:, None])
    source, target = np.nonzero(np.triu((side > -1e-9) & (height > -1e-9) & (side + height > 1e-9), 1))
    return source, target
