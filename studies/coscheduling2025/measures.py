"""Figures of co-scheduled jobs: the speed-up of each job, and the use of a full machine.

The definitions are those of A. Tsoukleidis-Karydakis, Performance modeling for co-scheduling in HPC systems, NTUA 2025,
sections 3.1 and 5.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topompi.machine.jobs import Outcome
from topompi.machine.jobs.metrics import utilisation

__all__ = ["PairFigures", "improvement", "job_speedups", "pair_figures"]


@dataclass(frozen=True)
class PairFigures:
    """Figures of the jobs that ran for one second or more.

    :ivar speedup: mean of the jobs' speed-ups.
    :ivar weighted: mean of the speed-ups, weighted by run time in the schedule times nodes.
    :ivar slowed: share of jobs with a speed-up below 1.
    :ivar ended: share of jobs that were ended at their request before their work was done.
    :ivar steady_use: mean share of slots in use while jobs waited, that is, without the machine's filling and draining;
        NaN if no job waited.
    :ivar turnaround: mean seconds from arrival to end.
    """

    speedup: float
    weighted: float
    slowed: float
    ended: float
    steady_use: float
    turnaround: float


def job_speedups(outcome: Outcome) -> NDArray[np.float64]:
    """Return the run time on whole nodes over the run time in the schedule, shape (jobs that ran for a second,)."""
    jobs, at = outcome.workload, _counted(outcome)
    return jobs.duration[at] / (outcome.end - outcome.start)[at]


def _counted(outcome: Outcome) -> NDArray[np.intp]:
    run = outcome.end - outcome.start
    return np.flatnonzero((run > 0) & (outcome.workload.duration > 0))


def pair_figures(outcome: Outcome) -> PairFigures:
    """Compute the figures of an outcome."""
    at, jobs = _counted(outcome), outcome.workload
    if not len(at):
        return PairFigures(*[float("nan")] * 6)
    run, speedups = (outcome.end - outcome.start)[at], job_speedups(outcome)
    request = jobs.request[at]
    return PairFigures(
        speedup=float(speedups.mean()),
        weighted=float(np.average(speedups, weights=run * jobs.nodes[at])),
        slowed=float((speedups < 1).mean()),
        ended=float(((request > 0) & (run >= request) & (jobs.run[at] < request)).mean()),
        steady_use=_steady_use(outcome),
        turnaround=float((outcome.end - jobs.submit)[at].mean()),
    )


def _steady_use(outcome: Outcome) -> float:
    """Return the mean use between the first and the last second at which a job waited."""
    waits = outcome.ran[outcome.start[outcome.ran] > outcome.workload.submit[outcome.ran]]
    if not len(waits):
        return float("nan")
    first, last = int(outcome.workload.submit[waits].min()), int(outcome.start[waits].max())
    use = utilisation(outcome, held=True)
    times = np.clip(use.times, first, last)
    return float((use.values[:-1] * np.diff(times)).sum() / (last - first))


def improvement(outcome: Outcome, baseline: Outcome) -> float:
    """Return how much longer the baseline's makespan is than this one's, as a share of this one's.

    :param outcome: the outcome.
    :param baseline: the outcome of the same jobs under the policy to compare with.
    """
    spans = [one.end.max() - one.workload.submit.min() for one in (baseline, outcome)]
    return float(spans[0] / spans[1] - 1)
