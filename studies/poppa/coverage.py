"""Coverage and errors of each estimator, over caches, phases, speeds and lengths: ``studies poppa coverage``.

The job runs beside a partner of constant load. All estimators read the same logs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from studies.tables import Table, show_many
from topompi.machine.colocation.estimates.estimators import METHODS, estimate
from topompi.machine.colocation.estimates.records import ProgressRates, groups_of

from .jobmodel import Phase, Shutter, simulate

__all__ = ["Cell", "logs_of", "main", "score", "scores"]

PAGE = "prices-model.md"
LOGS, QUICK = 40, 4  # logs per cell
REFILLS = (0.0, 0.5, 5.0, 20.0)  # milliseconds
PHASES = (0.0, 1.0, 5.0, 20.0, 100.0, 1000.0)  # milliseconds of the shortest phase; 0 for a job without phases
LOADS = (0.2, 1.0)  # of the partner
LENGTHS = ((20, 0), (20, 2), (40, 2))  # shutters of the job; each how many is long, 0 for none
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """A case of the grid.

    :param refill: milliseconds of the time constant with which caches refill after a stop.
    :param phase: milliseconds of the shorter of two phases, 0 for a job without phases.
    :param load: the partner's load on what the jobs share, 0 to 1.
    :param shutters: number of shutters of the job.
    :param long_every: each how many of them one is long, 0 for none.
    """

    refill: float
    phase: float
    load: float
    shutters: int
    long_every: int


class Score(NamedTuple):
    """Figures of an estimator in a cell.

    :param coverage: share of the intervals that contain the truth.
    :param width: mean width of the intervals.
    :param error: mean absolute error of the performance.
    :param price: mean error of the price by performance squared, relative to that by the truth.
    :param doubts: share of the estimates with a reason to doubt them.
    """

    coverage: float
    width: float
    error: float
    price: float
    doubts: float


def logs_of(cell: Cell, logs: int, seed: int = 0) -> tuple[list[ProgressRates], Reals]:
    """Simulate independent logs of the job; return its rates in each, and its true performance while it was logged.

    :param cell: the case.
    :param logs: number of logs.
    :param seed: seed of starts, pauses and noise.
    """
    seconds = cell.phase / 1000
    phases = [Phase(seconds, 2.0, 0.1), Phase(1.3 * seconds, 0.8, 0.55)] if cell.phase else [Phase(1.0, 1.0, 0.357)]
    shutter = Shutter(pause=0.02, poisson=True, long_every=cell.long_every)
    partner = [Phase(1.0, aggressiveness=cell.load)]
    found = simulate(
        [phases, partner], cell.shutters, shutter, nodes=logs, noise=0.005, refill=cell.refill / 1000, seed=seed
    )
    groups = groups_of(found.records, "0")
    groups, place = groups.only(groups.alone), np.arange(logs).repeat(cell.shutters)
    return [groups.only(place == log) for log in range(logs)], found.by_node[:, 0]


def score(groups: Sequence[ProgressRates], truth: Reals, method: str) -> Score:
    """Return the figures of an estimator.

    :param groups: rates of the job, per log.
    :param truth: true performance in each log.
    :param method: the estimator's name.
    """
    found = [estimate(one, method) for one in groups]
    value, low, high = np.array([(one.performance, one.low, one.high) for one in found]).T
    covers = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
    price = np.clip(value, 0, 1) ** 2 / truth**2 - 1
    doubts = np.mean([bool(one.doubt) for one in found])
    return Score(*map(float, (covers.mean(), (high - low).mean(), abs(value - truth).mean(), price.mean(), doubts)))


def scores(logs: int) -> NDArray[np.float64]:
    """Return the figures of all estimators in all cells, by refill time, length of the log, case and estimator.

    :param logs: number of logs per cell.
    """
    cells = [
        Cell(refill, phase, load, shutters, long_every)
        for refill, (shutters, long_every), phase, load in product(REFILLS, LENGTHS, PHASES, LOADS)
    ]
    with ProcessPoolExecutor() as pool:
        found = np.array([*pool.map(_scored, cells, repeat(logs))])
    return found.reshape(len(REFILLS), len(LENGTHS), len(PHASES) * len(LOADS), len(METHODS), len(Score._fields))


def _scored(cell: Cell, logs: int) -> list[Score]:
    made = logs_of(cell, logs)
    return [score(*made, method) for method in METHODS]


def _tables(quick: bool) -> Iterator[Table]:
    found = scores(QUICK if quick else LOGS)
    head = ["least coverage", "mean", "width", "error", "largest", "price", "too short to tell"]
    all_cells = found.reshape(-1, *found.shape[3:])
    whole = ([f"`{method}`", *_figures(all_cells[:, at])] for at, method in enumerate(METHODS))
    yield "poppa estimators", ["estimator", *head], whole
    yield "poppa coverage", ["refill, ms", "shutters", "long ones", "estimator", *head], _rows(found)


def _rows(found: NDArray[np.float64]) -> Iterator[list[str]]:
    """Yield a row per refill time, length of the log and estimator, over phases and loads."""
    for (at, refill), (length, (shutters, long_every)) in product(enumerate(REFILLS), enumerate(LENGTHS)):
        count = shutters // long_every if long_every else 0
        for number, method in enumerate(METHODS):
            yield [f"{refill:g}", str(shutters), str(count), method, *_figures(found[at, length, :, number])]


def _figures(cells: NDArray[np.float64]) -> Iterator[str]:
    """Yield the least coverage, the means of all figures and, after the mean error, that of the worst cell."""
    coverage, width, error, price, doubts = cells.mean(axis=0)
    shown = cells[:, 0].min(), coverage, width, error, cells[:, 2].max(), price, doubts
    return map(str.format, ("{:.0%}", "{:.0%}", "{:.2f}", "{:.3f}", "{:.3f}", "{:+.0%}", "{:.0%}"), shown)


def main(arguments: Sequence[str]) -> int:
    """Run the study: print its tables, and with ``-o`` put them into the page.

    :param arguments: ``-o DIR``, ``--quick`` for few logs, which fill no page, and ``--only TABLE``.
    :returns: exit code; 2 if no table has the name of ``--only``.
    """
    return show_many("poppa coverage", PAGE, _tables, arguments)
