"""The operands of a collective, read from its arguments: buffers as units of memory, and sizes known to all ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from .areas import Areas
from .buffers import (
    LARGEST_COUNT,
    Block,
    Blocks,
    DeviceMemoryError,
    Specification,
    address_of,
    block,
    integers,
    is_in_place,
    message_at,
    on_device,
    vector,
    whole,
)
from .groups import Groups
from .specs import CallSpec, Form, Varying

__all__ = ["MismatchError", "Operands", "Side", "extent_of", "read", "typed"]

Integers = NDArray[np.int64]
Side = Block | Blocks | Areas | None


class MismatchError(ValueError):
    """A rank's send buffer and receive buffer have different sizes.

    :ivar code: the MPI error class for this case.
    """

    def __init__(self, code: int) -> None:
        super().__init__("expecting as many bytes to receive as to send")
        self.code = code


@dataclass(frozen=True, eq=False, slots=True)
class Operands:
    """The buffers and sizes of a call, counted in units.

    Units have the same number of bytes each (for example one entry of a datatype), or they are pieces: blocks of any
    size and datatype.

    :param extent: bytes of a unit; 0 if units are pieces.
    :param input: this rank's input buffer; None if there is none, or if the input lies in the output buffer.
    :param output: this rank's output buffer; None if there is none, or if the output lies in the input buffer.
    :param root: the root; None in a call without one.
    :param shift: unit of the output at which the input begins, if the two share memory; else None.
    :param shared: number of units that the input and the output share.
    :param length: units of the vector that the collective divides into blocks; None if it divides no vector.
    :param counts: number of each rank's blocks (of ``scale`` units each), shape (ranks,), in a call with uneven blocks
        whose counts all ranks know; else None.
    :param op: the operation of a reduction, whose units are entries of a datatype; None in other calls.
    :param scale: number of units in a block, if the collective does not divide a vector.
    """

    extent: int
    input: Side
    output: Side
    root: int | None = None
    shift: int | None = None
    shared: int = 0
    length: int | None = None
    counts: Integers | None = None
    op: MPI.Op | None = None
    scale: int = 1

    @property
    def in_bytes(self) -> Operands:
        """The operands in units of one byte, so that blocks can be cut anywhere; unchanged if the call reduces data."""
        if self.op is not None or self.length is not None or self.extent <= 1:
            return self
        shift = None if self.shift is None else self.shift * self.extent
        return replace(self, extent=1, shift=shift, shared=self.shared * self.extent, scale=self.extent)

    def with_counts(self, ranks: int) -> Operands:
        """The operands in the units of `in_bytes` with a count of units for each rank, so that shares can be divided.

        They are unchanged if the call divides a vector, or if units have no bytes.

        :param ranks: number of ranks.
        """
        if self.length is not None or not self.extent:
            return self
        found = self.in_bytes
        counts = np.ones(ranks, dtype=np.int64) if found.counts is None else found.counts
        return replace(found, counts=counts * found.scale, scale=1)

    @property
    def empty(self) -> bool:
        """Whether all ranks know that the call moves no data."""
        if self.length is not None or self.counts is not None:
            return self.length == 0 or (self.counts is not None and not self.counts.any())
        return self.extent == 0 and not any(isinstance(side, Areas) for side in (self.input, self.output))

    @property
    def by_address(self) -> bool:
        """Whether a plan bound to these operands depends only on their addresses, which can then be its cache key."""
        dense = all(not isinstance(side, Blocks) and (side is None or side.dense) for side in (self.input, self.output))
        return dense and (self.op is None or self.op.is_predefined)


def _barrier(groups: Groups) -> Operands:
    return Operands(1, None, None)  # no buffers, but units of 1 byte, because the call has (empty) messages


def _bcast(groups: Groups, message: object, root: int) -> Operands | None:
    own = block(message, readonly=groups.rank == root)
    if own.size > LARGEST_COUNT:
        return None
    if groups.rank == root:
        return Operands(1, own, None, root, 0, own.size, own.size)
    return Operands(1, None, own, root, None, own.size, own.size)


def _gather(groups: Groups, sendbuf: object, recvbuf: object, root: int) -> Operands | None:
    if groups.rank != root:
        own = block(sendbuf, readonly=True)
        return _unless_large(groups, Operands(own.size, own, None, root))
    received = whole(recvbuf, groups.size, readonly=False)
    size = received.size // groups.size
    if is_in_place(sendbuf):
        return _unless_large(groups, Operands(size, None, received, root, root, 1))
    return _unless_large(groups, Operands(size, _fitting(block(sendbuf, readonly=True), size), received, root))


def _scatter(groups: Groups, sendbuf: object, recvbuf: object, root: int) -> Operands | None:
    if groups.rank != root:
        own = block(recvbuf, readonly=False)
        return _unless_large(groups, Operands(own.size, None, own, root))
    sent = whole(sendbuf, groups.size, readonly=True)
    size = sent.size // groups.size
    if is_in_place(recvbuf):
        return _unless_large(groups, Operands(size, sent, None, root, -root, 1))
    return _unless_large(groups, Operands(size, sent, _fitting(block(recvbuf, readonly=False), size), root))


def _allgather(groups: Groups, sendbuf: object, recvbuf: object) -> Operands | None:
    received = whole(recvbuf, groups.size, readonly=False)
    size = received.size // groups.size
    if is_in_place(sendbuf):
        return _unless_large(groups, Operands(size, None, received, shift=groups.rank, shared=1))
    return _unless_large(groups, Operands(size, _fitting(block(sendbuf, readonly=True), size), received))


def _alltoall(groups: Groups, sendbuf: object, recvbuf: object) -> Operands | None:
    received = whole(recvbuf, groups.size, readonly=False)
    size = received.size // groups.size
    if is_in_place(sendbuf):
        return _unless_large(groups, Operands(size, None, received, shift=0, shared=groups.size))
    sent = _fitting(whole(sendbuf, groups.size, readonly=True), received.size)
    return _unless_large(groups, Operands(size, sent, received))


def _allgatherv(groups: Groups, sendbuf: object, recvbuf: object) -> Operands | None:
    received = vector(recvbuf, groups.size, readonly=False)
    sizes = received.sizes
    unit = gcd(*sizes.tolist()) or 1
    if sizes.sum() > LARGEST_COUNT:
        return None
    counts = sizes // unit
    output = _side_by_side(received)
    if is_in_place(sendbuf):
        before, mine = int(counts[: groups.rank].sum()), int(counts[groups.rank])
        return Operands(unit, None, output, shift=before, shared=mine, counts=counts)
    own = _fitting(block(sendbuf, readonly=True), int(sizes[groups.rank]))
    return Operands(unit, own, output, counts=counts)


def _side_by_side(blocks: Blocks) -> Block | Blocks:
    if blocks.dense and blocks.side_by_side:
        return Block(blocks.buffer, blocks.datatype, int(blocks.counts.sum()), int(blocks.displs[0]))
    return blocks


def _allreduce(groups: Groups, sendbuf: object, recvbuf: object, op: MPI.Op) -> Operands | None:
    received = block(recvbuf, readonly=False)
    if is_in_place(sendbuf):
        return _reduction(received, Operands(0, None, received, shift=0, shared=received.count, op=op))
    sent = block(sendbuf, readonly=True)
    _check_types_and_counts(sent, received, received.count)
    return _reduction(received, Operands(0, sent, received, op=op))


def _reduce(groups: Groups, sendbuf: object, recvbuf: object, op: MPI.Op, root: int) -> Operands | None:
    if groups.rank != root:
        own = block(sendbuf, readonly=True)
        return _reduction(own, Operands(0, own, None, root, op=op))
    received = block(recvbuf, readonly=False)
    if is_in_place(sendbuf):
        return _reduction(received, Operands(0, None, received, root, 0, received.count, op=op))
    sent = block(sendbuf, readonly=True)
    _check_types_and_counts(sent, received, received.count)
    return _reduction(received, Operands(0, sent, received, root, op=op))


def _reduction(own: Block, operands: Operands) -> Operands | None:
    """The operands of a reduction of a block; None if entries of its datatype overlap or leave their extent."""
    extent = extent_of(own.datatype)
    if extent is None or extent * own.count > LARGEST_COUNT:
        return None
    return replace(operands, extent=extent, length=own.count)


def extent_of(datatype: MPI.Datatype) -> int | None:
    """Extent of a datatype in bytes; None if an entry's data lie outside its extent, so that entries may overlap."""
    lower, extent = datatype.Get_extent()
    first, true = datatype.Get_true_extent()
    return extent if lower == 0 and first >= 0 and first + true <= extent else None


def _reduce_scatter_block(groups: Groups, sendbuf: object, recvbuf: object, op: MPI.Op) -> Operands | None:
    if is_in_place(sendbuf):
        both = whole(recvbuf, groups.size, readonly=False)
        return _scattered(groups, None, both, np.full(groups.size, both.count // groups.size), op)
    received, sent = block(recvbuf, readonly=False), whole(sendbuf, groups.size, readonly=True)
    _check_types_and_counts(sent, received, received.count * groups.size)
    return _scattered(groups, sent, received, np.full(groups.size, received.count), op)


def _reduce_scatter(groups: Groups, sendbuf: object, recvbuf: object, recvcounts: Any, op: MPI.Op) -> Operands | None:
    received = block(recvbuf, readonly=False)
    in_place = is_in_place(sendbuf)
    if recvcounts is None:
        if in_place:
            return None  # left to the MPI library, which raises an error
        recvcounts = groups.comm.allgather(received.count)
    if np.ndim(recvcounts) != 1:
        raise TypeError(f"expecting {groups.size} counts, got {recvcounts!r}")
    counts = integers(recvcounts, groups.size)
    total = int(counts.sum())
    if in_place:
        if received.count != total:
            raise ValueError(f"mismatch in receive count {received.count} and sum(counts) {total}")
        return _scattered(groups, None, received, counts, op)
    sent = block(sendbuf, readonly=True)
    _check_types_and_counts(sent, received, total, f"sum(counts) {total}")
    if received.count != counts[groups.rank]:
        raise ValueError(f"mismatch in receive count {received.count} and counts[{groups.rank}] {counts[groups.rank]}")
    return _scattered(groups, sent, received, counts, op)


def _scattered(groups: Groups, sent: Block | None, received: Block, counts: Integers, op: MPI.Op) -> Operands | None:
    extent, total = extent_of(received.datatype), int(counts.sum())
    if extent is None or extent * total > LARGEST_COUNT:
        return None
    if sent is None:
        return Operands(extent, None, received, shift=0, shared=total, counts=counts, op=op)
    return Operands(extent, sent, received, counts=counts, op=op)


def _gatherv(groups: Groups, sendbuf: object, recvbuf: object, root: int) -> Operands | None:
    if groups.rank != root:
        own = block(sendbuf, readonly=True)
        return Operands(0, _single(own), None, root)
    received = vector(recvbuf, groups.size, readonly=False)
    if is_in_place(sendbuf):
        return Operands(0, None, Areas.of(received), root, root, 1)
    own = block(sendbuf, readonly=True)
    return Operands(0, _single(own), Areas.of(received), root)


def _scatterv(groups: Groups, sendbuf: object, recvbuf: object, root: int) -> Operands | None:
    if groups.rank != root:
        return Operands(0, None, _single(block(recvbuf, readonly=False)), root)
    sent = Areas.of(vector(sendbuf, groups.size, readonly=True))
    if is_in_place(recvbuf):
        return Operands(0, sent, None, root, -root, 1)
    return Operands(0, sent, _single(block(recvbuf, readonly=False)), root)


def _single(own: Block) -> Areas:
    return Areas([own.message if own.size else None])


def _alltoallv(groups: Groups, sendbuf: object, recvbuf: object) -> Operands | None:
    if is_in_place(sendbuf):
        return None
    sent, received = vector(sendbuf, groups.size, readonly=True), vector(recvbuf, groups.size, readonly=False)
    return Operands(0, Areas.of(sent), Areas.of(received))


def _alltoallw(groups: Groups, sendbuf: object, recvbuf: object) -> Operands | None:
    if is_in_place(sendbuf):
        return None
    return Operands(0, typed(sendbuf, groups.size, True), typed(recvbuf, groups.size, False))


def typed(message: Any, number: int, readonly: bool) -> Areas:
    """The pieces of a message with a datatype per block: ``[buf, (counts, displs), types]``, ...

    :param message: the specification, in the form that ``Alltoallw`` takes; displacements are in bytes.
    :param number: number of blocks, one per rank.
    :param readonly: True if the buffer may be read-only, as a send buffer may.
    :raises ValueError: if the message does not have 2 to 4 items, or a list does not have ``number`` items.
    """
    counts: Any
    displs: Any
    if len(message) == 2:
        buffer, types = message
        counts = displs = None
    elif len(message) == 3:
        buffer, (counts, displs), types = message
    elif len(message) == 4:
        buffer, counts, displs, types = message
    else:
        raise ValueError("message: expecting 2 to 4 items")
    if counts is None and displs is None:
        counts, displs = [1] * number, [0] * number
    for given in (counts, displs, types):
        if len(given) != number:
            raise ValueError(f"expecting {number} items, got {len(given)}")
    absolute = buffer is None or isinstance(buffer, type(MPI.BOTTOM))
    if on_device(buffer):
        raise DeviceMemoryError("message: expecting memory of the host")
    start = 0 if absolute else address_of(MPI.buffer.frombuffer(buffer, readonly=readonly))
    kinds = [kind if isinstance(kind, MPI.Datatype) else MPI.Datatype.fromcode(kind) for kind in types]
    pieces = zip(map(int, counts), map(int, displs), kinds, strict=True)
    return Areas([_piece(start + displ, count, kind) for count, displ, kind in pieces])


def _piece(address: int, count: int, kind: MPI.Datatype) -> Specification | None:
    if not count or kind == MPI.DATATYPE_NULL or not kind.Get_size():
        return None
    if not address:  # the datatypes contain absolute addresses
        return MPI.BOTTOM, count, kind
    return message_at(address, count, kind)


def _unless_large(groups: Groups, operands: Operands) -> Operands | None:
    return None if operands.extent * groups.size > LARGEST_COUNT else operands


def _fitting(own: Block, size: int) -> Block:
    """The block itself, if it has ``size`` bytes; else MismatchError is raised."""
    if own.size != size:
        raise MismatchError(MPI.ERR_TRUNCATE if own.size > size else MPI.ERR_COUNT)
    return own


def _check_types_and_counts(sent: Block, received: Block, count: int, what: str | None = None) -> None:
    if sent.datatype != received.datatype:
        raise ValueError("mismatch in send and receive MPI datatypes")
    if sent.count != count:
        raise ValueError(f"mismatch in send count {sent.count} and {what or f'receive count {count}'}")


_EQUAL, _COUNTED, _TYPED = Varying.EQUAL, Varying.COUNTED, Varying.TYPED
# The function that reads a call's arguments, by the call's pattern, the property in which its blocks differ, and
# whether it has a root.
_READERS: dict[tuple[Form, Varying, bool], Callable[..., Operands | None]] = {
    (Form.NOTHING, _EQUAL, False): _barrier,
    (Form.BROADCAST, _EQUAL, True): _bcast,
    (Form.GATHER, _EQUAL, True): _gather,
    (Form.GATHER, _COUNTED, True): _gatherv,
    (Form.SCATTER, _EQUAL, True): _scatter,
    (Form.SCATTER, _COUNTED, True): _scatterv,
    (Form.GATHER, _EQUAL, False): _allgather,
    (Form.GATHER, _COUNTED, False): _allgatherv,
    (Form.REDUCTION, _EQUAL, True): _reduce,
    (Form.REDUCTION, _EQUAL, False): _allreduce,
    (Form.REDUCE_SCATTER, _EQUAL, False): _reduce_scatter_block,
    (Form.REDUCE_SCATTER, _COUNTED, False): _reduce_scatter,
    (Form.ALLTOALL, _EQUAL, False): _alltoall,
    (Form.ALLTOALL, _COUNTED, False): _alltoallv,
    (Form.ALLTOALL, _TYPED, False): _alltoallw,
}


def read(groups: Groups, spec: CallSpec, arguments: tuple[object, ...]) -> Operands | None:
    """The operands of a call; None, on all ranks, if no plan can run it.

    :param groups: the communicator and its sub-communicators.
    :param spec: the description of the call.
    :param arguments: all arguments of mpi4py's method, in their order, defaults filled in.
    :raises DeviceMemoryError: if a message is in a device's memory.
    :raises ValueError, TypeError, BufferError: if a message is malformed; the same errors as mpi4py's.
    """
    return _READERS[spec.form, spec.counts, spec.rooted](groups, *arguments)
