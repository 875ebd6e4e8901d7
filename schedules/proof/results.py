"""The comparison of every rank's final output with MPI's definition, and the cause of a difference."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .blame import Ancestry
from .contributions import ranges_of, sums_of
from .error import ScheduleError
from .history import History
from .places import Places
from .values import Reductions, Values

__all__ = ["compare"]

Integers = NDArray[np.int64]


def compare(history: History, commutative: bool) -> None:
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


def _ranks(places: Places, output: int) -> str:
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
