"""Waits of a month of LLNL Thunder's log under allocators, as logged and with the speed model ``links``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.paths import SHARED_DATA
from topompi.errors import BenchmarkError
from topompi.machine.interference import LinkSpeed
from topompi.machine.jobs import Cluster, Outcome, Workload, read_workload, simulate
from topompi.views import read_cluster

__all__ = ["ALLOCATORS", "COLUMNS", "FABRICS", "Figures", "cluster", "month", "rows_of"]

LOG = "workloads/LLNL-Thunder-2007-1.1-cln.swf.gz"
CORES = 4  # processors of a node
DAY = 86_400  # seconds
FABRICS = {
    "janus": (
        SHARED_DATA / "fabrics/janus-2014.ibnetdiscover.xz",
        SHARED_DATA / "fabrics/derived-ibsim-opensm/janus.minhop.opensm-lfts.dump.xz",
    ),
    "tree": ("XGFT(2; 18,56; 1,9)@rate=4xQDR", None),
}
ALLOCATORS = ("first", "contiguous", "bestfit", "isolated")
SEEDS = range(3)
COLUMNS = (
    "allocator",
    "wait as logged, min",
    "wait by links, min",
    "wait + run as logged, min",
    "wait + run by links, min",
    "node-hours added",
    "jobs slowed",
    "last end by links, d",
)


def month(first_day: int = 30, days: int = 30) -> Workload:
    """Return the jobs of Thunder's log that arrive in some days.

    :param first_day: days since the log's first arrival.
    :param days: number of days.
    """
    log = read_workload(SHARED_DATA / LOG, CORES)
    since = log.submit - log.submit[0]
    return log.select((since >= first_day * DAY) & (since < (first_day + days) * DAY))


def cluster(name: str) -> Cluster:
    """Return a cluster of ``FABRICS``."""
    source, tables = FABRICS[name]
    return read_cluster(str(source), lfts=tables)


@dataclass(frozen=True)
class Figures:
    """Figures of an outcome.

    :param wait: mean wait in minutes.
    :param response: mean of wait and run time in minutes.
    :param added: node-seconds of run time over those of the log, minus 1.
    :param slowed: share of the jobs that ran longer than logged.
    :param days: days from the first arrival to the last end.
    """

    wait: float
    response: float
    added: float
    slowed: float
    days: float

    @classmethod
    def of(cls, outcome: Outcome) -> Figures:
        """Compute the figures.

        :raises BenchmarkError: if a job was rejected, because policies are then not compared on the same jobs.
        """
        if len(outcome.rejected):
            raise BenchmarkError(f"{outcome.policy}: expecting all jobs to run, got {len(outcome.rejected)} rejected")
        jobs, run = outcome.workload, outcome.end - outcome.start
        wait, logged = outcome.start - jobs.submit, jobs.duration
        return cls(
            wait=float(wait.mean() / 60),
            response=float((wait + run).mean() / 60),
            added=float((run * jobs.nodes).sum() / (logged * jobs.nodes).sum() - 1),
            slowed=float((run > logged).mean()),
            days=float((outcome.end.max() - jobs.submit.min()) / DAY),
        )


def rows_of(
    jobs: Workload, machine: Cluster, allocators: Sequence[str] = ALLOCATORS, seeds: Sequence[int] = SEEDS
) -> Iterator[list[str]]:
    """Yield a row of cells for each allocator, in the order of ``COLUMNS``.

    :param jobs: the jobs.
    :param machine: the cluster.
    :param allocators: names of the allocators.
    :param seeds: seeds of the drawn traffic.
    """
    for name in allocators:
        logged = Figures.of(simulate(jobs, machine, allocator=name))
        found = [Figures.of(simulate(jobs, machine, allocator=name, speed=LinkSpeed(seed))) for seed in seeds]
        cells = [f"{logged.wait:,.1f}", _spread([one.wait for one in found])]
        cells += [f"{logged.response:,.1f}", _spread([one.response for one in found])]
        cells += [_spread([100 * one.added for one in found], " %"), _spread([100 * one.slowed for one in found], " %")]
        yield [f"`{name}`", *cells, _spread([one.days for one in found])]


def _spread(values: Sequence[float], unit: str = "") -> str:
    """Format the mean of some values, and the least and the largest if they differ."""
    mean, low, high = (f"{one:,.1f}" for one in (np.mean(values), min(values), max(values)))
    return f"{mean}{unit}" if low == high else f"{mean}{unit} ({low} to {high})"
