"""The regret of choices: the time of the chosen algorithm over the least time of those that were measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .algorithms import described
from .data import Cell, Row

__all__ = ["TIE", "Contest", "Summary", "by_rule", "contests", "correlation", "oracle", "regrets", "summary"]

Floats = NDArray[np.float64]
TIE = 1.05  # a choice whose time is at most this multiple of the least one has found the best algorithm
EDGES = (2 << 10, 64 << 10, 1 << 20, 8 << 20)  # bytes at which classes of sizes begin


@dataclass(frozen=True, eq=False)
class Contest:
    """The algorithms of a cell that schedules describe, each with the least time of its variants.

    Variants of one algorithm differ in segments, ports, or kinds of sends, and share the name.

    :param cell: the measured cell.
    :param names: names of the algorithms.
    :param measured: least measured seconds of each algorithm, shape (algorithms,).
    :param predicted: least predicted seconds of each algorithm, shape (algorithms,).
    """

    cell: Cell
    names: tuple[str, ...]
    measured: Floats
    predicted: Floats

    @property
    def best(self) -> float:
        """The least measured seconds of the algorithms."""
        return float(self.measured.min())

    @property
    def chosen(self) -> float:
        """The measured seconds of the algorithm that is predicted to be fastest."""
        return float(self.measured[self.predicted.argmin()])

    @property
    def size_class(self) -> int:
        """The class of the size, from 0."""
        return sum(self.cell.first.nbytes >= edge for edge in EDGES)

    @property
    def ranks_class(self) -> int:
        """The class of the number of ranks: up to 32, up to 256, or more."""
        return int(self.cell.first.ranks > 32) + int(self.cell.first.ranks > 256)

    def seconds_by(self, order: Sequence[str]) -> float:
        """The measured seconds of the first algorithm of an order that is in the cell; NaN if none is."""
        known = dict(zip(self.names, self.measured.tolist(), strict=True))
        return next((known[name] for name in order if name in known), float("nan"))


def contests(
    cells: Sequence[Cell], predict: Callable[[Sequence[Row]], Floats], *, variants: bool = False
) -> list[Contest]:
    """The contests of all cells with two described algorithms or more.

    :param cells: measured cells.
    :param predict: function that returns the predicted seconds of described rows.
    :param variants: True if each variant counts as an algorithm.
    """
    rows = [row for cell in cells for row in cell.rows if described(row) is not None]
    seconds = dict(zip(rows, predict(rows).tolist(), strict=True))
    found = []
    for cell in cells:
        least: dict[str, tuple[float, float]] = {}
        for row in cell.rows:
            if row in seconds:
                name = row.algorithm if variants else row.norm
                before = least.get(name, (np.inf, np.inf))
                least[name] = (min(before[0], row.seconds), min(before[1], seconds[row]))
        if len(least) > 1:
            measured, predicted = np.array(list(least.values())).T
            found.append(Contest(cell, tuple(least), measured, predicted))
    return found


def regrets(chosen: Sequence[float], best: Sequence[float]) -> Floats:
    """The quotients of times, where a tie counts as 1.

    :param chosen: seconds of the choices, shape (cells,).
    :param best: seconds of the best choices, shape (cells,).
    """
    ratio: Floats = np.asarray(chosen, dtype=np.float64) / np.asarray(best)
    return np.where((ratio > 1) & (ratio <= TIE), 1.0, ratio)


@dataclass(frozen=True)
class Summary:
    """The regret over cells.

    :param cells: number of cells.
    :param mean: geometric mean; NaN if there are no cells.
    :param tenth: the 90th percentile.
    """

    cells: int
    mean: float
    tenth: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({self.tenth:.2f})" if self.cells else ""


def summary(values: Floats) -> Summary:
    """The summary of regrets; NaN, where there was no choice, does not count."""
    known = values[~np.isnan(values)]
    if not len(known):
        return Summary(0, float("nan"), float("nan"))
    return Summary(len(known), float(np.exp(np.log(known).mean())), float(np.quantile(known, 0.9)))


def _orders(some: Sequence[Contest], key: Callable[[Contest], Hashable]) -> Mapping[Hashable, list[str]]:
    """The algorithms of each class by their mean regret, the least first; where one is missing, its regret is 2."""
    table: dict[Hashable, list[Contest]] = defaultdict(list)
    for contest in some:
        table[key(contest)].append(contest)
    found = {}
    for one, members in table.items():
        names = sorted({name for contest in members for name in contest.names})

        def loss(name: str, members: list[Contest] = members) -> float:
            times = [(contest.seconds_by([name]), contest.best) for contest in members]
            return float(np.mean([np.log(2.0 if np.isnan(time) else time / best) for time, best in times]))

        found[one] = sorted(names, key=loss)
    return found


def _of_size(contest: Contest) -> Hashable:
    return contest.cell.first.collective, contest.size_class


def _of_inputs(contest: Contest) -> Hashable:
    first = contest.cell.first
    return first.system, first.implementation, first.collective, contest.size_class, contest.ranks_class


def by_rule(seen: Sequence[Contest], some: Sequence[Contest]) -> list[float]:
    """The seconds of the choices of the best rule by collective and size, NaN where the rule has no choice.

    :param seen: contests to which the rule is fitted.
    :param some: contests in which it chooses.
    """
    orders = _orders(seen, _of_size)
    return [contest.seconds_by(orders.get(_of_size(contest), [])) for contest in some]


def oracle(some: Sequence[Contest]) -> list[float]:
    """The seconds of the best fixed algorithms of each machine, library, collective, size class and class of ranks.

    They are fitted to the very contests in which they choose. No model that sees these inputs alone does better.

    :param some: contests.
    """
    orders = _orders(some, _of_inputs)
    return [contest.seconds_by(orders[_of_inputs(contest)]) for contest in some]


def correlation(contest: Contest) -> float:
    """Spearman's rank correlation of predicted and measured times; NaN for two algorithms."""
    if len(contest.names) < 3:
        return float("nan")
    measured, predicted = (np.argsort(np.argsort(one)) for one in (contest.measured, contest.predicted))
    return float(np.corrcoef(measured, predicted)[0, 1])
