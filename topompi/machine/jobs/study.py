"""Comparisons of policies with confidence intervals, and the reduction in run time at which isolation pays.

The figures of one log are one random sample. Parts of the log, each simulated from an empty machine, give several
samples, whose mean has a confidence interval. The effect of the empty start is not corrected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .allocation.blocks import RULES
from .cluster import Cluster
from .errors import JobsError
from .metrics import figures
from .queueing import Queue
from .simulation import simulate
from .workload import Workload

__all__ = ["JOKANOVIC", "POLLARD", "SCENARIOS", "Interval", "break_even", "interval", "replay"]

# Scenarios of Pollard et al., SC18, section V-C: name -> allocator, model of run times; {seed}: replay's number.
POLLARD = {
    "TO": ("first", "as-logged"),
    "TA": ("isolated", "as-logged"),
    "TA 5 %": ("isolated", "faster:5"),
    "TA 10 %": ("isolated", "faster:10"),
    "TA 20 %": ("isolated", "faster:20"),
    "TA V1": ("isolated", "V1:{seed}"),
    "TA V2": ("isolated", "V2:{seed}"),
}
# Policies of A. Jokanovic, 2014, section 4.3, by name; the last ones are ``blocks``, each without one of its rules.
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
    """A mean over replays (simulated workloads) with its 95 % confidence interval by Student's distribution.

    The bounds ``low`` and ``high`` are NaN if there is only one replay, or if a value is not finite.
    """

    mean: float
    low: float
    high: float
    replays: int


def interval(values: Sequence[float]) -> Interval:
    """Compute the mean of a figure over independent replays, and its confidence interval.

    :param values: the figure of each replay.
    :raises JobsError: if there is no value.
    """
    from scipy.special import stdtrit  # imported here, because the import would delay other commands

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
    rejections: Counter[str] | None = None,
) -> dict[str, Interval]:
    """Simulate several workloads (parts of a log, or random loads) and return mean and interval of each figure.

    :param parts: one or more workloads, each simulated from an empty machine.
    :param cluster: the cluster that they run on.
    :param allocator: a name in ``ALLOCATORS``.
    :param speed: name of a model of run times; ``{seed}`` in it becomes the number of the part, from 0.
    :param queue: a queue or its name, as in `simulate`.
    :param progress: function that is called with the number of ended jobs of the present part.
    :param rejections: receiver of the number of rejected jobs of all parts, by reason.
    """
    outcomes = (
        simulate(part, cluster, queue, allocator, speed.format(seed=seed), progress=progress)
        for seed, part in enumerate(parts)
    )
    found = list[dict[str, float]]()
    for outcome in outcomes:
        found.append(figures(outcome))
        if rejections is not None:
            rejections.update(outcome.rejections)
    return {name: interval([one[name] for one in found]) for name in (found[0] if found else ())}


def break_even(workload: Workload, cluster: Cluster, queue: str | Queue | None = None) -> float:
    """Find the least reduction in run time, in per cent, at which isolation (no shared links) pays.

    With isolation, jobs of more than 4 nodes run shorter by this reduction. Isolation pays if the mean of wait plus run
    time is no larger than without isolation. The method is bisection to 0.1 per cent, which
    assumes that this mean falls as the reduction grows. The result is 0 if isolation pays without a reduction,
    infinite if 60 per cent do not suffice.

    :param workload: the jobs.
    :param cluster: the cluster.
    :param queue: a queue or its name, as in `simulate`.
    """

    def isolated(speed: str) -> float:
        return _turnaround(workload, cluster, queue, "isolated", speed)

    goal = _turnaround(workload, cluster, queue, "first", "as-logged")
    low, high = 0.0, 60.0
    if isolated("as-logged") <= goal:
        return 0.0
    if isolated(f"faster:{high:g}") > goal:
        return float("inf")
    while high - low > 0.1:
        middle = (low + high) / 2
        low, high = (low, middle) if isolated(f"faster:{middle!r}") <= goal else (middle, high)
    return high


def _turnaround(workload: Workload, cluster: Cluster, queue: str | Queue | None, allocator: str, speed: str) -> float:
    outcome = simulate(workload, cluster, queue, allocator, speed)
    ran = outcome.ran
    return float((outcome.end - workload.submit)[ran].mean()) if len(ran) else 0.0
