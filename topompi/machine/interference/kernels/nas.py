"""Four NAS parallel benchmarks with the problem sizes of class D: FT, CG, BT and MG.

The patterns are those of the sources of NPB 3.3-MPI; sums of a few bytes over all ranks are left out. The seconds of
computation are derived from Jokanovic 2014, table 5.3: 7.5 seconds (75 s on a machine a tenth as fast) for a number of
iterations of 256 ranks.
"""

from __future__ import annotations

from math import isqrt

import numpy as np
from numpy.typing import NDArray

from ..errors import InterferenceError
from .kernel import Burst, Kernel, Phase
from .transposes import AlltoallKernel

__all__ = ["BT", "CG", "COMPUTE", "FT", "MG"]

Integers = NDArray[np.int64]

REAL, COMPLEX = 8, 16  # bytes
CUT, TASKS = 7.5, 256  # seconds, ranks
COMPUTE = {"ft": CUT / 5, "cg": CUT / 337, "bt": CUT / 22, "mg": CUT / 36}  # seconds per iteration of 256 ranks
POINTS, ROWS, EDGE, CUBE = 2048 * 1024 * 1024, 1_500_000, 408, 1024  # class D of FT, CG, BT and MG


class _Benchmark(Kernel):
    """A kernel with the source's seconds of computation."""

    @property
    def usual_burst(self) -> float:
        """Seconds of computation of each rank in an iteration: those of the source, divided by the ranks."""
        return COMPUTE[self.name] * TASKS / self.ranks


class FT(_Benchmark, AlltoallKernel):
    """FT: a transpose of complex numbers, in which each rank sends the same to every other rank."""

    name = "ft"

    @property
    def usual_size(self) -> int:
        """Bytes that each rank sends to each other rank in class D."""
        return round(COMPLEX * POINTS / self.ranks**2)


class CG(_Benchmark):
    """CG: sums along the rows of a square grid of ranks by recursive doubling, then an exchange with the transpose."""

    name, message = "cg", "bytes of a rank's part of a vector"
    dimensions, stencil, measured = (2,), False, False

    @staticmethod
    def usual_grid(ranks: int) -> tuple[int, ...]:
        """The only grid of a number of ranks; the number is a power of 4."""
        side = _side("cg", ranks)
        if side & (side - 1):
            raise InterferenceError(f"cg: expecting a power of 4 as the number of ranks, got {ranks}")
        return side, side

    @property
    def usual_size(self) -> int:
        """Bytes of a message in class D."""
        return round(REAL * ROWS / self.grid[0])

    def phases(self, nbytes: int) -> tuple[Phase, ...]:
        """Return an exchange per step of the doubling, then the one with the transpose."""
        side, every = self.grid[0], np.arange(self.ranks)
        row, column = np.divmod(every, side)
        steps = [row * side + (column ^ (side >> step)) for step in range(1, side.bit_length())]
        return tuple(_messages([(every, partner)], nbytes) for partner in (*steps, column * side + row))


class BT(_Benchmark):
    """BT: faces of a multi-partition of a cube, then the solver's blocks there and back along each of three directions.

    Each rank has as many cells as the grid of ranks has rows; all of them have the same neighbours.
    """

    name, message = "bt", "bytes of the faces that a rank sends to one neighbour"
    dimensions, stencil, measured = (2,), False, False

    @staticmethod
    def usual_grid(ranks: int) -> tuple[int, ...]:
        """The only grid of a number of ranks; the number is a square."""
        return (_side("bt", ranks),) * 2

    @property
    def usual_size(self) -> int:
        """Bytes of the faces in class D: two layers of five numbers per point, of all cells but the last."""
        side = self.grid[0]
        return round(2 * 5 * (EDGE / side) ** 2 * REAL * (side - 1))

    def phases(self, nbytes: int) -> tuple[Phase, ...]:
        """Return the exchange of all faces, then for each direction a message per cell ahead, and one per cell back.

        A message ahead has the solver's matrices of 5 by 5 and its vectors, one back has the vectors.
        """
        side, every = self.grid[0], np.arange(self.ranks)
        column, row = every % side, every // side
        ahead, behind = (
            [(column + way * across) % side + side * ((row + way * down) % side) for across, down in DIRECTIONS]
            for way in (1, -1)
        )
        vectors = nbytes / (2 * max(side - 1, 1))
        found = [_messages([(every, to) for pair in zip(ahead, behind, strict=True) for to in pair], nbytes)]
        for there, back in zip(ahead, behind, strict=True):
            found += [_messages([(every, there)], round((5 + 1) * vectors))] * (side - 1)
            found += [_messages([(every, back)], round(vectors))] * (side - 1)
        return tuple(found)


DIRECTIONS = ((1, 0), (0, 1), (-1, 1))  # columns and rows to the neighbour ahead


class MG(_Benchmark):
    """MG: a V-cycle on a periodic cube, whose points halve in each direction; ranks are numbered along x first.

    On each level all faces are exchanged once on the way to the coarsest level, and three times on the way back.
    """

    name, message = "mg", "bytes of the largest face"
    dimensions, stencil, measured = (3,), False, False

    @staticmethod
    def usual_grid(ranks: int) -> tuple[int, ...]:
        """The only grid of a number of ranks, with fewest along x; the number is a power of 2."""
        if ranks < 1 or ranks & (ranks - 1):
            raise InterferenceError(f"mg: expecting a power of 2 as the number of ranks, got {ranks}")
        return tuple(1 << (ranks.bit_length() - 1 + more) // 3 for more in (2, 1, 0))

    @property
    def _edges(self) -> list[int]:
        return [max(CUBE // extent, 1) for extent in self.grid]

    @property
    def usual_size(self) -> int:
        """Bytes of the largest face in class D, that of the finest level."""
        return REAL * max(self._faces)

    @property
    def _faces(self) -> list[int]:
        edges = self._edges
        return [edges[axis - 1] * edges[axis - 2] for axis in range(3)]

    def phases(self, nbytes: int) -> tuple[Phase, ...]:
        """Return an exchange per axis, level and pass; a level has a quarter of the bytes of the next finer one."""
        faces, levels = self._faces, min(self._edges).bit_length() - 1
        every, place = np.arange(self.ranks), np.unravel_index(np.arange(self.ranks), self.grid)
        of_level: list[list[Burst]] = []
        for level in range(levels):
            exchanges = []
            for axis, face in enumerate(faces):
                ends = [
                    np.ravel_multi_index([one + way * (at == axis) for at, one in enumerate(place)], self.grid, "wrap")
                    for way in (-1, 1)
                ]
                size = max(round(nbytes * face / max(faces) / 4**level), 1)
                exchanges.append(_messages([(every, end) for end in ends], size))
            of_level.append(exchanges)
        down = [phase for exchanges in of_level for phase in exchanges]
        return tuple(down + [phase for exchanges in of_level[::-1] for phase in exchanges * 3])


def _side(name: str, ranks: int) -> int:
    side = isqrt(max(ranks, 0))
    if side < 1 or side * side != ranks:
        raise InterferenceError(f"{name}: expecting a square number of ranks, got {ranks}")
    return side


def _messages(pairs: list[tuple[Integers, Integers]], nbytes: int) -> Burst:
    """Make messages of one size that are sent at once, without messages to oneself.

    :param pairs: senders and receivers; the messages of a pair have its number as their tag.
    :param nbytes: bytes of each message.
    """
    source, target = (np.concatenate([pair[end] for pair in pairs]) for end in (0, 1))
    tag = np.repeat(np.arange(len(pairs)), [len(pair[0]) for pair in pairs])
    apart = source != target
    count = int(apart.sum())
    return Burst(source[apart], target[apart], np.full(count, nbytes), tag[apart])
