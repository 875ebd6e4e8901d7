"""Reductions of Python objects by a schedule: objects travel pickled, and any function of two combines them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

from ..schedules.schedule import INPUT, OUTPUT, REDUCE
from .executor import Executor
from .parts import part_of

__all__ = ["combine"]

Function = Callable[[Any, Any], Any]


def combine(executor: Executor, collective: str, algorithm: str, sendobj: Any, op: Function) -> Any:
    """Combine an object of each rank as a schedule says, in the order of ranks; collective.

    :param executor: of the communicator.
    :param collective: a reduction without a root, a key of ``schedules.ALGORITHMS``.
    :param algorithm: one that keeps rank order, the same on all ranks.
    :param sendobj: this rank's object, which pickle can send.
    :param op: an associative function of two objects, called with that of lower ranks first.
    :returns: the object in this rank's output; None if the schedule puts nothing there.
    :raises ValueError: where no part of the schedule can be made, the same on all ranks.
    :raises Exception: what ``op`` or pickle raises. What is then left behind has a tag that no later call has.
    Cost: the messages of the schedule, each one pickled object.
    """
    part = part_of(executor, collective, algorithm, None, None, ordered=True, blocks=1)
    if isinstance(part, str):
        raise ValueError(part)
    comm, rank, tag = executor.groups.messages, part.rank, executor.groups.next_tag()
    held: dict[tuple[int, int], Any] = {(INPUT, 0): sendobj}
    rows = zip(part.rows.tolist(), part.precedes.tolist(), strict=True)
    for _, step in groupby(rows, key=lambda row: row[0][0]):
        # All of a step reads what stood before it: what arrives and what moves is written when all is read.
        sent, read = [], []
        for (_, source, destination, buffer, block, into, to, _, operation), precedes in step:
            if destination != rank:
                sent.append(comm.isend(held[buffer, block], destination, tag))
            else:
                local = held[buffer, block] if source == rank else None
                read.append((source, local, (into, to), operation == REDUCE, precedes))
        for source, local, place, reduces, precedes in read:
            new = local if source == rank else comm.recv(None, source, tag)
            if reduces:
                new = op(new, held[place]) if precedes else op(held[place], new)
            held[place] = new
        for request in sent:
            request.wait()
    return held.get((OUTPUT, 0))
