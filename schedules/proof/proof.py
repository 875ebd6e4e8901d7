"""The public function of the checker, its result, and the final comparison with MPI's definition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..schedule import Schedule
from .blame import Ancestry
from .contributions import ranges_of, sums_of
from .error import ScheduleError
from .hazards import hazard
from .history import History
from .places import BlockPlaces
from .rows import malformed
from .values import Reductions, Values

__all__ = ["Proof", "check"]

Integers = NDArray[np.int64]


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
    places = BlockPlaces(schedule)
    broken = malformed(schedule, places)
    sound = broken.row if broken else schedule.num_rows
    history = History(schedule, places, sound)
    found = hazard(history, commutative) or broken
    if found:
        raise found.error(schedule)
    _compare(history, commutative)
    if schedule.collective == "barrier":
        _meet(schedule)
    return Proof(schedule.num_rows, schedule.num_steps, len(schedule.messages), len(history.row))


def _compare(history: History, commutative: bool) -> None:
    """Raise ScheduleError for the first place of the output whose final value is not the one that MPI defines."""
    places = history.places
    values = Values(history)
    last = history.last_write(np.arange(places.outputs.start, places.outputs.stop))
    given = np.where(last >= 0, values.of_write[last], -1) if len(values.of_write) else last
    reductions = values.reductions() if places.reduces else None
    if reductions is None:
        wrong = given != places.wanted
    else:
        wrong = (last < 0) | ~_complete(history, reductions, given, commutative)
    if wrong.any():
        output = int(wrong.argmax())
        raise _error(history, output, int(last[output]), int(given[output]), reductions, commutative)


def _complete(history: History, reductions: Reductions, given: Integers, commutative: bool) -> NDArray[np.bool_]:
    """Whether each place of the output combines exactly the contributions that MPI defines, shape (outputs,)."""
    places, size = history.places, history.schedule.size
    blocks = places.num_inputs // size
    if commutative:
        sums, wanted = sums_of(reductions, size, blocks)
        good = sums[given] == wanted[places.combined, places.wanted]
    else:
        held = ranges_of(reductions, size, blocks)
        good = held[given] == np.stack([0 * places.wanted, places.combined, places.wanted], axis=1)
    return np.asarray(good.all(axis=1))


def _ranks(places: BlockPlaces, output: int) -> str:
    combined = int(places.combined[output])
    return "all ranks" if combined == places.schedule.size else f"ranks 0 to {combined - 1}"


def _error(
    history: History, output: int, write: int, value: int, reductions: Reductions | None, commutative: bool
) -> ScheduleError:
    """The error for a place of the output whose last write left a wrong value."""
    places, schedule = history.places, history.schedule
    place, expected = places.outputs[output], int(places.wanted[output])
    rank = places.locate(place)[1]
    wanted = f"input block {expected} of {_ranks(places, output)}" if places.reduces else places.name(expected)
    if write < 0:
        return ScheduleError(f"end: {places.name(place)} is never written, expecting {wanted}", None, (rank,))
    if reductions is None:
        got = places.name(value)
    else:
        ancestry = Ancestry(history, reductions, value)
        fault = ancestry.first_fault(commutative)
        if fault:
            return fault.error(schedule)
        got = ancestry.contents
    row = history.row[history.order[write]]
    origin = f"in step {schedule.step[row]} from rank {schedule.source[row]}"
    return ScheduleError(f"end: {places.name(place)}: expecting {wanted}, got {got} {origin}", None, (rank,))


def _meet(schedule: Schedule) -> None:
    """Prove that at the end of a barrier each rank knows that all ranks have entered it.

    With a message a rank learns of all ranks that its sender knew of before the step.

    :raises ScheduleError: for the first rank that has not heard of some rank.
    Cost: O(messages p) time and p^2 / 4 bytes.
    """
    size = schedule.size
    heard = np.packbits(np.eye(size, dtype=np.bool_), axis=1)
    messages = schedule.messages
    ends = np.flatnonzero(np.diff(schedule.step[messages])) + 1
    for rows in np.split(messages, ends):  # a step
        np.bitwise_or.at(heard, schedule.destination[rows], heard[schedule.source[rows]])
    missing = np.unpackbits(heard, axis=1, count=size) == 0
    if missing.any():
        rank, other = (int(place) for place in np.argwhere(missing)[0])
        raise ScheduleError(f"end: rank {rank} may leave before rank {other} has entered", None, (rank,))
