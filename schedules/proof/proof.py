"""The public entry of the checker."""

from __future__ import annotations

from dataclasses import dataclass

from ..schedule import Schedule
from .hazards import hazard
from .history import History
from .meeting import meet
from .places import Places
from .results import compare
from .rows import malformed

__all__ = ["Proof", "check"]


@dataclass(frozen=True)
class Proof:
    """What was proved of a schedule, in numbers.

    :param rows: transfers, local moves included; ``messages`` those between two ranks.
    :param moves: single blocks that they move.
    """

    rows: int
    steps: int
    messages: int
    moves: int


def check(schedule: Schedule, commutative: bool = True) -> Proof:
    """Prove by symbolic execution that a schedule does what MPI defines and cannot deadlock.

    Proved, in this order within each step: ranks, buffers and blocks exist, and the input is not written; nothing is
    read that is not yet defined; no place is written by two transfers of a step, reductions excepted, nor read by one
    and written by another; at the end every place of the output holds what MPI defines, for reductions each
    contribution exactly once, and in rank order if not commutative; at the end of a barrier each rank has heard, over
    any others, of all ranks.

    Freedom from deadlock. The two ends of a transfer stand in one step, so all ranks go through their steps in one
    common order. Were ranks stuck, take the earliest step in which one is: all its participants have finished what
    comes before, so all have posted their ends, all at once and without blocking; both ends of a pair post its rows
    in the order of the schedule, so each message meets its own receive, with one communicator and one tag. So nothing
    can be waiting but data: a transfer whose source is filled in its own step waits for itself. That is what remains
    to be caught, and is, as a read of something undefined or touched by two. The same holds with several steps in
    flight, which start in order.

    Steps declared independent may overlap in any way. That is proved harmless by the stronger rule that no step reads
    what a step writes and no two write one place: then all orders have the same result.

    Copies and orders are proved exactly; that contributions to a commutative reduction are the right ones, up to a
    chance of (p / 2^64)^2 for each place of the output, see ``contributions``.

    :param commutative: whether reductions may combine contributions in any order.
    :raises ScheduleError: for the first violation, naming step, ranks, buffer and block.

    Cost: O(moves log moves) time, about 100 bytes a move, and for reductions some microseconds a step.
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
        meet(schedule)
    return Proof(schedule.num_rows, schedule.num_steps, len(schedule.messages), len(history.row))
