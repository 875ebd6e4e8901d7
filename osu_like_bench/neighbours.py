"""Neighbourhood collectives, on a periodic grid of two dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from .operations import Contents, Operation, Typed, VectorCall
from .patterns import pattern

__all__ = ["NEIGHBOURS"]

DIMENSIONS = 2


class NeighbourCall(Operation):
    """A neighbourhood collective: each rank has two neighbours per dimension, which may be the same rank."""

    @classmethod
    def rows(cls, kind: str, ranks: int) -> int:
        return 2 * DIMENSIONS if kind == "neighbours" else super().rows(kind, ranks)

    @classmethod
    @contextmanager
    def seated(cls, sides: Mapping[str, MPI.Intracomm]) -> Iterator[tuple[Mapping[str, Any], list[str]]]:
        ranks = next(iter(sides.values())).Get_size()
        dims = MPI.Compute_dims(ranks, DIMENSIONS)
        grids = {side: comm.Create_cart(dims, [True] * DIMENSIONS, reorder=False) for side, comm in sides.items()}
        yield grids, [f"Neighbours: up and down on a periodic grid of {'x'.join(map(str, dims))} ranks"]
        for grid in grids.values():
            grid.Free()

    @property
    def neighbours(self) -> NDArray[np.int64]:
        """Neighbours of this rank: for each dimension the lower one, then the upper one, shape (neighbours,)."""
        dims = np.array(MPI.Compute_dims(self.ranks, DIMENSIONS))
        here = np.array(np.unravel_index(self.rank, dims))
        steps = np.repeat(np.eye(DIMENSIONS, dtype=np.int64), 2, axis=0) * np.tile([-1, 1], DIMENSIONS)[:, None]
        return np.array(np.ravel_multi_index(tuple(((here + steps) % dims).T), dims), dtype=np.int64)


class NeighborAllgather(NeighbourCall):
    title, method = "Neighborhood Allgather Latency", "Neighbor_allgather"
    blocks = ("one", "neighbours")

    def sent(self, root: int) -> Contents:
        return pattern(self.rank, 0, self.items)

    def expected(self, root: int) -> Contents:
        return pattern(self.neighbours, 0, self.items)


class NeighborAlltoall(NeighbourCall):
    """A neighbourhood alltoall.

    A block's data depend only on its two ranks, not on the direction, because the neighbours of a rank in both
    directions may be the same rank.
    """

    title, method = "Neighborhood Alltoall Latency", "Neighbor_alltoall"
    blocks = ("neighbours", "neighbours")

    def sent(self, root: int) -> Contents:
        return pattern(self.rank, self.neighbours, self.items)

    def expected(self, root: int) -> Contents:
        return pattern(self.neighbours, self.rank, self.items)


class NeighborAllgatherv(VectorCall, NeighborAllgather):
    title, method = "Neighborhood Allgatherv Latency", "Neighbor_allgatherv"


class NeighborAlltoallv(VectorCall, NeighborAlltoall):
    title, method = "Neighborhood Alltoallv Latency", "Neighbor_alltoallv"


class NeighborAlltoallw(Typed, NeighborAlltoall):
    title, method = "Neighborhood Alltoallw Latency", "Neighbor_alltoallw"


NEIGHBOURS: dict[str, type[Operation]] = {
    kind.method.lower(): kind
    for kind in (NeighborAllgather, NeighborAllgatherv, NeighborAlltoall, NeighborAlltoallv, NeighborAlltoallw)
}
