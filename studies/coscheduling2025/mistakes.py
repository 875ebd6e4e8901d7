"""Co-scheduling on LLNL Thunder's log: whole, and on eight full days with wrong predictions and on a network.

Not from the source. The jobs draw programs measured on ARIS. Requests are longer by the lowest rate of the matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from studies.interference.waits import cluster, month
from studies.tables import Table
from topompi.machine.colocation.scheduling.allocators import Halves, Matched
from topompi.machine.colocation.scheduling.halves import on_halves
from topompi.machine.colocation.scheduling.isolating import IsolatedMatched
from topompi.machine.colocation.scheduling.speed import ColocatedSpeed
from topompi.machine.colocation.scheduling.table import RateTable, rate_table
from topompi.machine.interference import LinkSpeed
from topompi.machine.interference.streams import demands_of, network_of
from topompi.machine.jobs import Cluster, Outcome, Workload, simulate
from topompi.machine.jobs.allocation import Allocator
from topompi.machine.jobs.speed import SpeedProduct
from topompi.machine.jobs.study import interval

from .matrices import aris
from .measured import Measured, Measurements
from .measures import PairFigures, pair_figures

__all__ = ["FIGURES", "errors", "tables", "topology", "whole_log", "wrong"]

FIGURES = ("wait, min", "slowdown", "wait and run, min", "node-hours", "jobs slowed")
DAYS = 45, 8  # first day and number of days of the log; the machine is full
WHOLE = 0, 365  # more days than the log has
SEEDS = range(4)
ERRORS = (0.0, 0.1, 0.2, 0.4)  # standard deviation of the logarithm of a prediction over the truth


def wrong(table: RateTable, error: float, rng: np.random.Generator) -> RateTable:
    """Return rates with errors, independent in each cell.

    :param table: true rates.
    :param error: standard deviation of the logarithm of the predicted over the true rate.
    :param rng: source of the draws.
    """
    rates = table.rates * np.exp(rng.normal(0, error, table.rates.shape))
    rates[:, -1] = 1.0
    return RateTable(table.programs, rates)


def _figures(outcome: Outcome, jobs: Workload) -> list[float]:
    """Return the figures of ``FIGURES``, for the jobs of the log."""
    one: PairFigures = pair_figures(outcome)
    wait, run = outcome.start - jobs.submit, outcome.end - outcome.start
    slowdown = np.maximum(1, (wait + run) / np.maximum(run, 10)).mean()
    nodes = jobs.nodes.astype(np.int64)
    hours = (run * nodes).sum() / (jobs.duration * nodes).sum()
    return [wait.mean() / 60, slowdown, one.turnaround / 60, hours, one.slowed]


def _row(name: Sequence[str], found: Sequence[Sequence[float]]) -> list[str]:
    cells = list[str]()
    for at, values in enumerate(zip(*found, strict=True)):
        unit, digits = (100, ".1f") if at > 2 else (1, ".1f")
        one = interval([unit * value for value in values])
        words = f"{one.mean:{digits}}" + (" %" if at > 2 else "")
        cells.append(words if np.isnan(one.low) else f"{words} ({one.low:{digits}} to {one.high:{digits}})")
    return [*name, *cells]


def whole_log(seeds: Sequence[int] = SEEDS, jobs: int | None = None) -> Iterator[list[str]]:
    """Yield a row per scheduler: the figures of the whole log, in which the machine is mostly not full.

    :param seeds: seeds of the draws of programs.
    :param jobs: number of jobs, from the first; None for all.
    """
    log, truth, machine = month(*WHOLE).select(slice(jobs)), rate_table(aris()), Cluster.regular(1008, 18)
    drawn = [on_halves(log, truth.programs, seed=seed, stretch=1 / truth.slowest) for seed in seeds]
    halves, speed = machine.with_slots(2), ColocatedSpeed(truth)
    yield _row(("EASY",), [_figures(simulate(log, machine, "easy", "counts"), log)])
    for name, allocator in (("EASY Co", Halves()), ("matched", Matched(truth))):
        yield _row((name,), [_figures(simulate(one, halves, "easy", allocator, speed), log) for one in drawn])


def errors(seeds: Sequence[int] = SEEDS, jobs: int | None = None) -> Iterator[list[str]]:
    """Yield a row per scheduler and error of prediction: the figures of the days with means over draws.

    :param seeds: seeds of the draws of programs and errors.
    :param jobs: number of jobs, from the first; None for all.
    """
    log, truth = month(*DAYS).select(slice(jobs)), rate_table(aris())
    machine = Cluster.regular(1008, 18)
    number, halves = {name: at for at, name in enumerate(truth.programs)}, machine.with_slots(2)
    drawn = {seed: on_halves(log, truth.programs, seed=seed, stretch=1 / truth.slowest) for seed in seeds}
    speed = ColocatedSpeed(truth)
    yield _row(("EASY", "-"), [_figures(simulate(log, machine, "easy", "counts"), log)])
    yield _row(
        ("EASY Co", "-"), [_figures(simulate(one, halves, "easy", Halves(), speed), log) for one in drawn.values()]
    )
    for error in ERRORS:
        seen = {seed: wrong(truth, error, np.random.default_rng(seed)) for seed in seeds}
        found = [simulate(one, halves, "easy", Matched(seen[seed]), speed) for seed, one in drawn.items()]
        yield _row(("matched", f"{error:.0%}"), [_figures(one, log) for one in found])
        if not error:
            continue
        found = []
        for seed, one in drawn.items():
            learner = Measured(seen[seed])
            watch = Measurements(lambda a, b: float(truth.rates[number[a], number[b]]))
            found.append(simulate(one, halves, "easy", learner, speed, [watch]))
        yield _row(("matched, measuring", f"{error:.0%}"), [_figures(one, log) for one in found])


def topology(seeds: Sequence[int] = SEEDS, jobs: int | None = None) -> Iterator[list[str]]:
    """Yield a row per policy on Thunder's tree, on which jobs slow each other on links and in nodes.

    :param seeds: seeds of the traffic and of the programs.
    :param jobs: number of jobs, from the first; None for all.
    """
    log, tree, table = month(*DAYS).select(slice(jobs)), cluster("tree"), rate_table(aris())
    rate = float(network_of(tree).capacity.max())
    policies: dict[str, Allocator | str] = {
        "`first`": "first",
        "`isolated`": "isolated",
        "`halves`": Halves(),
        "`matched`": Matched(table),
        "`isolated-matched`": IsolatedMatched(table),
    }
    for name, allocator in policies.items():
        found = list[list[float]]()
        for seed in seeds:
            links, whole = LinkSpeed(seed), isinstance(allocator, str)
            given = log if whole else on_halves(log, table.programs, seed=seed, stretch=1 / table.slowest)
            if not whole:  # the processes of a node are on two, each of which sends half
                given = given.with_columns(injection=demands_of(log, rate, seed).injection / 2)
            speed = links if whole else SpeedProduct(links, ColocatedSpeed(table))
            machine = tree if whole else tree.with_slots(2)
            found.append(_figures(simulate(given, machine, "easy", allocator, speed), log))
        yield _row((name,), found)


def tables(quick: bool) -> Iterator[Table]:
    """Yield the tables of the whole log, of wrong predictions, and of the network.

    :param quick: whether there are two draws of few jobs only.
    """
    seeds, jobs = (range(2), 500) if quick else (SEEDS, None)
    yield "coscheduling log", ("scheduler", *FIGURES), whole_log(seeds, jobs)
    heads: tuple[str, ...] = "scheduler", "error", *FIGURES
    yield "coscheduling errors", heads, errors(seeds, jobs)
    heads = "allocator", *FIGURES
    yield "coscheduling topology", heads, topology(seeds, jobs)
