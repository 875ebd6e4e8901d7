"""The facts, equal on all ranks, by which a call's algorithm is chosen: its size in bytes, its operation's needs."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from .buffers import block, blocks, is_in_place, vector
from .specs import NO_NEEDS, CallSpec, Form, Needs, Varying

__all__ = ["nbytes", "needs_of", "own_bytes"]


def needs_of(op: object) -> Needs:
    """The needs of an operation, which an algorithm must meet: operands in rank order, whole vectors, both or neither.

    :param op: the operation of a reduction, an ``MPI.Op``; any other object in a call that does not reduce.
    """
    if not isinstance(op, MPI.Op) or op.is_predefined:
        return NO_NEEDS
    return Needs(order=not op.Is_commutative(), whole=True)


def nbytes(spec: CallSpec, arguments: tuple[object, ...], size: int) -> int:
    """Size of a call in bytes: a broadcast's message, a reduction's vector, or one block in any other call.

    The result is 0 if each rank of the call has its own counts, so that the ranks know no common number; see
    ``own_bytes``.

    :param spec: the description of the call.
    :param arguments: all arguments of mpi4py's method, in their order.
    :param size: number of ranks.
    :raises ValueError, TypeError, BufferError: if a message has no valid size.
    """
    form = spec.form
    if form is Form.REDUCTION or (form is Form.REDUCE_SCATTER and spec.counts is not Varying.EQUAL):
        return _bytes(_own(arguments))
    if form is Form.NOTHING or spec.counts is not Varying.EQUAL:
        return 0
    if form is Form.BROADCAST:
        return _bytes(arguments[0])
    if form is Form.REDUCE_SCATTER:
        return size * _bytes(_own(arguments), size)
    sendbuf, recvbuf = arguments[:2]
    if form is Form.GATHER and spec.rooted:  # this rank sends one block; in place, the root's buffer has all blocks
        return _bytes(recvbuf, size) if is_in_place(sendbuf) else _bytes(sendbuf)
    if form is Form.SCATTER:  # this rank receives one block; in place, the root's buffer has all blocks
        return _bytes(sendbuf, size) if is_in_place(recvbuf) else _bytes(recvbuf)
    return _bytes(recvbuf, size)


def own_bytes(spec: CallSpec, arguments: tuple[object, ...], size: int) -> int:
    """Mean size in bytes of the blocks that this rank sends to each rank in a call with uneven blocks.

    In an in-place call these are the blocks of the receive buffer. The result is 0 if the message cannot be read,
    because every rank has to contribute a number.

    :param spec: the description of the call.
    :param arguments: all arguments of mpi4py's method, in their order.
    :param size: number of ranks.
    """
    from .areas import Areas  # imported here, because a job on one host needs neither module
    from .operands import typed

    message = _own(arguments)
    try:
        typed_blocks = spec.counts is Varying.TYPED
        pieces = typed(message, size, True) if typed_blocks else Areas.of(vector(message, size, readonly=True))
    except Exception:  # the call itself raises the error
        return 0
    return int(sum(piece[1] * piece[2].Get_size() for piece in pieces.messages if piece)) // size


def _own(arguments: tuple[object, ...]) -> object:
    """The argument with the data that this rank sends: the send buffer, or, in an in-place call, the receive buffer."""
    return arguments[1] if is_in_place(arguments[0]) else arguments[0]


def _bytes(message: Any, number: int = 1) -> int:
    """Bytes of one of ``number`` equal blocks of a message."""
    if not isinstance(message, (list, tuple)):
        try:
            view = memoryview(message)
            if view.nbytes % (number * view.itemsize):
                raise ValueError(f"expecting {number} blocks of equal size, got {view.nbytes} bytes")
            return view.nbytes // number
        except TypeError:
            pass  # not a Python buffer, but perhaps one that mpi4py knows
    if number == 1:
        return block(message, readonly=True).size
    return blocks(message, number, readonly=True).block(0).size
