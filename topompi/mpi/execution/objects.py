"""Reductions of Python objects by a schedule: the messages are pickled objects, and a function combines two of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any, NamedTuple

from mpi4py import MPI

from ...schedules.schedule import INPUT, OUTPUT, REDUCE
from .executor import Executor
from .planning import part_of
from .rankzero import tellable

__all__ = ["combine"]

Function = Callable[[Any, Any], object]


def combine(executor: Executor, collective: str, algorithm: str, sendobj: object, op: Function) -> object:
    """Combine an object of each rank by a schedule, in rank order; collective.

    :param executor: the executor, which holds the communicator's plans and sub-communicators.
    :param collective: a reduction without a root, a key of ``schedules.ALGORITHMS``.
    :param algorithm: an algorithm that keeps rank order, the same on all ranks.
    :param sendobj: this rank's object, which must be picklable.
    :param op: an associative function of two objects; the first argument comes from the lower ranks.
    :returns: this rank's result; None on a rank for which the schedule has no result.
    :raises ValueError: if the schedule cannot be made; the same on all ranks.
    :raises Exception: any error of ``op`` or pickle, on the ranks whose result depends on it. A rank with an error
        sends the error in place of an object, so that no rank waits for it.

    Cost: the messages of the schedule, each one pickled object.
    """
    part = part_of(executor, collective, algorithm, None, None, ordered=True, blocks=1)
    if isinstance(part, str):
        raise ValueError(part)
    rank, (comm, tag) = part.rank, executor.groups.new_channel()
    held: dict[tuple[int, int], object] = {(INPUT, 0): sendobj}
    rows = zip(part.rows.tolist(), part.precedes.tolist(), strict=True)
    for _, step in groupby(rows, key=lambda row: row[0][0]):
        # All moves of a step read the contents from before the step: nothing is written until all is read.
        sent, read = [], []
        for (_, source, destination, buffer, block, into, to, _, operation), precedes in step:
            if destination != rank:
                sent.append(_send(comm, held[buffer, block], destination, tag))
            else:
                local = held[buffer, block] if source == rank else None
                read.append((source, local, (into, to), operation == REDUCE, precedes))
        for source, local, place, reduces, precedes in read:
            new = local if source == rank else comm.recv(None, source, tag)
            if reduces:
                new = _reduced(op, *((new, held[place]) if precedes else (held[place], new)))
            held[place] = new
        for request in sent:
            request.wait()
    result = held.get((OUTPUT, 0))
    if isinstance(result, _Failed):
        raise result.error
    return result


class _Failed(NamedTuple):
    """An error that travels in place of an object."""

    error: Exception


def _send(comm: MPI.Intracomm, value: object, destination: int, tag: int) -> MPI.Request:
    try:
        return comm.isend(value, destination, tag)
    except MPI.Exception:
        raise
    except Exception as error:  # pickle calls the object's own code, which may raise anything
        return comm.isend(_Failed(tellable(error)), destination, tag)


def _reduced(op: Function, first: object, second: object) -> object:
    for one in (first, second):
        if isinstance(one, _Failed):
            return one
    try:
        return op(first, second)
    except Exception as error:  # the user's function may raise anything
        return _Failed(tellable(error))
