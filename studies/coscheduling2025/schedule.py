"""Makespans under co-scheduling, chapter 5: the experiments E1 (diversity), E2 (mean speed-up) and E3 (correlation).

Jobs arrive at once. The source does not give the run times of its Marconi jobs, the way in which it draws them, or most
values of its figures. Ours: Marconi's jobs have equal run times; jobs are drawn with equal chances.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from studies.tables import Table
from topompi.machine.colocation.scheduling.allocators import Halves, Matched
from topompi.machine.colocation.scheduling.halves import halves_of, nodes_of, on_halves
from topompi.machine.colocation.scheduling.speed import ColocatedSpeed
from topompi.machine.colocation.scheduling.table import rate_table
from topompi.machine.colocation.speedups.matrix import Speedups
from topompi.machine.jobs import Cluster, Outcome, Queue, Workload, simulate
from topompi.machine.jobs.queueing.backfill import Filler
from topompi.machine.jobs.study import Interval, interval

from .matrices import aris, marconi
from .measures import improvement, pair_figures

__all__ = ["PUBLISHED", "correlation", "diversity", "mean_speedups", "part_of_mean", "tables"]

PUBLISHED = {1.07: 24.42, 1.10: 25.29, 1.12: 25.87, 1.155: 30.63}  # table 5.1: mean speed-up -> improvement in per cent
JOBS = 500
TICKS = 100  # of a second; run times are whole ticks
KINDS = ((256,), (256, 64), (256, 64, 512), (256, 64, 512, 128))  # diversity 1 to 4; the source gives 256 and 64
RUNS = 12


@dataclass(frozen=True)
class Machine:
    """A cluster of equal nodes.

    :param nodes: number of nodes.
    :param cores: number of cores of each.
    """

    nodes: int
    cores: int


ARIS, MARCONI = Machine(200, 20), Machine(100, 48)


def part_of_mean(speedups: Speedups, mean: float, place: int) -> Speedups:
    """Return the part of three to six programs of a matrix whose mean is nearest to a wanted one.

    :param speedups: the matrix.
    :param mean: wanted mean of the part's cells.
    :param place: 0 for the nearest, 1 for the next, and so on.
    """
    parts = [list(part) for size in range(3, 7) for part in combinations(range(len(speedups)), size)]
    off = [abs(float(speedups.ratio[np.ix_(part, part)].mean()) - mean) for part in parts]
    chosen = parts[int(np.argsort(off, kind="stable")[place])]
    return speedups.only([speedups.programs[at] for at in chosen])


def draw(speedups: Speedups, machine: Machine, rng: np.random.Generator, jobs: int = JOBS) -> Workload:
    """Draw jobs of the matrix's programs, with equal chances, all of which arrive at once.

    :param speedups: the matrix, with run times and processes.
    :param machine: the cluster, by whose cores processes become nodes.
    :param rng: source of the draws.
    :param jobs: number of jobs.
    """
    at = rng.integers(len(speedups), size=jobs)
    names = np.array([speedups.programs[one] for one in at], dtype=object)
    run, nodes = np.rint(speedups.compact[at] * TICKS).astype(int), nodes_of(speedups.processes[at], machine.cores)
    return Workload.of("drawn", submit=np.zeros(jobs, int), run=run, nodes=nodes).with_columns(
        program=names, processes=speedups.processes[at]
    )


def run(jobs: Workload, speedups: Speedups, machine: Machine, names: Sequence[str]) -> tuple[Outcome, list[Outcome]]:
    """Run jobs under EASY on whole nodes, and under co-schedulers of `SCHEDULERS`.

    :param jobs: the jobs.
    :param speedups: the matrix.
    :param machine: the cluster.
    :param names: names of the co-schedulers.
    """
    cluster, table = Cluster.regular(machine.nodes, machine.nodes), rate_table(speedups)
    halves = on_halves(jobs, speedups.programs, halves=halves_of(jobs.columns["processes"], machine.cores))
    makers: dict[str, tuple[Queue | str, Halves]] = {
        "EASY Co": ("easy", Halves()),
        "Filler": (Filler(), Halves()),
        "matched": ("easy", Matched(table)),
    }
    found = list[Outcome]()
    for name in names:
        queue, allocator = makers[name]
        found.append(simulate(halves, cluster.with_slots(2), queue, allocator, ColocatedSpeed(table)))
    return simulate(jobs, cluster, "easy", "counts"), found


SCHEDULERS = ("EASY Co", "Filler", "matched")


def _percent(found: Sequence[float]) -> str:
    one: Interval = interval([100 * value for value in found])
    return f"{one.mean:.1f} ({one.low:.1f} to {one.high:.1f})"


def mean_speedups(runs: int = RUNS) -> Iterator[list[str]]:
    """Yield a row of experiment E2 per mean speed-up: published improvement, and ours under each co-scheduler.

    :param runs: number of draws.
    """
    for mean, published in PUBLISHED.items():
        gains, means = {name: list[float]() for name in ("EASY Co", "matched")}, list[float]()
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            part = part_of_mean(marconi(), mean, seed)
            easy, found = run(draw(part, MARCONI, rng), part, MARCONI, list(gains))
            means.append(float(part.ratio.mean()))
            for name, outcome in zip(gains, found, strict=True):
                gains[name].append(improvement(outcome, easy))
        cells = [f"{mean}", f"{np.mean(means):.3f}", f"{published:.2f}"]
        yield [*cells, *(_percent(one) for one in gains.values())]


def diversity(runs: int = RUNS) -> Iterator[list[str]]:
    """Yield a row of experiment E1 per number of process counts: improvement under each co-scheduler.

    :param runs: number of draws.
    """
    speedups = aris()
    for kinds in KINDS:
        at = np.flatnonzero(np.isin(speedups.processes, kinds))
        part, gains = speedups.only([speedups.programs[one] for one in at]), list[list[float]]()
        for seed in range(runs):
            easy, found = run(draw(part, ARIS, np.random.default_rng(seed)), part, ARIS, SCHEDULERS)
            gains.append([improvement(one, easy) for one in found])
        published = "12.6 (7.11)" if len(kinds) == 1 else "figure"
        yield [", ".join(map(str, kinds)), published, *(_percent(column) for column in zip(*gains, strict=True))]


def correlation(runs: int = 100) -> Iterator[list[str]]:
    """Yield a row of experiment E3 per scheduler: correlations with the improvement, over shuffles of one load.

    :param runs: number of shuffles.
    """
    for name in ("EASY Co", "matched"):
        jobs, rows = draw(aris(), ARIS, np.random.default_rng(0), 300), list[list[float]]()
        for seed in range(runs):
            order = np.random.default_rng(seed).permutation(len(jobs))
            easy, (found,) = run(jobs.select(order), aris(), ARIS, [name])
            one = pair_figures(found)
            rows.append([improvement(found, easy), one.speedup, one.weighted, one.steady_use, one.slowed])
        gain, *columns = np.array(rows).T
        r = [f"{np.corrcoef(gain, column)[0, 1]:.2f}" for column in columns[:3]]
        yield [name, *r, _percent(gain.tolist()), _percent(columns[3].tolist())]


def tables(quick: bool) -> Iterator[Table]:
    """Yield the tables of the three experiments.

    :param quick: whether each has two draws only.
    """
    runs, shuffles = (2, 3) if quick else (RUNS, 100)
    heads: tuple[str, ...] = "mean wanted", "mean", "published, %", "EASY Co, %", "matched, %"
    yield "coscheduling speedups", heads, mean_speedups(runs)
    heads = "processes", "EASY Co published, %", *(f"{one}, %" for one in SCHEDULERS)
    yield "coscheduling diversity", heads, diversity(runs)
    heads = "scheduler", "r: mean speed-up", "r: weighted mean", "r: use", "improvement, %", "slowed jobs, %"
    yield "coscheduling correlation", heads, correlation(shuffles)
