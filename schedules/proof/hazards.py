"""The rules for reads and writes of the same place in the same step, or in independent steps."""

from __future__ import annotations

import numpy as np

from .error import Violation, first_of, first_row
from .history import History

__all__ = ["hazard"]


def hazard(history: History, commutative: bool) -> Violation | None:
    """The first violation of the rules for reads and writes of a place, None if there is none."""
    found = [_two_writers(history, commutative), _undefined(history), _no_start(history), _touched(history)]
    return first_of(*found, *([_two_steps(history), _dependent(history)] if history.schedule.independent else []))


def _two_writers(history: History, commutative: bool) -> Violation | None:
    twice = np.flatnonzero(history.keys[1:] == history.keys[:-1])
    early, late = history.order[twice], history.order[twice + 1]
    if commutative:
        wrong = ~(history.reducing[early] & history.reducing[late])
        early, late = early[wrong], late[wrong]
    if not len(late):
        return None
    pick = int(late.argmin())
    move, other = late[pick], early[pick]
    both = history.reducing[move] and history.reducing[other]
    end = ", and the order of two reductions in one step is undefined" if both else ""
    return history.at(
        move, f"{history.name(history.write[move])} is written by {history.who(other)} in the same step{end}"
    )


def _undefined(history: History) -> Violation | None:
    found = first_row(history.source_write < 0)
    if found is None:
        return None
    move = history.later_reads[found]
    return history.at(move, f"{history.name(history.read[move])} {_missing(history, found)}")


def _missing(history: History, found: int) -> str:
    """The reason, in words, why the place that a move reads is undefined: it is written too late, or never.

    :param history: moves and writes of the schedule.
    :param found: index of the move in ``History.later_reads``.
    """
    move = history.later_reads[found]
    place, later = history.read[move], int(np.searchsorted(history.keys, history.read_keys(move)))
    if later == len(history.keys) or history.keys[later] // history.steps != place:
        return "is read, and nothing ever writes it"
    step, writer = int(history.keys[later] % history.steps), history.order[later]
    if step > history.step[move]:
        return f"is read before it arrives, in step {step} from rank {history.schedule.source[history.row[writer]]}"
    return f"is read in the very step in which {history.who(writer)} writes it: the transfer waits for itself"


def _no_start(history: History) -> Violation | None:
    """The violation by the first reduction into a place that was not written before; None if there is none."""
    first = np.ones(len(history.keys), dtype=bool)
    place = history.keys // history.steps
    first[1:] = place[1:] != place[:-1]
    moves = history.order[first]
    moves = moves[history.reducing[moves]]
    if not len(moves):
        return None
    move = moves.min()
    return history.at(move, f"reduces into {history.name(history.write[move])}, which holds nothing yet")


def _touched(history: History) -> Violation | None:
    """The violation by the first read of a place that another transfer writes in the same step; None if there is none.

    Reads of undefined places are left out, because ``_undefined`` finds them.
    """
    begin = history.source_write + 1
    inside = np.flatnonzero((begin > 0) & (begin < len(history.keys)))
    hit = inside[history.keys[begin[inside]] == history.read_keys(history.later_reads[inside])]
    end = np.searchsorted(history.keys, history.read_keys(history.later_reads[hit]), side="right") - 1
    reader = history.later_reads[hit]
    early, late = history.order[begin[hit]], history.order[end]
    wrong = (history.row[early] != history.row[reader]) | (history.row[late] != history.row[reader])
    if not wrong.any():
        return None
    pick = int(wrong.argmax())
    writer = early[pick] if history.row[early[pick]] != history.row[reader[pick]] else late[pick]
    place = history.name(history.read[reader[pick]])
    return history.at(reader[pick], f"{place} is read while {history.who(writer)} writes it in the same step")


def _two_steps(history: History) -> Violation | None:
    place = history.keys // history.steps
    twice = np.flatnonzero((place[1:] == place[:-1]) & (history.keys[1:] != history.keys[:-1]))
    if not len(twice):
        return None
    pick = int(history.order[twice + 1].argmin())
    early, late = history.order[twice[pick]], history.order[twice[pick] + 1]
    step = history.step[early]
    name = history.name(history.write[late])
    return history.at(late, f"{name} is also written in step {step}, and the steps are declared independent")


def _dependent(history: History) -> Violation | None:
    found = first_row(history.source_write >= 0)
    if found is None:
        return None
    move, write = history.later_reads[found], history.source_write[found]
    step = history.keys[write] % history.steps
    name = history.name(history.read[move])
    return history.at(move, f"{name} is read, which step {step} writes, and the steps are declared independent")
