"""What a rank that refuses a call for its own receive buffer puts in its place, to take its part in the call.

The others know nothing of the refusal. What they send would wait on the communicator, and meet its next call.
"""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from .areas import Pieces
from .buffers import Block, block, is_in_place
from .groups import Groups
from .operands import Operands
from .plan import Plan
from .specs import CallSpec, Counts, Form

__all__ = ["NOTHING", "gathers_sizes", "unread", "with_own_memory", "with_what_arrives"]

NOTHING = [b"", 0, MPI.BYTE]


def with_own_memory(spec: CallSpec, arguments: tuple[Any, ...], groups: Groups) -> tuple[Any, ...] | None:
    """The same call with memory of ours in place of a receive buffer that only this rank has; None where there is none.

    :param spec: of the call.
    :param arguments: those of mpi4py's method, all of them.
    :param groups: of the communicator.
    :raises Exception: for another argument that makes no sense.
    """
    root, rank = arguments[-1], groups.rank
    if spec.name == "Bcast" and rank != root:
        message = block(arguments[0], readonly=True)
        _check_type(message, groups.alone)  # the root has it too
        return [bytearray(message.size), message.size, MPI.BYTE], root
    if spec.name not in ("Gather", "Reduce") or rank != root or is_in_place(arguments[0]):
        return None
    own = block(arguments[0], readonly=True)
    if spec.name == "Gather":
        return arguments[0], [bytearray(groups.size * own.size), MPI.BYTE], root
    return arguments[0], [bytearray(own.count * own.datatype.extent), own.count, own.datatype], *arguments[2:]


def _check_type(message: Block, alone: MPI.Intracomm) -> None:
    """Raise what the MPI library raises for a datatype; sends nothing."""
    if message.datatype == MPI.DATATYPE_NULL:  # MPICH lets it pass where nothing is sent
        raise MPI.Exception(MPI.ERR_TYPE)
    alone.Send_init([b"", 0, message.datatype], 0).Free()


def gathers_sizes(spec: CallSpec, arguments: tuple[Any, ...], groups: Groups) -> bool:
    """Whether a call is a gather of any sizes, this rank its root, and what it sends itself sound.

    Then most likely the others' part is sound too, and they send it.

    :param spec: of the call.
    :param arguments: those of mpi4py's method, all of them.
    :param groups: of the communicator.
    """
    if spec.form is not Form.GATHER or spec.counts is Counts.EQUAL or groups.rank != arguments[-1]:
        return False
    if is_in_place(arguments[0]):
        return True
    try:
        _check_type(block(arguments[0], readonly=True), groups.alone)
    except Exception:  # whatever our look at it raises
        return False
    return True


def unread(size: int, root: int) -> Operands:
    """Operands that suffice to make a root's plan of a gather of any sizes, on so many ranks."""
    none: list[list[Any] | None] = [None]
    return Operands(0, Pieces(none), Pieces(none * size), root)


def with_what_arrives(spec: CallSpec, plan: Plan, groups: Groups, root: int) -> tuple[Any, ...]:
    """A gather of any sizes, with memory of ours for what is sent to this rank; waits until it is sent.

    :param spec: of the call.
    :param plan: of this rank, the root.
    :param groups: of the communicator.
    :param root: the root.
    """
    counts, status = [0] * groups.size, MPI.Status()
    for message in (one for step in plan.steps for one in step.receives):
        groups.messages.Probe(message.peer, spec.number, status)
        counts[message.begin] = status.Get_count(MPI.BYTE)
    return NOTHING, [bytearray(sum(counts)), counts, MPI.BYTE], root
