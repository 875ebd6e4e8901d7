"""The share of its rate that a job lacks just after its neighbours' stop because its caches are cold.

What neighbours take by emptying caches comes back in milliseconds to tens of milliseconds: a short shutter finds the
job too fast beside others. The end of a long shutter shows the rate with warm caches. Without long shutters the end of
the usual ones shows a part of the rise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .intervals import interval
from .methods import LEAST, EstimateTerms
from .records import ProgressRates

__all__ = ["UNKNOWN", "Coldness", "coldness"]

REFILL = 0.02  # seconds: the longest time constant of refilling caches that intervals allow for
SURE = 1.0  # standard errors up to which a rise of the rate alone counts as noise
STEADY = 0.55  # of all shutters that must be steady for a rise within them to be that of caches, not of phases
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Coldness:
    """Share of the rate alone that cold caches take from an estimate; 0 if they are warm.

    :param share: the most likely share.
    :param low: lower end of its interval of 95 %.
    :param high: upper end, 1 if nothing is known.
    """

    share: float
    low: float
    high: float


UNKNOWN = Coldness(0.0, 0.0, 1.0)


def coldness(
    groups: ProgressRates,
    terms_of: Callable[[ProgressRates], EstimateTerms],
    steady: NDArray[np.bool_],
    seed: int,
    *,
    paired: bool = True,
) -> Coldness:
    """Compare an estimate with that by the latest rates alone, of the same shutters, by a bootstrap over them.

    A rise of up to ``SURE`` standard errors is noise, and more is shrunk by the noise (positive part of James and
    Stein). The interval is that of the rise as it was measured. Its upper end supposes that caches refill with the time
    constant ``REFILL``, so that the rise goes on.

    :param groups: rates of the job, of shutters in which it ran alone.
    :param terms_of: terms of the estimate by the usual windows.
    :param steady: whether each shutter has equal rates on both sides, shape (n,).
    :param seed: seed of the bootstrap.
    :param paired: whether the estimate weights phases by time; if not, late rates replace the usual ones in it.
    """

    def rested(of: ProgressRates, late: Reals) -> EstimateTerms:
        if paired:
            return _rested(of, late)
        rates = of.rates.copy()
        rates[1] = late[:, None]
        return terms_of(replace(of, rates=rates))

    found = [
        _rise(terms_of(groups.only(kept)), rested(groups.only(kept), late[kept]), gap, seed)
        for kept, late, gap in _sources(groups, steady)
    ]
    if found and found[0].share > 0:
        return found[0]  # long shutters have seen what short ones may not see
    return min(found, key=lambda one: one.high - one.share, default=UNKNOWN)


def _sources(groups: ProgressRates, steady: NDArray[np.bool_]) -> list[tuple[NDArray[np.bool_], Reals, float]]:
    """Return the sources of late rates: shutters, rates alone, seconds between the usual and the late windows."""
    during, found = groups.rates[1], []
    if groups.warm is not None and np.isfinite(groups.warm).sum() >= LEAST:
        found.append((np.isfinite(groups.warm), groups.warm, groups.late - groups.region / 2))
    windows = during.shape[1]
    if windows > 1 and steady.sum() >= max(LEAST, STEADY * len(steady)):
        found.append((steady, during[:, windows // 2 :].mean(axis=1), groups.region / 4))
    return found


def _rise(early: EstimateTerms, rested: EstimateTerms, gap: float, seed: int) -> Coldness:
    at = len(early.rows) // 2

    def join(*means: Reals) -> Reals:
        return np.asarray(rested.join(*means[at:]) / early.join(*means[:at]))

    both = EstimateTerms(np.concatenate((early.rows, rested.rows)), join, early.tails)
    ratio = float(both.value(both.rows.sum(axis=1)))
    low, high = interval(both, seed)
    if not (math.isfinite(low) and math.isfinite(high) and ratio > 0):
        return UNKNOWN
    rise, error = 1 - ratio, (high - low) / 4
    shrunk = max(0.0, 1 - (SURE * error / rise) ** 2) if rise > 0 else 0.0
    further = 1 / -math.expm1(-gap / REFILL)
    return Coldness(shrunk * rise, min(1.0, max(0.0, 1 - high)), min(1.0, max(0.0, further * (1 - low))))


def _rested(groups: ProgressRates, late: Reals) -> EstimateTerms:
    """Terms of the estimate by late rates alone: ratios of each shutter, and a ratio of sums.

    Ratios are right if phases last longer than the time between early and late, sums if they are shorter. The weight of
    the ratios is the correlation of the early and the late rate alone.
    """
    before, early = groups.rates[0].mean(axis=1), groups.rates[1].mean(axis=1)
    spread, common = float(early.std() * late.std()), float(np.mean((early - early.mean()) * (late - late.mean())))
    weight = min(1.0, max(0.0, common / spread)) if spread > 0 else 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = before / late
    good, each = np.isfinite(ratio), np.ones(len(late))
    rows = np.stack((np.where(good, ratio, 0), good.astype(float), before, each, late, each))

    def join(paired: Reals, beside: Reals, alone: Reals) -> Reals:
        return weight * np.where(np.isfinite(paired), paired, 0) + (1 - weight) * beside / alone

    return EstimateTerms(rows, join)
