"""The public function of the checker, and its result."""

from __future__ import annotations

from dataclasses import dataclass

from ..schedule import Schedule
from .hazards import hazard
from .history import History
from .places import Places
from .results import compare
from .rows import malformed

__all__ = ["Proof", "check"]


@dataclass(frozen=True)
class Proof:
    """The size of a proved schedule.

    :param rows: number of transfers, including local moves.
    :param steps: number of steps.
    :param messages: number of transfers between two ranks.
    :param moves: number of single blocks that the transfers move.
    """

    rows: int
    steps: int
    messages: int
    moves: int


def check(schedule: Schedule, commutative: bool = True) -> Proof:
    """Prove by symbolic execution that a schedule implements MPI's definition and cannot deadlock.

    It checks: ranks, buffers and blocks exist; the input is not written; nothing is read before it is defined; within a
    step no place is written by two transfers, except reductions, or read by one and written by another; at the end
    every place of the output has the value that MPI defines, in reductions with each contribution exactly once, and in
    rank order if the operation does not commute; at the end of a barrier each rank has heard, directly or through
    others, from all ranks.

    Freedom from deadlock follows. The two ends of a transfer are in one step, so all ranks run through their steps in a
    common order. Suppose ranks are stuck, and take the earliest step of a stuck rank. All its participants have
    finished the steps before it, so all have posted their ends, at once and without blocking. Both ends of a pair post
    its rows in the schedule's order, so each message meets its own receive, with one communicator and one tag. Thus
    only data can be missing: a transfer whose source is filled in its own step waits for itself. The rules on reads
    exclude this case. The same holds with several steps in flight, because they start in order.

    Steps declared independent may overlap in any way. A stronger rule proves this harmless: no step reads a block that
    a step writes, and no two steps write one block, so all orders have the same result.

    Copies and orders are proved exactly. For commutative reductions a wrong set of contributions escapes with a
    probability of at most (p / 2^64)^2 per place of the output, see ``contributions``.

    :param schedule: schedule to prove.
    :param commutative: whether reductions may combine contributions in any order.
    :raises ScheduleError: if a rule is violated; the message names step, ranks, buffer and block of the first
        violation.

    Cost: O(moves log moves) time, about 100 bytes per move, and for reductions some microseconds per step.
    """
    places = Places(schedule)
    broken = malformed(schedule, places)
    sound = broken.row if broken else schedule.num_rows
    history = History(schedule, places, sound)
    found = hazard(history, commutative) or broken
    if found:
        raise found.error(schedule)
    compare(history, commutative)
    if schedule.collective == "barrier":
        from .meeting import meet  # imported late because only the proof of a barrier needs it

        meet(schedule)
    return Proof(schedule.num_rows, schedule.num_steps, len(schedule.messages), len(history.row))
