"""The facts by which a call's algorithm is chosen, the same on all ranks: its bytes, its operation's needs."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from .buffers import block, blocks, is_in_place, vector
from .specs import NO_NEEDS, CallSpec, Counts, Form, Needs

__all__ = ["nbytes", "needs_of", "own_bytes"]


def needs_of(op: Any) -> Needs:
    """The demands of an operation.

    :param op: an ``MPI.Op``; None, or anything else, in a call that reduces nothing.
    """
    if not isinstance(op, MPI.Op) or op.is_predefined:
        return NO_NEEDS
    return Needs(order=not op.Is_commutative(), whole=True)


def nbytes(spec: CallSpec, arguments: tuple[Any, ...], size: int) -> int:
    """Bytes of a call: of the message of a broadcast or the vector of a reduction, else of one block.

    It is 0 for calls whose ranks cannot know the same number (each has counts of its own); see ``own_bytes``.

    :param spec: the call.
    :param arguments: those of mpi4py's method, all of them.
    :param size: number of ranks.
    :raises ValueError, TypeError, BufferError: for a message that says nothing sensible.
    """
    form = spec.form
    if form is Form.REDUCTION or (form is Form.REDUCE_SCATTER and spec.counts is not Counts.EQUAL):
        return _bytes(_own(arguments))
    if form is Form.NOTHING or spec.counts is not Counts.EQUAL:
        return 0
    if form is Form.BROADCAST:
        return _bytes(arguments[0])
    if form is Form.REDUCE_SCATTER:
        return size * _bytes(_own(arguments), size)
    sendbuf, recvbuf = arguments[:2]
    if form is Form.GATHER and spec.rooted:  # this rank's own block, or, in place, the root's room for one
        return _bytes(recvbuf, size) if is_in_place(sendbuf) else _bytes(sendbuf)
    if form is Form.SCATTER:  # the block that this rank gets, or, in place, one of the root's
        return _bytes(sendbuf, size) if is_in_place(recvbuf) else _bytes(recvbuf)
    return _bytes(recvbuf, size)


def own_bytes(spec: CallSpec, arguments: tuple[Any, ...], size: int) -> int:
    """Mean bytes of the blocks that this rank sends, or in place receives, in a call with uneven blocks.

    It is 0 for a message that cannot be read, since all ranks have to give a number.

    :param spec: the call.
    :param arguments: those of mpi4py's method, all of them.
    :param size: number of ranks.
    """
    from .areas import Pieces  # with plans: a job on one host needs neither
    from .operands import typed

    message = _own(arguments)
    try:
        typed_blocks = spec.counts is Counts.TYPED
        pieces = typed(message, size, True) if typed_blocks else Pieces.of(vector(message, size, readonly=True))
    except Exception:  # whatever it is, the call itself will say so
        return 0
    return int(sum(piece[1] * piece[2].Get_size() for piece in pieces.messages if piece)) // size


def _own(arguments: tuple[Any, ...]) -> Any:
    """What a rank sends, which stands in the receive buffer in the in-place variant."""
    return arguments[1] if is_in_place(arguments[0]) else arguments[0]


def _bytes(message: Any, number: int = 1) -> int:
    """Bytes of one of ``number`` equal blocks."""
    if not isinstance(message, (list, tuple)):
        try:
            view = memoryview(message)
            if view.nbytes % (number * view.itemsize):
                raise ValueError(f"expecting {number} blocks of equal size, got {view.nbytes} bytes")
            return view.nbytes // number
        except TypeError:
            pass  # it may still be a buffer of another kind
    if number == 1:
        return block(message, readonly=True).size
    return blocks(message, number, readonly=True).block(0).size
