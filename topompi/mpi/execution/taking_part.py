"""The part that a rank with wrong arguments takes in a collective call: it runs the call with memory of topompi.

The other ranks do not know of the error. If the rank left the call out, their messages would wait on the communicator
and match its next call.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from mpi4py import MPI

from .areas import Areas
from .binding import Binding
from .buffers import Block, Specification, block, is_in_place, whole
from .carriers import carriers_of, take_part
from .eligibility import is_carried
from .executor import Executor
from .groups import Groups
from .operands import MismatchError, Operands
from .plan import Plan
from .planning import plan_of
from .preparation import bound, checked
from .specs import CallSpec, Form, Varying

__all__ = ["instead"]

NOTHING = [b"", 0, MPI.BYTE]


def instead(
    executor: Executor, spec: CallSpec, algorithm: str, arguments: tuple[object, ...], error: Exception
) -> Binding | None:
    """Make a binding, with memory of topompi, of a call whose arguments are wrong here; None if that is impossible.

    :param executor: the executor, which holds the communicator's plans and sub-communicators.
    :param spec: the description of the call.
    :param algorithm: name of the algorithm that runs the call on the other ranks.
    :param arguments: all arguments of mpi4py's method, in their order.
    :param error: this rank's error in the call.
    """
    # Sizes are sent before blocks, and tell the other ranks of the error.
    if is_carried(spec.name, algorithm):
        take_part(*carriers_of(executor, spec))
        return Binding([])
    try:
        given = _given_instead(executor, spec, algorithm, arguments, error)
    except Exception:  # another argument is wrong, too
        return None
    made = None if given is None else bound(executor, spec, algorithm, given)
    return replace(made, kept=given) if isinstance(made, Binding) else None


def _given_instead(
    executor: Executor, spec: CallSpec, algorithm: str, arguments: tuple[object, ...], error: Exception
) -> tuple[object, ...] | None:
    """The arguments of a call with memory of topompi in place of this rank's wrong message; None if impossible."""
    groups = executor.groups
    if spec.rooted and _gathers_sizes(spec, arguments, groups):
        plan = plan_of(executor, spec, algorithm, _unread(groups.size, groups.rank))
        return None if plan is None else _with_what_arrives(spec, plan, groups)
    if isinstance(error, MismatchError) and not spec.rooted:  # the error may be in the send buffer
        return None
    ways = [_with_own_memory, *([_with_own_blocks] if isinstance(error, MPI.Exception) else [])]
    for way in ways:
        with suppress(Exception):  # another argument is wrong, too
            given = way(spec, arguments, groups)
            if given is not None and checked(groups, spec, given)[1] is None:
                return given
    return None


def _with_own_memory(spec: CallSpec, arguments: tuple[object, ...], groups: Groups) -> tuple[object, ...] | None:
    """The arguments of a call with memory of topompi in place of a receive buffer that only this rank uses.

    The result is None if the call has no buffer of this kind.

    :param spec: the description of the call.
    :param arguments: all arguments of mpi4py's method, in their order.
    :param groups: the communicator and its sub-communicators.
    :raises Exception: if another argument is wrong, too.
    """
    if spec.counts is not Varying.EQUAL or spec.form is Form.NOTHING:
        return None
    if not spec.rooted or groups.rank == arguments[-1]:
        return None if is_in_place(arguments[0]) else _with_own_results(spec, arguments, groups.size)
    at = {Form.BROADCAST: 0, Form.SCATTER: 1}.get(spec.form)
    if at is None:
        return None
    message = block(arguments[at], readonly=True)
    if spec.form is Form.BROADCAST:
        _check_type(message, groups.alone)  # a datatype that is wrong in a broadcast is wrong on all ranks
    return *arguments[:at], [bytearray(message.size), message.size, MPI.BYTE], arguments[-1]


def _with_own_results(spec: CallSpec, arguments: tuple[object, ...], size: int) -> tuple[object, ...] | None:
    """The arguments of a call with memory of topompi for the results, whose size follows from this rank's send buffer.

    The result is None if the send buffer does not give the size.
    """
    sent, *_ = arguments
    if spec.form is Form.REDUCTION:
        return sent, _room(block(sent, readonly=True)), *arguments[2:]
    if spec.form is Form.REDUCE_SCATTER:
        return sent, _room(whole(sent, size, readonly=True), size), *arguments[2:]
    if spec.form is Form.GATHER:
        return sent, [bytearray(size * block(sent, readonly=True).size), MPI.BYTE], *arguments[2:]
    if spec.form in (Form.ALLTOALL, Form.SCATTER):
        parts = size if spec.form is Form.SCATTER else 1
        return sent, [bytearray(whole(sent, size, readonly=True).size // parts), MPI.BYTE], *arguments[2:]
    return None


def _room(sent: Block, parts: int = 1) -> list[object]:
    """Memory, as a message, for one of ``parts`` equal parts of a send buffer."""
    count = sent.count // parts
    return [bytearray(count * sent.datatype.extent), count, sent.datatype]


def _with_own_blocks(spec: CallSpec, arguments: tuple[object, ...], groups: Groups) -> tuple[object, ...] | None:
    """The arguments of a Scatter whose root sends zeros instead of its own buffer; None if this rank is not the root.

    They serve a root whose blocks have the null datatype, because Open MPI runs that call and leaves the other ranks'
    blocks undefined.

    :param spec: the description of the call.
    :param arguments: all arguments of mpi4py's method, in their order.
    :param groups: the communicator and its sub-communicators.
    :raises Exception: if the receive buffer is wrong, too.
    """
    if spec.name != "Scatter" or groups.rank != arguments[-1]:
        return None
    sent, received, root = arguments
    in_place = is_in_place(received)
    blocks = whole(sent, groups.size, readonly=True) if in_place else None
    size = block(received, readonly=True).size if blocks is None else blocks.size // groups.size
    own = received if in_place else [bytearray(size), MPI.BYTE]
    return [bytearray(groups.size * size), size, MPI.BYTE], own, root


def _check_type(message: Block, alone: MPI.Intracomm) -> None:
    """Raise the MPI library's error for a wrong datatype. Sends nothing."""
    if message.datatype == MPI.DATATYPE_NULL:  # MPICH accepts it in a message of no entries
        raise MPI.Exception(MPI.ERR_TYPE)
    alone.Send_init([b"", 0, message.datatype], 0).Free()


def _gathers_sizes(spec: CallSpec, arguments: tuple[object, ...], groups: Groups) -> bool:
    """Whether this rank is the root of a gather with uneven blocks, and its own send buffer is valid.

    In that case the other ranks most likely find no error in the call, and send.

    :param spec: the description of the call.
    :param arguments: all arguments of mpi4py's method, in their order.
    :param groups: the communicator and its sub-communicators.
    """
    if spec.form is not Form.GATHER or spec.counts is Varying.EQUAL or groups.rank != arguments[-1]:
        return False
    if is_in_place(arguments[0]):
        return True
    try:
        _check_type(block(arguments[0], readonly=True), groups.alone)
    except Exception:  # reading a foreign message object may raise anything
        return False
    return True


def _unread(size: int, root: int) -> Operands:
    """Operands without memory, with which a root that cannot read its receive buffer makes its plan of a gather.

    :param size: number of ranks.
    :param root: the root, which gathers uneven blocks.
    """
    none: list[Specification | None] = [None]
    return Operands(0, Areas(none), Areas(none * size), root)


def _with_what_arrives(spec: CallSpec, plan: Plan, groups: Groups) -> tuple[object, ...]:
    """The arguments of a gather whose root receives uneven blocks into memory of topompi.

    The root waits until it can probe the message of each rank, because the messages tell the sizes of the blocks.

    :param spec: the description of the call.
    :param plan: the root's plan.
    :param groups: the communicator and its sub-communicators.
    :returns: the arguments of mpi4py's method.
    """
    counts, status = [0] * groups.size, MPI.Status()
    comm, tag = groups.channel(spec.number)
    for message in (one for step in plan.steps for one in step.receives):
        comm.Probe(message.peer, tag, status)
        counts[message.begin] = status.Get_count(MPI.BYTE)
    return NOTHING, [bytearray(sum(counts)), counts, MPI.BYTE], groups.rank
