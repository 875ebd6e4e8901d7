"""Checks of a call's operands, as the MPI library makes them, before topompi sends a message."""

from __future__ import annotations

from collections.abc import Iterator

from mpi4py import MPI

from .areas import Areas
from .buffers import Block
from .contexts import Alone
from .operands import Operands, Side
from .specs import CallSpec, Form

__all__ = ["check"]


def check(spec: CallSpec, operands: Operands, alone: MPI.Intracomm) -> None:
    """Raise an error for wrong datatypes, a wrong operation, one buffer as both input and output, or memory too short.

    :param spec: the description of the call.
    :param operands: the operands of the call.
    :param alone: a communicator of this rank only.
    :raises MPI.Exception: if the library refuses the call.
    :raises ShortMemoryError: if a message ends after its memory does.

    Cost: two or three calls of the MPI library that send nothing; one copy if a buffer is used twice.
    """
    sides = operands.input, operands.output
    types = {id(kind): kind for side in sides for kind in _datatypes(side)}
    for kind in types.values():
        alone.Send_init([b"", 0, kind], 0).Free()  # not to MPI.PROC_NULL, because mpi4py then leaves the datatype out
        if operands.op is not None and operands.op.is_predefined:  # a user's function would be called
            operands.op.Reduce_local([b"", 0, kind], [bytearray(), 0, kind])
    if _is_one_buffer(*sides):
        with Alone.lock:  # another thread may call here, too
            _ask(spec, operands, alone)
    # MPICH's own collectives raise this error, but topompi's copy of a piece to itself would abort the job.
    if _share_a_piece(*sides):
        raise MPI.Exception(MPI.ERR_BUFFER)
    for side in sides:
        if isinstance(side, Block):
            side.require_memory()


def _datatypes(side: Side) -> Iterator[MPI.Datatype]:
    if isinstance(side, Areas):
        yield from (piece[2] for piece in side.messages if piece)
    elif side is not None:
        yield side.datatype


def _is_one_buffer(input: Side, output: Side) -> bool:
    if not isinstance(input, Block) or not isinstance(output, Block) or not input.size:
        return False
    return input.address == output.address


def _share_a_piece(input: Side, output: Side) -> bool:
    if not isinstance(input, Areas) or not isinstance(output, Areas):
        return False
    sent, received = (
        {piece[0].address for piece in side.messages if piece and not isinstance(piece[0], type(MPI.BOTTOM))}
        for side in (input, output)
    )
    return not sent.isdisjoint(received)


def _ask(spec: CallSpec, operands: Operands, alone: MPI.Intracomm) -> None:
    """Make the call on this rank alone, with one buffer as input and output; the MPI library may raise its error."""
    sent, received = (side.message for side in (operands.input, operands.output) if isinstance(side, Block))
    if operands.op is not None:
        name = spec.name if spec.form is Form.REDUCTION else "Reduce_scatter_block"
        getattr(alone, name)(sent, received, operands.op)
    elif spec.form is Form.ALLTOALL:
        alone.Alltoall(sent, received)
