"""Policies side by side with intervals: scenarios of the literature, and the speed-up from which isolation pays.

A figure of one log is one draw. Its parts, replayed each by itself from an empty machine, are several, whose mean has
an interval; that the machine is empty at first is not corrected for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .allocation.blocks import RULES
from .cluster import Cluster
from .errors import JobsError
from .metrics import figures, summarise
from .queueing import Queue
from .simulation import simulate
from .workload import Workload

__all__ = ["JOKANOVIC", "POLLARD", "SCENARIOS", "Interval", "break_even", "interval", "mean_wait", "replay"]

# Pollard et al., SC18, section V-C: name -> allocator and speed; {seed} is drawn again for every replay.
POLLARD = {
    "TO": ("first", "as-logged"),
    "TA": ("isolated", "as-logged"),
    "TA 5 %": ("isolated", "faster:5"),
    "TA 10 %": ("isolated", "faster:10"),
    "TA 20 %": ("isolated", "faster:20"),
    "TA V1": ("isolated", "V1:{seed}"),
    "TA V2": ("isolated", "V2:{seed}"),
}
# A. Jokanovic, 2014, section 4.3; the last ones are without one rule each.
JOKANOVIC = {
    "FA": ("first", "as-logged"),
    "FC": ("contiguous", "as-logged"),
    "Exclusive": ("exclusive", "as-logged"),
    "VNB": ("blocks", "as-logged"),
    **{f"VNB without {rule}": (f"blocks-{rule}", "as-logged") for rule in RULES},
}
SCENARIOS = {"pollard": POLLARD, "jokanovic": JOKANOVIC}


@dataclass(frozen=True)
class Interval:
    """A mean over replays and its interval of 95 %, by Student's distribution; NaN bounds for one replay."""

    mean: float
    low: float
    high: float
    replays: int


def interval(values: Sequence[float]) -> Interval:
    """The interval of the mean of independent replays; values that are not finite make it unbounded.

    :raises JobsError: without a value.
    """
    from scipy.special import stdtrit  # every command would wait for it

    sample, count = np.asarray(values, dtype=float), len(values)
    if not count:
        raise JobsError("interval: expecting one or more replays, got none")
    mean = float(sample.mean())
    if count == 1 or not np.isfinite(sample).all():
        return Interval(mean, np.nan, np.nan, count)
    half = float(stdtrit(count - 1, 0.975) * sample.std(ddof=1) / np.sqrt(count))
    return Interval(mean, mean - half, mean + half, count)


def replay(
    parts: Sequence[Workload],
    cluster: Cluster,
    allocator: str,
    speed: str = "as-logged",
    queue: str | Queue | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Interval]:
    """The figures of `metrics.figures` over parts of a log, or draws of a load, each run by itself.

    :param parts: one or more workloads.
    :param cluster: where they run.
    :param allocator: a name of ``ALLOCATORS``; likewise ``queue``, as for `simulate`.
    :param speed: likewise; ``{seed}`` in it becomes the number of the part, from 0.
    :param progress: is told how many jobs of the present part have ended.
    """
    found = [
        figures(simulate(part, cluster, queue, allocator, speed.format(seed=seed), progress=progress))
        for seed, part in enumerate(parts)
    ]
    return {name: interval([one[name] for one in found]) for name in (found[0] if found else ())}


def mean_wait(
    workload: Workload, cluster: Cluster, allocator: str, speed: str = "as-logged", queue: str | Queue | None = None
) -> float:
    """The mean wait of a workload in seconds.

    :param workload: the jobs.
    :param cluster: where they run.
    :param allocator: a name of ``ALLOCATORS``; likewise ``speed`` and ``queue``, as for `simulate`.
    """
    return summarise(simulate(workload, cluster, queue, allocator, speed)).mean_wait


def break_even(
    workload: Workload,
    cluster: Cluster,
    queue: str | Queue | None = None,
    measure: Callable[[str, str], float] | None = None,
    *,
    isolating: str = "isolated",
    sharing: str = "first",
    most: float = 60,
) -> float:
    """The per cent by which isolated jobs above 4 nodes must be faster so that wait plus run time is no longer.

    Bisection to 0.1 per cent: the sum is taken to fall with the speed. 0 where isolation pays without being faster;
    infinite where ``most`` does not suffice.

    :param workload: the jobs.
    :param cluster: where they run.
    :param queue: as for `simulate`.
    :param measure: (allocator, speed) -> what is to be no larger; none: mean wait plus run time.
    :param isolating: the allocator whose jobs are faster.
    :param sharing: the one that it is compared with.
    :param most: the largest per cent that is tried.
    """
    measure = measure or (lambda allocator, speed: _turnaround(workload, cluster, queue, allocator, speed))
    goal = measure(sharing, "as-logged")
    low, high = 0.0, most
    if measure(isolating, "as-logged") <= goal:
        return 0.0
    if measure(isolating, f"faster:{most:g}") > goal:
        return float("inf")
    while high - low > 0.1:
        middle = (low + high) / 2
        low, high = (low, middle) if measure(isolating, f"faster:{middle!r}") <= goal else (middle, high)
    return high


def _turnaround(workload: Workload, cluster: Cluster, queue: str | Queue | None, allocator: str, speed: str) -> float:
    outcome = simulate(workload, cluster, queue, allocator, speed)
    ran = outcome.ran
    return float((outcome.end - workload.submit)[ran].mean()) if len(ran) else 0.0
