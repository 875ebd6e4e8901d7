"""Coverage of intervals and errors of estimates, over caches, phases, speeds and lengths: ``studies poppa coverage``.

The job runs beside a partner of constant load. ``-o docs/lab`` puts the table into the page.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from studies.stamps import stamp_of
from studies.tables import fill, table_lines
from topompi.machine.colocation.estimates.estimators import Estimate, estimate
from topompi.machine.colocation.estimates.records import Groups, groups_of

from .jobmodel import Phase, Shutter, simulate

__all__ = ["Cell", "logs_of", "main", "score"]

PAGE = "prices-model.md"
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


def logs_of(cell: Cell, logs: int, seed: int = 0) -> tuple[list[Groups], Reals]:
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


def score(groups: Sequence[Groups], truth: Reals, of: Callable[[Groups], Estimate] = estimate) -> Score:
    """Return the figures of an estimator.

    :param groups: rates of the job, per log.
    :param truth: true performance in each log.
    :param of: the estimator.
    """
    found = [of(one) for one in groups]
    value, low, high = np.array([(one.performance, one.low, one.high) for one in found]).T
    covers = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
    price = np.clip(value, 0, 1) ** 2 / truth**2 - 1
    doubts = np.mean([bool(one.doubt) for one in found])
    return Score(*map(float, (covers.mean(), (high - low).mean(), abs(value - truth).mean(), price.mean(), doubts)))


def rows_of(logs: int) -> Iterator[list[str]]:
    """Yield a row per refill time and length of the log, over phases and loads.

    :param logs: number of logs per cell.
    """
    for refill, (shutters, long_every) in product(REFILLS, LENGTHS):
        cells = [Cell(refill, phase, load, shutters, long_every) for phase, load in product(PHASES, LOADS)]
        made = [logs_of(cell, logs) for cell in cells]
        found = np.array([score(*one) for one in made])
        count = shutters // long_every if long_every else 0
        means = map(str.format, ("{:.0%}", "{:.2f}", "{:.3f}", "{:+.0%}", "{:.0%}"), found.mean(axis=0))
        yield [f"{refill:g}", str(shutters), str(count), f"{found[:, 0].min():.0%}", *means]


def main(arguments: Sequence[str]) -> int:
    """Run the study: print its table, and with ``-o`` put it into the page.

    :param arguments: ``-o DIR`` and ``--logs N``.
    :returns: exit code 0.
    """
    parser = argparse.ArgumentParser(prog="python -m studies poppa coverage")
    parser.add_argument("-o", dest="output", metavar="DIR", type=Path, help=f"folder whose {PAGE} gets the table")
    parser.add_argument("--logs", type=int, default=100, help="logs per cell")
    given = parser.parse_args(arguments)
    head = ["refill, ms", "shutters", "long ones", "least coverage", "mean", "width", "error", "price"]
    lines = list(table_lines([*head, "too short to tell"], rows_of(given.logs)))
    print("\npoppa coverage", *lines, sep="\n")
    if given.output is not None:
        command = f"python -m studies poppa coverage --logs {given.logs}"
        fill(given.output / PAGE, "poppa coverage", lines, stamp_of(command, __name__))
    return 0
