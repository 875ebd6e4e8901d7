"""Random workloads in place of the logs of two sources, which are not public."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topompi.machine.jobs import Workload, WorkloadError

__all__ = ["capacity_mix", "power_of_two_mix"]

DAY = 86400


def capacity_mix(rng: np.random.Generator, jobs: int, nodes: int, load: float = 1.0) -> Workload:
    """Draw jobs like those of Cab (Pollard et al., SC18), up to 256 nodes and 24 h, 83 % of them below 18 nodes.

    The source does not give the following distributions, which are ours: sizes are log-uniform below 18 nodes and
    above, run times log-normal with a median of half an hour, requested times up to 4 times the run time; most jobs
    arrive in the afternoon, fewest at night.

    :param rng: the random generator.
    :param jobs: number of jobs.
    :param nodes: number of nodes of the machine that the load refers to.
    :param load: node-seconds of all jobs divided by node-seconds of the machine until the last arrival; above 1 the
        queue grows.
    """
    _check(jobs, nodes, load)
    small = rng.random(jobs) < 0.83
    sizes = np.where(small, _log_uniform(rng, jobs, 1, 18), _log_uniform(rng, jobs, 18, min(257, nodes + 1)))
    run = np.clip(rng.lognormal(np.log(1800), 1.6, jobs), 1, DAY).astype(np.int64)
    return _arriving(rng, "capacity mix", sizes, run, nodes, load)


def power_of_two_mix(rng: np.random.Generator, jobs: int, nodes: int = 3096, load: float = 0.84) -> Workload:
    """Draw jobs like those of A. Jokanovic 2014, with a mean of 40.7 node-hours per job, and most of them small.

    70 % of the jobs have up to 18 nodes; of the others, 70 % have a power of two of nodes and 2 % a multiple of 18. The
    shares of other sizes, and the log-normal run times, which are scaled to the mean, are our own choice.

    :param rng: the random generator.
    :param jobs: number of jobs.
    :param nodes: number of nodes of the machine that the load refers to.
    :param load: node-seconds of all jobs divided by node-seconds of the machine until the last arrival.
    """
    _check(jobs, nodes, load)
    kind = rng.random(jobs)
    big = np.minimum(_log_uniform(rng, jobs, 19, 513), nodes)
    power = np.minimum(2 ** rng.integers(5, 10, jobs), nodes)
    typical = rng.choice([1, 2, 4, 8, 16, 18], jobs)
    uniform = rng.integers(1, 19, jobs)
    small = np.where(rng.random(jobs) < 0.5, typical, uniform)
    multiple = 18 * rng.integers(2, 15, jobs)
    sizes = np.select([kind < 0.7, kind < 0.91, kind < 0.916], [small, power, multiple], big)
    sizes = np.minimum(sizes, nodes)
    run = np.clip(rng.lognormal(np.log(3600), 1.4, jobs), 10, 3 * DAY)
    run *= 40.7 * 3600 * jobs / (run * sizes).sum()
    return _arriving(rng, "power-of-two mix", sizes, np.maximum(1, run).astype(np.int64), nodes, load)


def _arriving(
    rng: np.random.Generator, name: str, sizes: NDArray[np.int64], run: NDArray[np.int64], nodes: int, load: float
) -> Workload:
    """Make jobs with random arrivals, in a span of time that yields this load, and requested times of whole minutes."""
    span = (sizes * run).sum() / (nodes * load)
    submit = _by_day(np.sort(rng.uniform(0, span, len(run))))
    request = 60 * np.ceil(run * rng.uniform(1, 4, len(run)) / 60).astype(np.int64)
    return Workload.of(name, submit=submit, run=run, request=request, nodes=sizes)


def _by_day(moments: NDArray[np.float64]) -> NDArray[np.int64]:
    """Shift moments, in seconds, towards 14:24 of their day without changing their order; second 0 is midnight."""
    return np.floor(moments - 0.6 * DAY / (2 * np.pi) * np.sin(2 * np.pi * moments / DAY) + 0.6 * DAY).astype(np.int64)


def _log_uniform(rng: np.random.Generator, count: int, least: int, below: int) -> NDArray[np.int64]:
    return np.exp(rng.uniform(np.log(least), np.log(max(below, least + 1)), count)).astype(np.int64)


def _check(jobs: int, nodes: int, load: float) -> None:
    if jobs < 1 or nodes < 1 or not 0 < load < np.inf:
        raise WorkloadError(f"workload: expecting jobs, nodes and load above 0, got {jobs}, {nodes} and {load}")
