"""Tables of the walk: the claim about machine time, modes, measured cells, hidden cells, and all choices of cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from studies.tables import Table
from topompi.colocation.speedups.matrix import Speedups
from topompi.errors import BenchmarkError

from .hidden import Pairs, best, completed, designs, hidden_cells, machine_time, next_design, only_pairs
from .turns import ALONE, COMPACT, Turn, modes_of, name_of, ratio, rounds_of

__all__ = ["NEIGHBOURS", "tables"]

Reals = NDArray[np.float64]

NEIGHBOURS = (1, 2)  # measured neighbours of each program; the first is the one by which the walk pairs


def tables(truth: Speedups, turns: Sequence[Turn]) -> Iterator[Table]:
    """Yield the tables of the walk.

    :param truth: the measured matrix of all programs.
    :param turns: turns of all modes, those of every pairing included.
    :raises BenchmarkError: if no round is complete.
    """
    rounds = rounds_of(turns, modes_of(truth.programs, designs(truth.programs, 1)))
    if not len(rounds[ALONE]):
        raise BenchmarkError(f"turns of {', '.join(truth.programs)}: expecting a complete round, got none")
    head: tuple[str, ...] = "program", *(f"beside {name}" for name in truth.programs), "beside nothing"
    yield "walk gains", ("machine time of", "over that of", "whole node", "half a node per run"), _gains(truth, rounds)
    yield "walk modes", ("mode", "role", "expected", "whole node, s", "half a node per run, s"), _modes(truth, rounds)
    yield "walk cells", head, _cells(truth)
    head = "known of each program", "hidden cell", "measured", "predicted", "error"
    yield "walk hidden", head, _hidden(truth)
    head = (
        "known of each program", "choices", "hidden cells", "mean error", "largest", "mean error of 1",
        "of the speed-up beside nothing", "inside 90 %", "choices that find the best pairing",
    )  # fmt: skip
    yield "walk choices", head, _choices(truth)


def _span(value: float, low: float, high: float, digits: int = 2) -> str:
    if np.isnan(low):
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _known(neighbours: int) -> str:
    return "itself, " + ("1 neighbour" if neighbours == 1 else f"{neighbours} neighbours")


def _chosen(truth: Speedups, neighbours: int = NEIGHBOURS[0]) -> Pairs:
    """Return the pairing by the matrix that is completed from the cells of the rule's choice."""
    return best(completed(only_pairs(truth, next_design(truth, neighbours))))


def _worst(truth: Speedups) -> Pairs:
    return max(designs(truth.programs, 1), key=lambda pairs: machine_time(truth, pairs))


def _gains(truth: Speedups, rounds: Mapping[str, Reals]) -> Iterator[Sequence[object]]:
    chosen = name_of(_chosen(truth))
    others = {COMPACT: COMPACT, f"worst pairing ({name_of(_worst(truth))})": name_of(_worst(truth)), ALONE: ALONE}
    for words, mode in others.items():
        found = [_span(*ratio(rounds[mode][:, way], rounds[chosen][:, way]), 3) for way in (0, 1)]
        yield words, f"chosen pairing ({chosen})", *found


def _modes(truth: Speedups, rounds: Mapping[str, Reals]) -> Iterator[Sequence[object]]:
    pairings = {name_of(pairs): pairs for pairs in designs(truth.programs, 1)}
    roles: dict[str, list[str]] = {COMPACT: ["each beside itself"], ALONE: ["the other half empty"]}
    named = {f"chosen by {_known(number)}": _chosen(truth, number) for number in NEIGHBOURS}
    for role, pairs in (named | {"best measured": best(truth), "worst measured": _worst(truth)}).items():
        roles.setdefault(name_of(pairs), []).append(role)
    for mode, found in rounds.items():
        expected = machine_time(truth, pairings[mode]) if mode in pairings else 1.0
        seconds = [_span(*ratio(found[:, way], np.ones(len(found)))) for way in (0, 1)]
        yield mode, "; ".join(roles.get(mode, ["-"])), "-" if mode == ALONE else f"{expected:.3f}", *seconds


def _cells(truth: Speedups) -> Iterator[Sequence[object]]:
    for row, name in enumerate(truth.programs):
        cells = zip(truth.ratio[row], truth.low[row], truth.high[row], strict=True)
        yield name, *(_span(*cell) for cell in cells), f"{truth.alone[row]:.2f}"


def _hidden(truth: Speedups) -> Iterator[Sequence[object]]:
    for number in NEIGHBOURS:
        for one in hidden_cells(truth, next_design(truth, number)):
            error = f"{100 * one.error:+.1f} %"
            yield (
                _known(number),
                f"{one.program} beside {one.beside}",
                _span(*one.measured),
                _span(*one.predicted),
                error,
            )


def _choices(truth: Speedups) -> Iterator[Sequence[object]]:
    for number in NEIGHBOURS:
        every = designs(truth.programs, number)
        found = [one for pairs in every for one in hidden_cells(truth, pairs)]
        measured = np.array([one.measured[0] for one in found])
        beside_nothing = np.array([truth.alone[truth.number[one.program]] for one in found])
        guesses = np.array([one.predicted[0] for one in found]), np.ones(len(found)), beside_nothing
        errors, of_one, of_nothing = (100 * np.abs(guess / measured - 1) for guess in guesses)
        inside = sum(one.predicted[1] <= one.measured[0] <= one.predicted[2] for one in found)
        right = sum(best(completed(only_pairs(truth, pairs))) == best(truth) for pairs in every)
        yield (
            _known(number), len(every), len(found), f"{errors.mean():.1f} %", f"{errors.max():.1f} %",
            f"{of_one.mean():.1f} %", f"{of_nothing.mean():.1f} %", f"{inside} of {len(found)}",
            f"{right} of {len(every)}",
        )  # fmt: skip
