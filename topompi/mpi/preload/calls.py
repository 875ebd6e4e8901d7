"""A compiled program's calls, run by topompi's communicators; ``_preload.c`` calls these functions."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mpi4py import MPI

from ...errors import TopompiError
from .communicators import Extent, abstain, begin_world, communicator_of, native_for_good, returning_errors
from .messages import MASK, counted, integer, integers, known_handles, message, operation, typed

__all__ = ["NAMES", "call", "finish", "forget", "start"]

Words = Sequence[int]  # the arguments of a call, as MPI's C interface has them, each a machine word

# Answers to ``_preload.c``, above the 32 bits of an error code.
CLASS_IS_NATIVE, CALL_IS_NATIVE, ALL_IS_NATIVE, LIBRARY_RUNS, RAISED = (1 << bit for bit in range(32, 37))
_ANSWERS = {
    Extent.NONE: 0,
    Extent.CLASS: CLASS_IS_NATIVE,
    Extent.METHOD: CALL_IS_NATIVE,
    Extent.COMMUNICATOR: ALL_IS_NATIVE,
}


class _Member(NamedTuple):
    """A communicator of the program, with this process's rank in it and its number of ranks."""

    comm: Any
    rank: int
    size: int


def _barrier(one: _Member, a: Words) -> tuple[Any, ...]:
    return ()


def _bcast(one: _Member, a: Words) -> tuple[Any, ...]:
    return message(a[0], a[1], a[2]), integer(a[3])


def _reduce(one: _Member, a: Words) -> tuple[Any, ...]:
    root = integer(a[5])
    received = message(a[1], a[2], a[3]) if one.rank == root else None
    return message(a[0], a[2], a[3]), received, operation(a[4]), root


def _allreduce(one: _Member, a: Words) -> tuple[Any, ...]:
    return message(a[0], a[2], a[3]), message(a[1], a[2], a[3]), operation(a[4])


def _reduce_scatter_block(one: _Member, a: Words) -> tuple[Any, ...]:
    sent = message(a[0], a[2], a[3], one.size, of_all=True)
    received = message(a[1], a[2], a[3], one.size if sent is MPI.IN_PLACE else 1, of_all=True)
    return sent, received, operation(a[4])


def _reduce_scatter(one: _Member, a: Words) -> tuple[Any, ...]:
    counts = integers(a[2], one.size)
    if (counts < 0).any():
        raise ValueError(f"expecting counts, got {int(counts.min())}")
    total = int(counts.sum())
    sent = message(a[0], total, a[3])
    received = message(a[1], total if sent is MPI.IN_PLACE else int(counts[one.rank]), a[3])
    return sent, received, counts, operation(a[4])


def _gather(one: _Member, a: Words) -> tuple[Any, ...]:
    root = integer(a[6])
    return message(a[0], a[1], a[2]), message(a[3], a[4], a[5], one.size) if one.rank == root else None, root


def _scatter(one: _Member, a: Words) -> tuple[Any, ...]:
    root = integer(a[6])
    return message(a[0], a[1], a[2], one.size) if one.rank == root else None, message(a[3], a[4], a[5]), root


def _allgather(one: _Member, a: Words) -> tuple[Any, ...]:
    return message(a[0], a[1], a[2]), message(a[3], a[4], a[5], one.size)


def _alltoall(one: _Member, a: Words) -> tuple[Any, ...]:
    return message(a[0], a[1], a[2], one.size), message(a[3], a[4], a[5], one.size)


def _gatherv(one: _Member, a: Words) -> tuple[Any, ...]:
    root = integer(a[7])
    received = counted(a[3], a[4], a[5], a[6], one.size) if one.rank == root else None
    return message(a[0], a[1], a[2]), received, root


def _scatterv(one: _Member, a: Words) -> tuple[Any, ...]:
    root = integer(a[7])
    sent = counted(a[0], a[1], a[2], a[3], one.size) if one.rank == root else None
    return sent, message(a[4], a[5], a[6]), root


def _allgatherv(one: _Member, a: Words) -> tuple[Any, ...]:
    return message(a[0], a[1], a[2]), counted(a[3], a[4], a[5], a[6], one.size)


def _alltoallv(one: _Member, a: Words) -> tuple[Any, ...]:
    return counted(a[0], a[1], a[2], a[3], one.size), counted(a[4], a[5], a[6], a[7], one.size)


def _alltoallw(one: _Member, a: Words) -> tuple[Any, ...]:
    return typed(a[0], a[1], a[2], a[3], one.size), typed(a[4], a[5], a[6], a[7], one.size)


# For each call, in the order of _preload.c: the function that makes mpi4py's arguments, and the place of the root.
_CALLS: dict[str, tuple[Callable[[_Member, Words], tuple[Any, ...]], int | None]] = {
    "Barrier": (_barrier, None),
    "Bcast": (_bcast, 3),
    "Reduce": (_reduce, 5),
    "Allreduce": (_allreduce, None),
    "Scan": (_allreduce, None),
    "Exscan": (_allreduce, None),
    "Reduce_scatter_block": (_reduce_scatter_block, None),
    "Reduce_scatter": (_reduce_scatter, None),
    "Gather": (_gather, 6),
    "Scatter": (_scatter, 6),
    "Allgather": (_allgather, None),
    "Alltoall": (_alltoall, None),
    "Gatherv": (_gatherv, 7),
    "Scatterv": (_scatterv, 7),
    "Allgatherv": (_allgatherv, None),
    "Alltoallv": (_alltoallv, None),
    "Alltoallw": (_alltoallw, None),
}
NAMES = tuple(_CALLS)
SIZELESS = {"Reduce_scatter", "Gatherv", "Scatterv", "Allgatherv", "Alltoallv", "Alltoallw"}  # each rank has own counts

_members: dict[int, _Member] = {}


def start(world: int, in_place: int) -> bytes:
    """Find the topology of the program's ranks; collective.

    :param world: handle of MPI_COMM_WORLD, as ``_preload.c`` knows it.
    :param in_place: its MPI_IN_PLACE.
    :returns: rows of two 64-bit words: each predefined datatype with its bytes, each predefined operation with -1.
    :raises TopompiError: if the settings are wrong or the topology cannot be read; the same on all ranks.
    """
    theirs = MPI.COMM_WORLD.handle & MASK, int(MPI.IN_PLACE) % 2**64
    if theirs != (world & MASK, in_place):
        raise TopompiError("expecting the constants of a known MPI library, got others")
    before = [(comm, comm.Get_errhandler()) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)]
    for comm, _ in before:
        comm.Set_errhandler(MPI.ERRORS_RETURN)
    try:
        returning_errors()
        rows = known_handles().tobytes()
    finally:
        for comm, handler in before:
            comm.Set_errhandler(handler)
            handler.Free()
    native = MPI.COMM_WORLD.handle & MASK
    _members[native] = _member(begin_world())
    return rows


def _member(comm: Any) -> _Member:
    return _Member(comm, comm.Get_rank(), comm.Get_size())


def call(number: int, handle: int, nbytes: int, predefined: int, words: Words) -> int:
    """Run a call of the program.

    :param number: place of the call in ``NAMES``.
    :param handle: the communicator, which is no intercommunicator.
    :param nbytes: size of the call in bytes, as its class counts it; negative if unknown.
    :param predefined: whether its operation is predefined, or it has none.
    :param words: the arguments.
    :returns: an error code, and bits of the answers above it.
    :raises Exception: any but MPI's: all ranks have to be ended.
    """
    one = _members.get(handle)
    if one is None:
        comm = communicator_of(handle)
        if comm is None:
            return LIBRARY_RUNS | ALL_IS_NATIVE
        one = _members[handle] = _member(comm)
    name = NAMES[number]
    arguments_of, root = _CALLS[name]
    try:
        arguments = arguments_of(one, words)
    except (ValueError, MPI.Exception):  # the library has an error for it; others may wait for this rank's answer
        abstain(one.comm, name, None if root is None else integer(words[root]))
        return LIBRARY_RUNS
    code = _run(getattr(one.comm, name), arguments)
    classed = predefined and nbytes >= 0 and name not in SIZELESS
    return code | _ANSWERS[native_for_good(one.comm, name, nbytes if classed else None)]


def _run(method: Callable[..., None], arguments: tuple[Any, ...]) -> int:
    """Run a call; return 0 or an error code, with ``RAISED`` if the MPI library has not called an error handler."""
    try:
        method(*arguments)
    except MPI.Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        from_library = trace is not None and trace.tb_frame.f_code.co_filename.endswith((".pyx", ".pxi"))
        return error.Get_error_code() | (0 if from_library else RAISED)
    return 0


def forget(handle: int) -> None:
    """Forget a communicator, which is about to be freed: its handle may come again.

    :param handle: the communicator.
    """
    _members.pop(handle, None)


def finish() -> None:
    """Do what topompi does at Python's exit, such as printing the table of calls. Python itself stays."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
