"""The compilation of a plan into instructions for a loop in C, which runs all messages without Python in between."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from .areas import Area, Span
from .buffers import address_of
from .plan import Message, Moves, Plan, Reduction, Step

try:
    from ._compiled import Program
except ImportError:  # topompi was installed without a compiler
    COMPILED = False
else:
    COMPILED = True

__all__ = ["COMPILED", "REVOKED", "Program", "compiled", "program_of"]

RECEIVE, SEND, START_RECEIVE, START_SEND, WAIT, COPY, REDUCE = range(7)  # the same numbers as in _compiled.c
FUNCTIONS = (
    "MPI_Recv",
    "MPI_Send",
    "MPI_Irecv",
    "MPI_Isend",
    "MPI_Wait",
    "MPI_Testall",
    "MPI_Reduce_local",
    "MPI_Error_class",
)
MOST = 2**31 - 1  # maximum entries of a message, because older MPI libraries lack functions for larger counts
# Error classes after which no rank waits for another. ERR_UNKNOWN is taken out, because mpi4py uses it for every class
# that the MPI library lacks.
REVOKED = {MPI.ERR_REVOKED, MPI.ERR_PROC_FAILED} - {MPI.ERR_UNKNOWN}

Instruction = tuple[int, int, int, int, int, int]  # kind, first address, second address, count, datatype, peer


class _UnsuitedError(Exception):
    """The plan has a part that the loop in C cannot run."""


def compiled(
    plan: Plan, areas: Mapping[int, Area], comm: MPI.Intracomm, op: MPI.Op | None, tag: int
) -> Callable[[], None] | None:
    """The function that runs a plan in C; None if C cannot run it.

    :param plan: this rank's plan, namely its messages, copies and reductions in each step.
    :param areas: the memory of each buffer; the caller keeps it alive as long as the function.
    :param comm: the communicator of all messages.
    :param op: the operation of a reduction; None in other calls.
    :param tag: the tag of all messages.
    """
    program = program_of(plan, areas, comm, op, tag)
    return None if program is None else program.run


def program_of(
    plan: Plan, areas: Mapping[int, Area], comm: MPI.Intracomm, op: MPI.Op | None, tag: int
) -> Program | None:
    """The program that runs a plan in C, at once or in parts; None if C cannot run it.

    C cannot run a plan if the C extension is missing, if the plan copies data with gaps or reduces them in rank order,
    or if a message has 2^31 or more entries.

    :param plan: this rank's plan, namely its messages, copies and reductions in each step.
    :param areas: the memory of each buffer; the caller keeps it alive as long as the program.
    :param comm: the communicator of all messages.
    :param op: the operation of a reduction; None in other calls.
    :param tag: the tag of all messages.
    """
    functions = _functions() if COMPILED else None
    if functions is None:
        return None
    try:
        rows = list(_instructions(plan, areas, op))
    except _UnsuitedError:
        return None
    table = np.concatenate([np.empty((0, 6), dtype=np.int64), *rows])
    if (table[table[:, 0] != COPY, 3] > MOST).any():
        return None
    handle, operation = _handle(comm), 0 if op is None else _handle(op)
    return Program(functions, _sizes(), tuple(REVOKED), MPI.Exception, table, handle, tag, operation)


def _handle(one: MPI.Comm | MPI.Datatype | MPI.Op | MPI.Request) -> int:
    """The handle of an MPI object as a signed 64-bit integer."""
    word = MPI._handleof(one)
    return word - 2**64 if word >= 2**63 else word


@cache
def _functions() -> tuple[int, ...] | None:
    """Addresses of the MPI library's functions; None if one of them is not found.

    The process's symbols are searched first, so that a profiler that wraps MPI functions is called.
    """
    libraries = [ctypes.CDLL(None), ctypes.CDLL(MPI.__file__)]
    found = [next(filter(None, (_address(one, name) for one in libraries)), 0) for name in FUNCTIONS]
    return tuple(found) if all(found) else None


def _address(library: ctypes.CDLL, name: str) -> int:
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    except AttributeError:
        return 0


@cache
def _sizes() -> tuple[int, int, int]:
    """Bytes of a request, bytes of a status, and the handle of the null request."""
    return MPI._sizeof(MPI.Request), MPI._sizeof(MPI.Status), _handle(MPI.REQUEST_NULL)


def _instructions(plan: Plan, areas: Mapping[int, Area], op: MPI.Op | None) -> Iterator[NDArray[np.int64]]:
    """The instructions of one run of a plan, as a series of arrays of shape (instructions, 6), in order."""
    posted = 0
    flying: dict[int, tuple[int, int]] = {}  # first request and number of requests of each step under way
    for step, begins in plan.turns():
        if begins:
            for moves in step.moves:
                yield _copies(moves, areas)
            posts = _posts(step, areas)
            at_once = plan.window == 1
            rows = _blocking(posts) if at_once else posts
            count = sum(row[0] in (START_RECEIVE, START_SEND) for row in rows)
            flying[id(step)] = posted, count
            posted += count
        else:
            first, count = flying.pop(id(step))
            rows = [(WAIT, first, 0, count, 0, 0)] if count else []
            rows += [row for one in step.reductions for row in _reduction(one, areas, op)]
        yield np.array(rows, dtype=np.int64).reshape(-1, 6)


def _posts(step: Step, areas: Mapping[int, Area]) -> list[Instruction]:
    return [
        (kind, *place, one.peer)
        for kind, some in ((START_RECEIVE, step.receives), (START_SEND, step.sends))
        for one in some
        if (place := _message(one, areas)) is not None
    ]


def _blocking(posts: list[Instruction]) -> list[Instruction]:
    """The instructions of a step that must end before the next step begins.

    If the step has one message, or one in each direction, its last call is blocking, so that no wait is needed.
    """
    kinds = [row[0] for row in posts]
    if kinds == [START_RECEIVE]:
        return [(RECEIVE, *posts[0][1:])]
    if kinds in ([START_SEND], [START_RECEIVE, START_SEND]):
        return [*posts[:-1], (SEND, *posts[-1][1:])]
    return posts


def _message(one: Message, areas: Mapping[int, Area]) -> tuple[int, int, int, int] | None:
    """The fields of an instruction that describe a message: address, 0 (no second address), count and datatype.

    The result is None if the message's units have no data.
    """
    if not one.length:
        return 0, 0, 0, _handle(MPI.BYTE)
    area = areas[one.buffer]
    if isinstance(area, Span):
        address, count, datatype = _place(area, one.begin, one.length)
        return address, 0, count, datatype
    message = area.message(one.begin, one.length)
    if message is None:
        return None
    return address_of(message[0]), 0, message[1], _handle(message[2])


def _place(area: Span, begin: int, length: int) -> tuple[int, int, int]:
    """Address, number of entries and datatype of ``length`` units from unit ``begin`` on."""
    return area.memory.address + begin * area.extent, length * area.entries, _handle(area.datatype)


def _dense(area: Area) -> Span:
    if isinstance(area, Span) and area.dense:
        return area
    raise _UnsuitedError


def _copies(moves: Moves, areas: Mapping[int, Area]) -> NDArray[np.int64]:
    source, target = _dense(areas[moves.source]), _dense(areas[moves.destination])
    rows = np.zeros((len(moves.length), 6), dtype=np.int64)
    rows[:, 0] = COPY
    rows[:, 1] = source.memory.address + source.extent * moves.begin
    rows[:, 2] = target.memory.address + target.extent * moves.to
    rows[:, 3] = source.extent * moves.length
    return rows


def _reduction(one: Reduction, areas: Mapping[int, Area], op: MPI.Op | None) -> list[Instruction]:
    """The instructions that combine new data with held data, and put the result in the place of the held data.

    MPI computes ``inout = in op inout``: if order counts, ``in`` must hold the data of lower ranks. If these are the
    held data, the result lands in the buffer of the new data and is copied back.
    """
    source, target = areas[one.buffer], areas[one.held_buffer]
    assert isinstance(source, Span)
    assert isinstance(target, Span)
    (new, count, datatype), (held, _, _) = (
        _place(source, one.begin, one.length),
        _place(target, one.held_begin, one.length),
    )
    if one.precedes or (op is not None and op.Is_commutative()):
        return [(REDUCE, new, held, count, datatype, 0)]
    nbytes = _dense(source).extent * one.length
    return [(REDUCE, held, new, count, datatype, 0), (COPY, new, held, nbytes, 0, 0)]
