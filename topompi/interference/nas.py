"""Byte matrices of one iteration of four NAS parallel benchmarks, from their grids of ranks and problem sizes.

The patterns are those of the sources of NPB 3.3-MPI; sums of a few bytes over all ranks are left out. The default sizes
are class D. The compute times are derived from Jokanovic 2014, table 5.3: 7.5 seconds (75 s on a machine a tenth as
fast) for a number of iterations of 256 ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from ..mapping.graph import CommunicationGraph
from .errors import InterferenceError

__all__ = ["COMPUTE", "KERNELS", "bt", "cg", "ft", "mg"]

Integers = NDArray[np.int64]

REAL, COMPLEX = 8, 16  # bytes
CUT = 7.5  # seconds
COMPUTE = {"ft": CUT / 5, "cg": CUT / 337, "bt": CUT / 22, "mg": CUT / 36}  # seconds per iteration of 256 ranks


def ft(ranks: int, points: int = 2048 * 1024 * 1024) -> CommunicationGraph:
    """FT: a transpose of complex numbers, in which each rank sends the same to every other rank.

    :param ranks: number of ranks.
    :param points: number of points of the grid of the transform.
    """
    every = np.arange(ranks)
    source, target = np.repeat(every, ranks), np.tile(every, ranks)
    return _graph("ft", ranks, [(source, target, COMPLEX * points / ranks**2)])


def cg(ranks: int, rows: int = 1_500_000) -> CommunicationGraph:
    """CG: sums along the rows of a square grid of ranks by recursive doubling, then an exchange with the transpose.

    :param ranks: number of ranks, a power of 4.
    :param rows: number of rows of the matrix.
    """
    side = _side("cg", ranks)
    if side & (side - 1):
        raise InterferenceError(f"cg: expecting a power of 4 as the number of ranks, got {ranks}")
    every, nbytes = np.arange(ranks), REAL * rows / side
    row, column = np.divmod(every, side)
    steps = [row * side + (column ^ (side >> step)) for step in range(1, side.bit_length())]
    return _graph("cg", ranks, [(every, target, nbytes) for target in (*steps, column * side + row)])


def bt(ranks: int, points: int = 408) -> CommunicationGraph:
    """BT: faces of a multi-partition of a cube, then the solver's blocks there and back along each of three directions.

    Each rank has as many cells as the grid of ranks has rows; all of them have the same neighbours.

    :param ranks: number of ranks, a square.
    :param points: number of points along an edge of the cube.
    """
    side = _side("bt", ranks)
    face = (points / side) ** 2 * REAL * (side - 1)  # bytes of a number per point, for all cells but the last
    copied, there, back = 2 * 5 * face, (5 * 5 + 5) * face, 5 * face
    column, row = np.arange(ranks) % side, np.arange(ranks) // side
    parts = []
    for across, down in ((1, 0), (0, 1), (-1, 1)):
        ahead = (column + across) % side + side * ((row + down) % side)
        behind = (column - across) % side + side * ((row - down) % side)
        parts += [(np.arange(ranks), ahead, copied + there), (np.arange(ranks), behind, copied + back)]
    return _graph("bt", ranks, parts)


def mg(ranks: int, points: int = 1024, exchanges: int = 4) -> CommunicationGraph:
    """MG: faces of a periodic cube, exchanged on every level of a V-cycle, whose points halve in each direction.

    :param ranks: number of ranks, a power of 2.
    :param points: number of points along an edge of the cube.
    :param exchanges: number of exchanges of all faces on each level.
    """
    if ranks < 1 or ranks & (ranks - 1):
        raise InterferenceError(f"mg: expecting a power of 2 as the number of ranks, got {ranks}")
    bits = ranks.bit_length() - 1
    grid = [
        1 << (bits + more) // 3 for more in (2, 1, 0)
    ]  # the benchmark numbers ranks along x first, which has fewest
    edges = [points // extent for extent in grid]
    weights = [0] * 3
    while min(edges) >= 2:
        for axis in range(3):
            weights[axis] += exchanges * REAL * edges[axis - 1] * edges[axis - 2]
        edges = [edge // 2 for edge in edges]
    return CommunicationGraph.cartesian(grid, [True] * 3, weights)


KERNELS: dict[str, Callable[[int], CommunicationGraph]] = {"ft": ft, "cg": cg, "bt": bt, "mg": mg}


def _side(name: str, ranks: int) -> int:
    side = isqrt(max(ranks, 0))
    if side < 1 or side * side != ranks:
        raise InterferenceError(f"{name}: expecting a square number of ranks, got {ranks}")
    return side


def _graph(name: str, ranks: int, parts: Sequence[tuple[Integers, Integers, float]]) -> CommunicationGraph:
    """Make a graph from parts, which have a sender, a receiver and one number of bytes, without messages to oneself."""
    if ranks < 1:
        raise InterferenceError(f"{name}: expecting at least 1 rank, got {ranks}")
    source, target = (np.concatenate([part[end] for part in parts]) for end in (0, 1))
    volume = np.concatenate([np.full(len(part[0]), round(part[2])) for part in parts])
    apart = source != target
    return CommunicationGraph.from_arrays(ranks, source[apart], target[apart], volume[apart])
