"""Generators of random workloads, in place of logs that are not public, each with its source and our own choices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from ..errors import WorkloadError
from .workload import Workload

__all__ = ["capacity_mix", "lublin_feitelson", "power_of_two_mix"]

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


def lublin_feitelson(rng: np.random.Generator, jobs: int, nodes: int) -> Workload:
    """Draw jobs by the model of U. Lublin and D. Feitelson, JPDC 63(11), 2003, as its authors' program draws them.

    The parameters are those for jobs that are neither batch nor interactive ones. A job is serial with probability
    0.244 and has a power of two of nodes with 0.576; log2 of the other sizes is two-stage uniform. The natural
    logarithm of run times is hyper-gamma with a mixture that depends on the size, and that of the gaps between arrivals
    is gamma; a run time above e**12 s or a gap above e**13 s is drawn again. Gaps are short by day and long at night.
    Second 0 is midnight.

    :param rng: the random generator.
    :param jobs: number of jobs.
    :param nodes: number of nodes of the machine, which is the largest size.
    """
    _check(jobs, nodes, 1)
    most = np.log2(nodes)
    middle = max(0.8, most - 2.5)
    low, high = rng.uniform(0.8, middle, jobs), rng.uniform(middle, max(middle, most), jobs)
    stage = np.where(rng.random(jobs) < 0.86, low, high)
    kind = rng.random(jobs)
    exponent = np.where(kind < 0.244, 0, np.where(kind < 0.244 + 0.576, np.rint(stage), stage))
    sizes = np.clip(np.rint(2**exponent), 1, nodes).astype(np.int64)
    first = np.clip(-0.0054 * sizes + 0.78, 0, 1)

    def log_run(of: NDArray[np.int64]) -> NDArray[np.float64]:
        short = rng.random(len(of)) < first[of]
        return np.where(short, rng.gamma(4.2, 0.94, len(of)), rng.gamma(312, 0.03, len(of)))

    # The authors' program multiplies the shape for rush hours, 10.2303, by 1.0225, its ratio of all to rush hours.
    log_gap = _drawn_below(13, jobs, lambda of: rng.gamma(10.2303 * 1.0225, 0.4871, len(of)))
    run = np.exp(_drawn_below(12, jobs, log_run)).astype(np.int64)
    submit = _by_half_hour(np.cumsum(np.exp(log_gap))).astype(np.int64)
    return Workload.of("Lublin-Feitelson", submit=submit, run=run, nodes=sizes)


def _drawn_below(
    most: float, count: int, draw: Callable[[NDArray[np.int64]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Draw values, and draw those above ``most`` again until none is.

    :param most: the largest value allowed.
    :param count: number of values.
    :param draw: draws new values at the given indices.
    """
    values, again = np.empty(count), np.arange(count)
    while len(again):
        values[again] = draw(again)
        again = again[values[again] > most]
    return values


def _by_half_hour(moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Stretch time, in seconds, at night and compress it by day, by Lublin and Feitelson's weights of the half hours.

    A gamma distribution gives the shares of the half hours 11 (5:00 to 5:30) to 58 (4:30 to 5:00 on the next day).
    """
    hours = np.arange(11, 11 + 48)
    weights = np.roll(np.diff(gammainc(8.1737, np.append(hours - 0.5, 58.5) / 3.9631)), 10)
    ends = np.append(0, np.cumsum(weights)) / weights.sum()
    days, part = np.divmod(moments / DAY, 1)
    return DAY * (days + np.interp(part, ends, np.arange(49) / 48))


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
