"""The communication graph of a job: the bytes and messages that each rank sends to each other rank."""

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
    """A communication graph is inconsistent, for example with a rank out of range or a negative volume."""


class Undirected(NamedTuple):
    """A symmetric graph in compressed rows without self-loops, as partitioners and refinement use it.

    Weights are floats, because they only steer the search; `mapping.evaluate` computes exact costs of the result.

    :param offsets: index of each rank's first neighbour in ``targets``, and the end, shape (n + 1,).
    :param targets: neighbours, ascending for each rank, shape (2 m,) for m edges.
    :param weight: weight of each edge, equal in both directions, shape (2 m,).
    """

    offsets: Integers
    targets: Integers
    weight: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CommunicationGraph:
    """Bytes and messages from rank to rank of a job, as a directed graph in compressed rows.

    :param size: number of ranks, n.
    :param offsets: index of each rank's first target in ``targets``, and the end, shape (n + 1,).
    :param targets: receiving ranks, ascending for each sender, shape (edges,); a rank may send to itself at no cost.
    :param volume: bytes of each edge, shape (edges,).
    :param messages: number of messages of each edge, shape (edges,).
    :param dims: extents of the Cartesian grid that the ranks form in row-major order; None if they form none.
    :param periods: whether each dimension wraps around.
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
        """Make a graph from a list of transfers; those with the same sender and receiver are summed.

        :param size: number of ranks.
        :param source: sending rank of each transfer, shape (m,).
        :param target: receiving rank of each transfer, shape (m,).
        :param volume: bytes of each transfer, shape (m,).
        :param messages: number of messages of each transfer, shape (m,); by default 1.
        :raises GraphError: if lengths differ, a rank is out of range, a number is negative or fractional, or two ranks
            exchange 2^63 bytes or more.
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
        """Make a graph from a square matrix of bytes from row to column.

        :param volume: bytes, shape (n, n), as an array or a scipy.sparse matrix.
        :param messages: numbers of messages, shape (n, n); by default 1 for each non-zero volume.
        :raises GraphError: if a matrix is not square, or the two differ in shape.
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
        """Make a graph from a networkx graph on the nodes 0 .. n-1; an undirected edge is sent in both directions.

        An undirected edge of weight w means w bytes in each direction, as in its adjacency matrix. This differs from
        the readers of METIS files and of lists of pairs, for which w is the sum of both directions.

        :param graph: networkx graph, directed or not; parallel edges are summed.
        :param volume: name of the edge attribute with the bytes; 1 for edges without it.
        :param messages: name of the edge attribute with the number of messages; 1 for edges without it.
        :raises GraphError: if the nodes are not 0 .. n-1.
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
        """Make the graph of a stencil on a grid of ranks in row-major order, as ``MPI_Cart_create`` numbers them.

        :param dims: extent of each of the d dimensions.
        :param periods: whether each dimension wraps around; by default none does.
        :param weights: bytes per message: one number; or one per dimension, shape (d,); or one to the lower and one to
            the higher neighbour of each dimension, shape (d, 2). With ``offsets``: one number, or one per offset,
            shape (k,).
        :param offsets: relative coordinates of a rank's receivers, shape (k, d); by default its 2 d nearest neighbours.
        :raises GraphError: if an extent is below 1 or a shape does not fit.
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
        """A hash of the graph's content, 16 bytes."""
        from hashlib import blake2b  # imported late because it loads OpenSSL

        told = blake2b(repr((self.size, self.dims, self.periods)).encode(), digest_size=16)
        for column in (self.offsets, self.targets, self.volume, self.messages):
            told.update(column.tobytes())
        return told.digest()

    @property
    def num_edges(self) -> int:
        """Number of directed pairs that communicate, including self-loops."""
        return len(self.targets)

    def undirected(self, weight: str = "volume") -> Undirected:
        """The symmetric graph without self-loops.

        :param weight: weight of an edge: ``volume``, the bytes in both directions; ``log``, ln(1 + bytes in both
            directions), which gave the best mappings in Subramoni 2013, section 5; ``count``, the messages in both
            directions.
        :raises GraphError: if ``weight`` is unknown.
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
    """Convert values to a vector of int64; raise GraphError if this would change a value."""
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
    """Raise GraphError if the size or an amount is negative, lengths of columns differ, or a rank is out of range."""
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
    """The sum of the values of each group; GraphError if a sum exceeds 64 bits."""
    short = short_sums(group, values, groups)
    if short is not None:
        return short
    sums = exact_sums(group, values, groups)
    if max(sums) > LARGEST:
        raise GraphError(f"graph: expecting less than 2^63 bytes between two ranks, got {max(sums)}")
    return np.array(sums, dtype=np.int64)


def _coordinates(matrix: Any) -> tuple[Integers, Integers, NDArray[Any], int]:
    """The row, column and value of each non-zero entry, and the number of rows."""
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
    """The relative coordinates of a rank's receivers, shape (k, d), and the bytes sent to each, shape (k,)."""
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
