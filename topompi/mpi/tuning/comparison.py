"""The comparison of measured algorithms with the MPI library's own (native), and the rules that follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from math import ceil, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..execution.specs import NATIVE
from ..selection.classes import class_bytes, size_class
from ..selection.judging import CLEAR
from ..selection.rules import Rule, Rules
from .record import Measured, TuneRecord

__all__ = [
    "CHANCE",
    "ComparedRow",
    "compare",
    "floor",
    "interval",
    "is_undecided",
    "rounds_needed",
    "rules_of",
    "winner",
]

Floats = NDArray[np.float64]
TOO_FEW = "too few rounds"
CHANCE = 0.025  # greatest probability that at a size any algorithm seems faster than native only by luck


@dataclass(frozen=True)
class ComparedRow:
    """The comparison of one algorithm with native at one size.

    :param method: mpi4py's name of the call.
    :param nbytes: size in bytes.
    :param algorithm: name of the algorithm.
    :param seconds: median time in seconds.
    :param ratio: median over rounds of native's time over the algorithm's: above 1 if the algorithm is faster.
    :param low: lower end of the ratio's 95 % confidence interval.
    :param high: upper end of the ratio's 95 % confidence interval.
    :param floor: lower bound of the ratio; 0 if there are too few rounds. With a probability of at least 97.5 % the
        bounds of all algorithms at this size are right.
    """

    method: str
    nbytes: int
    algorithm: str
    seconds: float
    ratio: float
    low: float
    high: float
    floor: float

    @property
    def verdict(self) -> str:
        """The result in words: ``1.23x faster``, ``1.08x slower`` or ``not significant``; "" for native."""
        if self.algorithm == NATIVE:
            return ""
        if self.low <= 1 <= self.high:
            return "not significant"
        if self.ratio < 1:
            return f"{1 / self.ratio:.2f}x slower"
        return ", ".join(filter(None, (f"{self.ratio:.2f}x faster", self.doubt)))

    @property
    def doubt(self) -> str:
        """The reason, in words, why an algorithm whose interval is above 1 does not win; "" in all other cases."""
        if self.wins or self.low <= 1:
            return ""
        if self.ratio < CLEAR:
            return f"by less than {CLEAR - 1:.0%}"
        return "perhaps luck" if self.floor else TOO_FEW

    @property
    def wins(self) -> bool:
        """Whether the algorithm is at least 5 % faster than native, and not by luck (``floor`` is above 1)."""
        return self.ratio >= CLEAR and self.floor > 1


def compare(results: list[Measured]) -> list[ComparedRow]:
    """Compare the algorithms of one method and size: a row for each, native first, then from fastest to slowest.

    :param results: measurements of one method and size, with native among them; calls of all algorithms took turns.
    """
    native = np.array(next(one.samples for one in results if one.algorithm == NATIVE))
    # By C. E. Bonferroni's bound, the probability that any of the algorithms is lucky is then at most CHANCE.
    chance = CHANCE / max(len(results) - 1, 1)
    rows = [_row(one, native, chance) for one in results]
    return sorted(rows, key=lambda row: (row.algorithm != NATIVE, row.seconds))


def winner(rows: list[ComparedRow]) -> ComparedRow:
    """The row of the fastest algorithm that wins against native; native's row if none wins.

    :param rows: the rows of one method and size, as ``compare`` sorts them.
    """
    return next((row for row in rows[1:] if row.wins), rows[0])


def rounds_needed(rivals: int) -> int:
    """The least number of rounds in which an algorithm that is always faster than native is significantly faster.

    :param rivals: number of measured algorithms except native.
    """
    return ceil(log2(max(rivals, 1) / CHANCE))


def is_undecided(rows: list[ComparedRow]) -> bool:
    """Whether an algorithm seems faster than native, but there are too few rounds to decide.

    :param rows: the rows of one method and size.
    """
    return any(row.doubt == TOO_FEW for row in rows)


def rules_of(record: TuneRecord) -> Rules:
    """The rules that follow from a record, for jobs like the recorded one, the measured methods, and their sizes.

    A rule covers the size class of a measured size. Neighbouring size classes with the same winner share a rule. If
    native won, it gets a rule, too. A size at which the measurements do not decide gets no rule.

    :param record: the record of the tuning run.
    """
    rules = []
    results = sorted(record.results, key=lambda one: (one.method, one.nbytes))
    for method, of_method in groupby(results, lambda one: one.method):
        won = []
        for nbytes, of_size in groupby(of_method, lambda one: one.nbytes):
            rows = compare(list(of_size))
            if not is_undecided(rows):
                won.append((size_class(nbytes), winner(rows)))
        rules += [_rule(record, method, run) for run in _runs(won)]
    return Rules("", tuple(rules))


def _rule(record: TuneRecord, method: str, rows: list[tuple[int, ComparedRow]]) -> Rule:
    """The rule for neighbouring size classes with the same winner.

    :param record: the record of the tuning run.
    :param method: mpi4py's name of the call.
    :param rows: each class and the row of its winner, in ascending order of sizes.
    """
    algorithm = rows[0][1].algorithm
    return Rule(
        algorithm,
        frozenset([method]),
        (class_bytes(rows[0][0])[0], class_bytes(rows[-1][0])[1]),
        (record.ranks, record.ranks),
        (record.hosts, record.hosts),
        record.ranks_per_host,
        record.topology,
        "no other is clearly faster" if algorithm == NATIVE else _gain([row.ratio for _, row in rows]),
    )


def _row(one: Measured, native: Floats, chance: float) -> ComparedRow:
    samples = np.array(one.samples)
    ratios = native[: len(samples)] / samples
    seconds, ratio = float(np.median(samples)), float(np.median(ratios))
    return ComparedRow(one.method, one.nbytes, one.algorithm, seconds, ratio, *interval(ratios), floor(ratios, chance))


def _runs(won: list[tuple[int, ComparedRow]]) -> Iterator[list[tuple[int, ComparedRow]]]:
    """Groups of neighbouring size classes with the same winner; each class with the row of its winner."""
    rows: list[tuple[int, ComparedRow]] = []
    for number, row in won:
        if rows and (rows[-1][1].algorithm != row.algorithm or number != rows[-1][0] + 1):
            yield rows
            rows = []
        rows.append((number, row))
    if rows:
        yield rows


def _gain(ratios: list[float]) -> str:
    low, high = min(ratios), max(ratios)
    times = f"{low:.2f}x" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f}x to {high:.2f}x"
    return f"measured {times} faster than native"


def interval(ratios: Floats) -> tuple[float, float]:
    """A 95 % confidence interval of the median; if there are fewer than 6 numbers, the smallest and the largest.

    :param ratios: independent numbers, shape (rounds,).
    """
    if len(ratios) < 6:
        return float(ratios.min()), float(ratios.max())
    return floor(ratios, 0.025), -floor(-ratios, 0.025)


def floor(ratios: Floats, chance: float) -> float:
    """A lower confidence bound of the median; 0 if there are too few numbers.

    Source: the order statistic of the binomial test, as ``scipy.stats.quantile_test`` computes it.

    :param ratios: independent numbers, shape (rounds,).
    :param chance: greatest probability with which the bound may be wrong.
    """
    from scipy.stats import quantile_test  # imported here, because it takes half a second, and only rank 0 needs it

    tested: Any = quantile_test(ratios, q=1, p=0.5, alternative="greater")
    low = float(tested.confidence_interval(confidence_level=1 - chance).low)
    return 0.0 if np.isnan(low) else low
