"""Who sends how much to whom: the communication graph of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import TopompiError
from .exact import LARGEST, exact_sums, short_sums

__all__ = ["CommunicationGraph", "GraphError", "Undirected"]

Integers = NDArray[np.int64]


class GraphError(TopompiError, ValueError):
    """A communication graph contradicts itself: a rank out of range, a negative volume."""


class Undirected(NamedTuple):
    """A symmetric CSR graph without self-loops, as partitioners and refinement want it.

    Weights are floats: they steer the search, what it finds is scored exactly by `mapping.evaluate`.

    :param offsets: where each rank's neighbours start, shape (n + 1,).
    :param targets: neighbours, ascending within a rank, shape (2 m,).
    :param weight: of the edge, the same in both directions, shape (2 m,).
    """

    offsets: Integers
    targets: Integers
    weight: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CommunicationGraph:
    """Directed volumes and message counts between the ranks of a job, in compressed rows.

    :param size: number of ranks, n.
    :param offsets: where each rank's targets start, shape (n + 1,).
    :param targets: ranks sent to, ascending within a row, shape (edges,); a rank itself is allowed and costs nothing.
    :param volume: bytes sent, shape (edges,).
    :param messages: messages sent, shape (edges,).
    :param dims: extents of the Cartesian grid that the ranks form in row-major order, None where there is none.
    :param periods: which dimensions wrap around.
    """

    size: int
    offsets: Integers
    targets: Integers
    volume: Integers
    messages: Integers
    dims: tuple[int, ...] | None = None
    periods: tuple[bool, ...] | None = None

    def __repr__(self) -> str:
        return f"CommunicationGraph({self.size:,} ranks, {len(self.targets):,} pairs, {int(self.volume.sum()):,} bytes)"

    @classmethod
    def from_arrays(
        cls, size: int, source: ArrayLike, target: ArrayLike, volume: ArrayLike, messages: ArrayLike | None = None
    ) -> CommunicationGraph:
        """The graph of transfers source -> target; those that repeat a pair are summed.

        :param size: number of ranks.
        :param source, target: ranks, shape (m,); ``volume``: bytes; ``messages``: counts, by default 1 each.
        :raises GraphError: on lengths that differ, ranks out of range, negative or fractional numbers, or more than
            2^63 bytes between two ranks.
        """
        columns = [_whole(name, one) for name, one in (("source", source), ("target", target), ("volume", volume))]
        columns.append(_whole("messages", np.ones_like(columns[0]) if messages is None else messages))
        _check(size, columns)
        key, inverse = np.unique(columns[0] * size + columns[1], return_inverse=True)
        sums = [_summed(inverse, column, len(key)) for column in columns[2:]]
        offsets = np.searchsorted(key, np.arange(size + 1) * size)
        return cls(size, offsets.astype(np.int64), key % max(size, 1), sums[0], sums[1])

    @classmethod
    def from_matrix(cls, volume: Any, messages: Any = None) -> CommunicationGraph:
        """The graph of a square matrix of bytes, row sends to column: anything numpy reads, or a scipy.sparse matrix.

        :param messages: a matrix of the same shape; by default 1 where there is volume.
        :raises GraphError: where a matrix is not square, or the two differ in shape.
        """
        rows, columns, values, size = _coordinates(volume)
        if messages is None:
            return cls.from_arrays(size, rows, columns, values)
        also_rows, also_columns, counts, other = _coordinates(messages)
        if other != size:
            raise GraphError(f"graph: expecting messages of {size} ranks as the volume has, got {other}")
        nothing = np.zeros(len(rows) + len(also_rows), dtype=np.int64)
        both, count = nothing.copy(), nothing
        both[: len(rows)], count[len(rows) :] = values, counts
        return cls.from_arrays(size, np.r_[rows, also_rows], np.r_[columns, also_columns], both, count)

    @classmethod
    def from_networkx(cls, graph: Any, volume: str = "weight", messages: str = "messages") -> CommunicationGraph:
        """The graph of a networkx graph on the nodes 0 .. n-1; an edge of an undirected one is sent both ways.

        That is its adjacency matrix; METIS files and lists of pairs weigh what both directions sum up to.

        :param graph: a networkx graph, directed or not; parallel edges are summed.
        :param volume, messages: names of the edge attributes; 1 where an edge lacks one.
        :raises GraphError: where the nodes are not 0 .. n-1.
        """
        size = graph.number_of_nodes()
        if strange := set(graph) - set(range(size)):
            wanted = f"nodes 0 .. {size - 1} (networkx.convert_node_labels_to_integers)"
            raise GraphError(f"graph: expecting {wanted}, got {min(map(repr, strange))}")
        rows = [(u, v, d.get(volume, 1), d.get(messages, 1)) for u, v, d in graph.edges(data=True)]
        if not graph.is_directed():
            rows += [(v, u, w, m) for u, v, w, m in rows if u != v]
        columns = [np.array(column) for column in zip(*rows, strict=True)] or [np.zeros(0, dtype=np.int64)] * 4
        return cls.from_arrays(size, *columns)

    @classmethod
    def cartesian(
        cls,
        dims: Sequence[int],
        periods: Sequence[bool] | None = None,
        weights: ArrayLike = 1,
        offsets: ArrayLike | None = None,
    ) -> CommunicationGraph:
        """The graph of a stencil on a grid of ranks in row-major order, as ``MPI_Cart_create`` numbers them.

        :param dims: extent of each dimension, d of them.
        :param periods: which dimensions wrap around; by default none.
        :param weights: bytes: one number, one a dimension (d,), or one a direction (d, 2): down, up; with ``offsets``
            one number, or one an offset (k,).
        :param offsets: whom a rank sends to, relative, shape (k, d); by default its 2 d nearest neighbours.
        :raises GraphError: on extents below 1 or shapes that do not fit.
        """
        extents, wrap = _grid(dims, periods)
        steps, volume = _stencil(len(extents), weights, offsets)
        size = int(np.prod(extents, dtype=np.int64))
        place = np.stack(np.unravel_index(np.arange(size), extents), axis=1)
        reached = place[:, None, :] + steps[None, :, :]
        valid = (((reached >= 0) & (reached < np.array(extents))) | np.array(wrap, dtype=bool)).all(axis=2)
        source, step = np.nonzero(valid)
        target = np.ravel_multi_index(tuple(reached[source, step].T), extents, mode="wrap")
        graph = cls.from_arrays(size, source, target, volume[step])
        return cls(size, graph.offsets, graph.targets, graph.volume, graph.messages, extents, wrap)

    @cached_property
    def sources(self) -> Integers:
        """The sending rank of each edge, shape (edges,)."""
        return np.repeat(np.arange(self.size), np.diff(self.offsets))

    @cached_property
    def digest(self) -> bytes:
        """16 bytes that tell the graph from others."""
        from hashlib import blake2b  # OpenSSL with it: where it is needed

        told = blake2b(repr((self.size, self.dims, self.periods)).encode(), digest_size=16)
        for column in (self.offsets, self.targets, self.volume, self.messages):
            told.update(column.tobytes())
        return told.digest()

    @property
    def num_edges(self) -> int:
        """Number of directed pairs that communicate, self-loops included."""
        return len(self.targets)

    def undirected(self, weight: str = "volume") -> Undirected:
        """The symmetric graph without self-loops.

        :param weight: of an edge: ``volume``, the bytes both ways; ``log``, ln(1 + bytes both ways), the best in
            Subramoni 2013, section 5; ``count``, the messages both ways.
        :raises GraphError: for another word.
        Cost: a sort of the edges.
        """
        if weight not in ("volume", "log", "count"):
            raise GraphError(f"graph: expecting weight volume, log or count, got {weight!r}")
        value = (self.messages if weight == "count" else self.volume).astype(np.float64)
        proper = (self.sources != self.targets) & (value > 0)
        source, target, value = self.sources[proper], self.targets[proper], value[proper]
        key = np.r_[source * self.size + target, target * self.size + source]
        key, inverse = np.unique(key, return_inverse=True)
        total: NDArray[np.float64] = np.bincount(inverse, np.r_[value, value], len(key)).astype(np.float64)
        offsets = np.searchsorted(key, np.arange(self.size + 1) * self.size)
        return Undirected(
            offsets.astype(np.int64), key % max(self.size, 1), np.log1p(total) if weight == "log" else total
        )


def _whole(name: str, values: ArrayLike) -> Integers:
    """The values as a vector of int64; raises GraphError where that would change or wrap them."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise GraphError(f"graph: expecting {name} of one dimension, got shape {array.shape}")
    if array.dtype.kind not in "iub" and array.size:
        listed = array.astype(np.float64)
        if not (np.isfinite(listed).all() and (listed == np.floor(listed)).all()):
            raise GraphError(f"graph: expecting whole numbers as {name}, got {listed[listed != np.floor(listed)][:1]}")
    if array.size and max(array.max(), -array.min()) > LARGEST:
        raise GraphError(f"graph: expecting {name} below 2^63, got {max(array.max(), -array.min())}")
    return array.astype(np.int64)


def _check(size: int, columns: Sequence[Integers]) -> None:
    """Raise GraphError for a negative size or amount, columns of several lengths, or a rank out of range."""
    if size < 0:
        raise GraphError(f"graph: expecting a size of at least 0, got {size}")
    if len({len(column) for column in columns}) > 1:
        raise GraphError(f"graph: expecting columns of one length, got {[len(column) for column in columns]}")
    for name, ranks in zip(("source", "target"), columns, strict=False):
        wrong = ranks[(ranks < 0) | (ranks >= size)]
        if len(wrong):
            raise GraphError(f"graph: expecting a {name} in range({size}), got {wrong[0]}")
    for name, amounts in zip(("volume", "messages"), columns[2:], strict=True):
        if len(amounts) and amounts.min() < 0:
            raise GraphError(f"graph: expecting a {name} of at least 0, got {amounts.min()}")


def _summed(group: Integers, values: Integers, groups: int) -> Integers:
    """The sum of the values of each group; GraphError where one is no number of 64 bits."""
    short = short_sums(group, values, groups)
    if short is not None:
        return short
    sums = exact_sums(group, values, groups)
    if max(sums) > LARGEST:
        raise GraphError(f"graph: expecting less than 2^63 bytes between two ranks, got {max(sums)}")
    return np.array(sums, dtype=np.int64)


def _coordinates(matrix: Any) -> tuple[Integers, Integers, NDArray[Any], int]:
    """Row, column and value of each entry that is not zero, and the number of rows."""
    if not hasattr(matrix, "tocoo"):
        matrix = np.asarray(matrix)
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise GraphError(f"graph: expecting a square matrix, got shape {matrix.shape}")
    if isinstance(matrix, np.ndarray):
        rows, columns = np.nonzero(matrix)
        return rows.astype(np.int64), columns.astype(np.int64), matrix[rows, columns], len(matrix)
    sparse = matrix.tocoo()
    return sparse.row.astype(np.int64), sparse.col.astype(np.int64), sparse.data, int(matrix.shape[0])


def _grid(dims: Sequence[int], periods: Sequence[bool] | None) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    extents = tuple(int(extent) for extent in dims)
    wrap = tuple(bool(one) for one in (periods if periods is not None else [False] * len(extents)))
    if not extents or min(extents) < 1:
        raise GraphError(f"graph: expecting extents of at least 1, got {list(extents)}")
    if len(wrap) != len(extents):
        raise GraphError(f"graph: expecting {len(extents)} periods, got {len(wrap)}")
    return extents, wrap


def _stencil(dimensions: int, weights: ArrayLike, offsets: ArrayLike | None) -> tuple[Integers, Integers]:
    """Offsets and the bytes sent along each, shapes (k, d) and (k,)."""
    unit = np.eye(dimensions, dtype=np.int64)
    steps = np.stack([-unit, unit], axis=1).reshape(-1, dimensions) if offsets is None else np.asarray(offsets)
    if steps.ndim != 2 or steps.shape[1] != dimensions or steps.dtype.kind not in "iu":
        raise GraphError(f"graph: expecting whole offsets of shape (k, {dimensions}), got shape {steps.shape}")
    given = np.asarray(weights)
    if offsets is None and given.shape == (dimensions,):
        given = np.repeat(given, 2)
    if given.shape not in ((), (len(steps),), (dimensions, 2) if offsets is None else ()):
        raise GraphError(f"graph: expecting 1, {dimensions} or {dimensions} x 2 weights, got shape {given.shape}")
    return steps.astype(np.int64), _whole("weights", np.broadcast_to(given.reshape(-1), len(steps)))
