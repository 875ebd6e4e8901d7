"""Pairs to measure of a few programs, the cells that stay hidden, their prediction, and pairings of all programs.

Programs are so few that every choice of pairs can be listed: with four programs there are three pairings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np

from topompi.colocation.pairing.pool import Knowledge, pair_jobs
from topompi.colocation.pairing.values import saved, weights_of
from topompi.colocation.prediction.cells import next_cells, predict
from topompi.colocation.speedups.matrix import Speedups

__all__ = ["Hidden", "best", "completed", "designs", "hidden_cells", "machine_time", "next_design", "only_pairs"]

Pairs = tuple[tuple[str, str], ...]


class Hidden(NamedTuple):
    """A measured cell that was hidden from the prediction.

    :ivar program: the program.
    :ivar beside: its neighbour.
    :ivar measured: its speed-up, and the ends of its interval of 95 %.
    :ivar predicted: the predicted speed-up, and the ends of its interval of 90 %.
    """

    program: str
    beside: str
    measured: tuple[float, float, float]
    predicted: tuple[float, float, float]

    @property
    def error(self) -> float:
        """Predicted over measured speed-up, less 1."""
        return self.predicted[0] / self.measured[0] - 1


def designs(programs: Sequence[str], neighbours: int) -> list[Pairs]:
    """Return every set of pairs in which each program has the same number of neighbours; 1 gives all pairings.

    Cost: grows with the binomial of the number of pairs; for about six programs at most.

    :param programs: names of the programs.
    :param neighbours: number of neighbours of each program.
    """
    pairs, wanted = list(combinations(programs, 2)), Counter(dict.fromkeys(programs, neighbours))
    sets = combinations(pairs, len(programs) * neighbours // 2)
    return [one for one in sets if Counter(chain.from_iterable(one)) == wanted]


def only_pairs(truth: Speedups, pairs: Iterable[tuple[str, str]]) -> Speedups:
    """Return the matrix with the cells of some pairs, and of each program beside itself, as the only known ones.

    :param truth: the measured matrix.
    :param pairs: the pairs, whose cells are known in both directions.
    """
    known = np.eye(len(truth), dtype=bool)
    for one, other in pairs:
        at, beside = truth.number[one], truth.number[other]
        known[at, beside] = known[beside, at] = True
    ratio, low, high = (np.where(known, values, np.nan) for values in (truth.ratio, truth.low, truth.high))
    return replace(truth, ratio=ratio, low=low, high=high)


def next_design(truth: Speedups, neighbours: int) -> Pairs:
    """Choose pairs by the rule of ``topompi colocate predict --next``, one after the other.

    The rule begins with each program beside itself. A pair is skipped if the design could not be completed with it.

    :param truth: the measured matrix, of which the rule sees the chosen pairs.
    :param neighbours: number of neighbours of each program.
    """
    possible, chosen = designs(truth.programs, neighbours), list[tuple[str, str]]()
    while len(possible) > 1:
        seen = only_pairs(truth, chosen)
        for row, column in next_cells(seen, predict(seen), truth.ratio.size):
            pair = truth.programs[min(row, column)], truth.programs[max(row, column)]
            left = [one for one in possible if pair in one]
            if left:
                possible, chosen = left, [*chosen, pair]
                break
    return possible[0]


def completed(seen: Speedups) -> Speedups:
    """Return a matrix whose unknown cells are predicted from the known ones.

    :param seen: the matrix.
    """
    made = predict(seen)
    return replace(seen, ratio=np.where(seen.known, seen.ratio, made.speedup))


def hidden_cells(truth: Speedups, pairs: Iterable[tuple[str, str]]) -> list[Hidden]:
    """Predict every cell that is not of some pairs from the cells that are.

    :param truth: the measured matrix.
    :param pairs: the pairs whose cells the prediction sees.
    """
    seen = only_pairs(truth, pairs)
    made = predict(seen)
    return [
        Hidden(
            truth.programs[row],
            truth.programs[column],
            (truth.ratio[row, column], truth.low[row, column], truth.high[row, column]),
            (made.speedup[row, column], made.low[row, column], made.high[row, column]),
        )
        for row, column in np.argwhere(~seen.known).tolist()
    ]


def best(matrix: Speedups) -> Pairs:
    """Return the pairing of all programs that takes the least machine time, in the order of ``designs``.

    :param matrix: speed-ups without unknown cells.
    """
    found = pair_jobs(matrix.programs, Knowledge({}, speedups=matrix), by="speedups", all_paired=True)
    chosen = {frozenset(pair.programs) for pair in found.pairs}
    return next(one for one in designs(matrix.programs, 1) if {frozenset(pair) for pair in one} == chosen)


def machine_time(matrix: Speedups, pairs: Pairs) -> float:
    """Return the expected node seconds of a pairing over those on nodes of the programs' own (compact mode).

    :param matrix: speed-ups, those of these pairs known.
    :param pairs: the pairs.
    """
    weights = weights_of(matrix)
    value = saved(matrix, weights)
    less = sum(value[matrix.number[one], matrix.number[other]] for one, other in pairs)
    return float(1 - less / weights.sum())
