"""The memory of a neighbourhood collective's arguments, and the block of each edge in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from ....schedules.sparse import exchange
from ..areas import Areas, Call, Span
from ..buffers import Block, Blocks, ShortMemoryError, block, blocks, vector
from ..operands import typed
from ..specs import NeighbourSpec, Varying

__all__ = ["Side", "read"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Side:
    """The send or the receive memory of a call.

    :param area: the memory in units of one byte: the user's, or memory of topompi for data with gaps.
    :param blocks: first byte and size in bytes of the block of each edge, by number of the edge.
    :param before: calls that copy the user's data with gaps to the memory.
    :param after: calls that copy received data to the user's memory with gaps.
    """

    area: Span
    blocks: exchange.EdgeBlocks
    before: list[Call] = field(default_factory=list)
    after: list[Call] = field(default_factory=list)

    @classmethod
    def empty(cls, degree: int) -> Side:
        """The memory of blocks without data."""
        return _packed(np.zeros(degree, dtype=np.int64))

    @property
    def by_address(self) -> bool:
        """Whether the memory is the user's own, so that another call at the same address needs the same plan."""
        return not self.before and not self.after


def read(spec: NeighbourSpec, message: object, exists: NDArray[np.bool_], alone: MPI.Intracomm, *, sends: bool) -> Side:
    """The memory of one message of a call.

    :param spec: the description of the call.
    :param message: the message in mpi4py's form.
    :param exists: for each edge of the rank, in its order, whether it leads to a rank, and not to ``MPI.PROC_NULL``.
    :param alone: a communicator of this rank only, which copies data with gaps.
    :param sends: True for the send message, False for the receive message.
    :raises ShortMemoryError: if the memory is too short.
    :raises ValueError, TypeError, BufferError: if the message is malformed; the same errors as mpi4py's.
    """
    degree = len(exists)
    if spec.shares and sends:
        return _one_block(block(message, readonly=True), degree, alone)
    if not degree:
        return Side.empty(0)
    if spec.counts is Varying.TYPED:
        return _of_pieces(typed(message, degree, sends), exists, alone, sends=sends)
    reads = blocks if spec.counts is Varying.EQUAL else vector
    return _of_blocks(reads(message, degree, readonly=sends), exists, alone, sends=sends)


def _one_block(own: Block, degree: int, alone: MPI.Intracomm) -> Side:
    begin = np.zeros(degree, dtype=np.int64)
    size = np.full(degree, own.size)
    if own.dense:
        return Side(Span(own.memory(), 1, MPI.BYTE, 1, True), exchange.EdgeBlocks(begin, size))
    side = _packed(np.array([own.size]))
    return Side(side.area, exchange.EdgeBlocks(begin, size), [(own.copy_to, (side.area.view(), alone))])


def _of_blocks(own: Blocks, exists: NDArray[np.bool_], alone: MPI.Intracomm, *, sends: bool) -> Side:
    size = np.where(exists, own.sizes, 0)
    begin = own.displs * own.datatype.extent
    memory = own.buffer
    if isinstance(memory, MPI.buffer) and own.dense and (begin[size > 0] >= 0).all():
        end = int((begin + size)[size > 0].max(initial=0))
        if end > memory.nbytes:
            raise ShortMemoryError(f"message: expecting a buffer of {end} bytes, got {memory.nbytes}")
        return Side(Span(memory, 1, MPI.BYTE, 1, True), exchange.EdgeBlocks(begin, size))
    side, real = _packed(size), np.flatnonzero(size)
    if not len(real):
        return side
    copy = partial(own.pack if sends else own.unpack, side.area.view(), real, alone)
    return Side(side.area, side.blocks, [(copy, ())] * sends, [(copy, ())] * (not sends))


def _of_pieces(own: Areas, exists: NDArray[np.bool_], alone: MPI.Intracomm, *, sends: bool) -> Side:
    pieces = [piece if here else None for piece, here in zip(own.messages, exists.tolist(), strict=True)]
    side = _packed(np.array([0 if one is None else one[1] * one[2].Get_size() for one in pieces], dtype=np.int64))
    calls: list[Call] = []
    for piece, begin, size in zip(pieces, *(column.tolist() for column in side.blocks), strict=True):
        if size:
            inner = [side.area.memory[begin : begin + size], size, MPI.PACKED]
            calls.append((alone.Sendrecv, (piece, 0, 0, inner, 0, 0) if sends else (inner, 0, 0, piece, 0, 0)))
    return Side(side.area, side.blocks, calls if sends else [], [] if sends else calls)


def _packed(size: Integers) -> Side:
    """Memory of topompi for blocks side by side."""
    memory = np.empty(int(size.sum()), dtype=np.uint8)
    return Side(Span.of_bytes(memory, 1), exchange.EdgeBlocks(np.cumsum(size) - size, size))
