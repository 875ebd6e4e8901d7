"""The performance of a job on several nodes, from the records of each node's shutter.

The job's ranks wait for each other, so that its slowest node decides its run time, and all other nodes wait. Windows
in which a node waits measure nothing of its partner, so their shutters are left out; a node that waits in most of its
shutters is not the slowest one. A mean over nodes would charge for losses that the slowest node alone causes, and a
product would count a loss once per node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import ColocationError
from .estimators import SHARE, Estimate, estimate
from .records import ProgressRates

__all__ = ["estimate_nodes", "stopped_on", "working"]

BUSY = 0.5  # of the largest share of shutters without waiting, which a node needs to count


def working(groups: ProgressRates) -> ProgressRates:
    """Return the shutters of a node in which the job makes progress in all windows: it does not wait there."""
    with np.errstate(invalid="ignore"):
        idle = np.asarray((groups.rates <= 0).any(axis=(0, 2)))
    return groups.only(~idle)


def estimate_nodes(nodes: Sequence[ProgressRates], method: str = "balanced", *, seed: int = 0) -> Estimate:
    """Estimate the performance of a job by its slowest node, and by the mean of those that are as slow within noise.

    The interval spans from the mean of the lower ends to that of the upper ends. If shutters of several nodes would
    have to stand still together to see any relief (all nodes equally slow, ranks that wait within a window), the
    estimate is above the truth.

    :param nodes: rates of the job on each node, by shutter.
    :param method: name of the estimator, as in `estimate`; ``local`` replaces ``balanced`` for several nodes.
    :param seed: seed of the intervals.
    :raises ColocationError: if there is no node, or the method is unknown.
    """
    if not nodes:
        raise ColocationError("nodes: expecting records of one node or more, got none")
    if len(nodes) == 1:
        return estimate(nodes[0], method, seed=seed)
    # Ranks on other nodes make the job wait soon after a stop, so only the windows next to it count.
    method = "local" if method == "balanced" else method
    busy = [working(one) for one in nodes]
    shares = [one.alone.sum() / max(1, all_.alone.sum()) for one, all_ in zip(busy, nodes, strict=True)]
    found = [
        estimate(one, method, seed=seed)
        for one, share in zip(busy, shares, strict=True)
        if one.alone.any() and share >= BUSY * max(shares)
    ]
    total = sum(int(one.alone.sum()) for one in nodes)
    if max(shares) < SHARE:
        every = [estimate(one, method, seed=seed) for one in nodes]
        middle = sorted(every, key=lambda one: one.performance)[(len(every) - 1) // 2]
        return replace(middle, total=total, fallback="ranks wait in nearly all shutters: the middle one of the nodes")
    slowest = min(found, key=lambda one: one.performance)
    tied = [one for one in found if one.low + one.hidden <= slowest.high]
    words = ("performance", "low", "high", "bias", "hidden")
    means: dict[str, Any] = {word: float(np.mean([getattr(one, word) for one in tied])) for word in words}
    return replace(slowest, **means, kept=sum(one.kept for one in tied), total=total)


def stopped_on(nodes: Sequence[ProgressRates]) -> float:
    """Return the share of time in which shutters stop the job on any of its nodes, because its other nodes then wait.

    :param nodes: rates of the job on each node, by shutter.
    """
    return float(1 - np.prod([1 - one.stopped for one in nodes]))
