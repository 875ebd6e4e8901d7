"""The graph of a neighbourhood collective: which rank sends how many units to which other rank."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Edges", "Neighbourhood"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges of a graph of ranks, as columns of shape (edges,).

    :param source: sending rank.
    :param destination: receiving rank.
    :param number: index of the edge among the source's outgoing edges, which is that of its block in the input.
    :param place: index of the edge among the destination's incoming edges, which is that of its block in the output; -1
        if it is unknown.
    :param size: units (bytes, or blocks of a schedule) that the edge carries.
    """

    source: Integers
    destination: Integers
    number: Integers
    place: Integers
    size: Integers

    def __len__(self) -> int:
        return len(self.source)

    def chosen(self, which: NDArray[np.integer] | NDArray[np.bool_]) -> Edges:
        """Some of the edges: those at given indices, or those for which a mask is True."""
        return Edges(*(getattr(self, column.name)[which] for column in fields(self)))


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """A neighbourhood collective of all ranks, as data.

    :param ranks: number of ranks, p.
    :param edges: all edges, in any order.
    :param shares: True for an allgather, in which a rank sends the same block along all of its edges; False for an
        alltoall, in which it sends another block along each.
    :raises ValueError: if an edge's rank does not exist, if edges of a rank are not numbered from 0, or if an
        allgather's blocks of one rank differ in size.
    """

    ranks: int
    edges: Edges
    shares: bool = False

    def __post_init__(self) -> None:
        edges = self.edges
        ends = np.concatenate((edges.source, edges.destination))
        if len(ends) and not 0 <= ends.min() <= ends.max() < self.ranks:
            raise ValueError(f"expecting ranks in range({self.ranks}), got {ends.min()} to {ends.max()}")
        if len(edges) and edges.size.min() < 0:
            raise ValueError(f"expecting sizes of at least 0, got {edges.size.min()}")
        for what, rank, index in (
            ("outgoing", edges.source, edges.number),
            ("incoming", edges.destination, edges.place),
        ):
            order = np.lexsort((index, rank))
            begin = np.searchsorted(rank[order], np.arange(self.ranks))
            if (index[order] != np.arange(len(order)) - begin[rank[order]]).any():
                raise ValueError(f"expecting {what} edges of each rank that are numbered from 0")
        if self.shares and (edges.size != self.block_of_rank()[edges.source]).any():
            raise ValueError("expecting one size of all edges out of a rank of an allgather")

    @classmethod
    def from_edges(
        cls, ranks: int, source: ArrayLike, destination: ArrayLike, size: ArrayLike, *, shares: bool = False
    ) -> Neighbourhood:
        """The neighbourhood collective of a list of edges, numbered at both ends in the order of this list.

        :param ranks: number of ranks.
        :param source: sending rank of each edge, shape (edges,).
        :param destination: receiving rank of each edge, shape (edges,).
        :param size: units of each edge, shape (edges,).
        :param shares: True for an allgather.
        :raises ValueError: if a rank does not exist, or an allgather's blocks of one rank differ in size.
        """
        out, into, units = (np.asarray(column, dtype=np.int64) for column in (source, destination, size))
        return cls(ranks, Edges(out, into, _numbered(out), _numbered(into), units), shares)

    def shared(self, size: ArrayLike = 1) -> Neighbourhood:
        """The allgather along the same edges.

        :param size: units of each rank's block, shape (ranks,); or one number.
        """
        block = np.broadcast_to(np.asarray(size, dtype=np.int64), self.ranks)
        edges = self.edges
        sized = Edges(edges.source, edges.destination, edges.number, edges.place, block[edges.source])
        return Neighbourhood(self.ranks, sized, True)

    def block_of_rank(self) -> Integers:
        """Units of the largest block that each rank sends, shape (ranks,)."""
        block = np.zeros(self.ranks, dtype=np.int64)
        np.maximum.at(block, self.edges.source, self.edges.size)
        return block

    def inputs(self) -> tuple[Integers, Integers]:
        """Units of each rank's input, shape (ranks,), and the first unit of each edge in it, shape (edges,)."""
        if self.shares:
            return self.block_of_rank(), np.zeros(len(self.edges), dtype=np.int64)
        return self._side_by_side(self.edges.source, self.edges.number)

    def outputs(self) -> tuple[Integers, Integers]:
        """Units of each rank's output, shape (ranks,), and the first unit of each edge in it, shape (edges,)."""
        return self._side_by_side(self.edges.destination, self.edges.place)

    def _side_by_side(self, rank: Integers, index: Integers) -> tuple[Integers, Integers]:
        size = self.edges.size
        total = np.bincount(rank, weights=size, minlength=self.ranks).astype(np.int64)
        order = np.lexsort((index, rank))
        begin = np.empty_like(size)
        begin[order] = np.cumsum(size[order]) - size[order]
        return total, begin - (np.cumsum(total) - total)[rank]


def _numbered(rank: Integers) -> Integers:
    """The index of each row among those of the same rank, shape (rows,)."""
    order = np.argsort(rank, kind="stable")
    number = np.empty(len(rank), dtype=np.int64)
    number[order] = np.arange(len(rank)) - np.searchsorted(rank[order], rank[order])
    return number
