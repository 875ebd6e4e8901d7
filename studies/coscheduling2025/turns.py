"""Modes of sharing a node in turn: the plan of the rounds, node seconds of each mode, and ratios with intervals.

A turn runs programs side by side until each has ended once. A mode is a number of turns that together run each program
equally often: alone on the node, beside a second copy of itself (compact), or in the pairs of a pairing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topompi.tuning.comparison import interval

__all__ = ["ALONE", "COMPACT", "Step", "Turn", "modes_of", "name_of", "node_seconds", "plan", "ratio", "rounds_of"]

Reals = NDArray[np.float64]
Pairs = Sequence[tuple[str, str]]
Modes = Mapping[str, Sequence[tuple[str, ...]]]
ALONE, COMPACT = "alone", "compact"


class Step(NamedTuple):
    """A turn to run.

    :ivar round: number of the round, from 0.
    :ivar mode: name of the mode.
    :ivar programs: the programs that run side by side, one or two.
    """

    round: int
    mode: str
    programs: tuple[str, ...]


class Turn(NamedTuple):
    """A turn that has run.

    :ivar step: the step of the plan.
    :ivar seconds: seconds until each program had ended once.
    :ivar runs: program and seconds of each completed run; a program that ended early was restarted.
    """

    step: Step
    seconds: float
    runs: tuple[tuple[str, float], ...]


def name_of(pairs: Pairs) -> str:
    """Return the name of a pairing, for example ``a+b, c+d``."""
    return ", ".join("+".join(pair) for pair in pairs)


def modes_of(programs: Sequence[str], pairings: Sequence[Pairs]) -> dict[str, list[tuple[str, ...]]]:
    """Return the turns of each mode by its name.

    :param programs: names of the programs.
    :param pairings: pairings of all programs.
    """
    own: dict[str, list[tuple[str, ...]]] = {
        ALONE: [(one,) for one in programs],
        COMPACT: [(one, one) for one in programs],
    }
    return own | {name_of(pairs): list(pairs) for pairs in pairings}


def plan(modes: Modes, rounds: int) -> Iterator[Step]:
    """Yield the turns of all rounds; every second round is in reverse order, so that slow drift cancels.

    :param modes: turns of each mode.
    :param rounds: number of rounds.
    """
    steps = [(mode, programs) for mode, turns in modes.items() for programs in turns]
    for number in range(rounds):
        for mode, programs in steps[::-1] if number % 2 else steps:
            yield Step(number, mode, programs)


def node_seconds(turn: Turn) -> tuple[float, float]:
    """Return the node seconds of one run of each different program of a turn, counted in two ways.

    The first way counts the whole node until each program has ended once. The second counts half a node per run while
    the neighbour runs, because the next job can take the half that becomes free; it counts a whole node if the other
    half is empty.

    :param turn: the turn.
    """
    programs = turn.step.programs
    copies = len(programs) / len(set(programs))
    runs = [np.median([seconds for name, seconds in turn.runs if name == one]) for one in dict.fromkeys(programs)]
    return turn.seconds / copies, float(sum(runs)) / len(programs)


def rounds_of(turns: Sequence[Turn], modes: Modes) -> dict[str, Reals]:
    """Return the node seconds of one run of each program by mode, counted in two ways, shape (rounds, 2).

    Rounds that are not complete are left out.

    :param turns: the turns that have run, in any order.
    :param modes: turns of each mode.
    """
    done = {turn.step: node_seconds(turn) for turn in turns}
    last = max((turn.step.round for turn in turns), default=-1)
    complete = [
        number
        for number in range(last + 1)
        if all(Step(number, mode, one) in done for mode, parts in modes.items() for one in parts)
    ]
    return {
        mode: np.array([np.sum([done[Step(number, mode, one)] for one in parts], axis=0) for number in complete])
        .reshape(-1, 2)
        for mode, parts in modes.items()
    }  # fmt: skip


def ratio(over: Reals, under: Reals) -> tuple[float, float, float]:
    """Return the median over rounds of a ratio within each round, and its interval of 95 %.

    :param over: a value per round, shape (rounds,).
    :param under: a value per round, shape (rounds,).
    """
    values = over / under
    return (float(np.median(values)), *interval(values))
