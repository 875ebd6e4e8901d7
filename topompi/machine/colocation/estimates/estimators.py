"""Estimates of a job's performance beside others, as a share of its performance alone, from records of the shutter.

Performance is ``T_solo / T_co``: 1 without interference, 0.5 if the job takes twice the time. Estimators of POPPA:
``unfiltered`` (equation 8) and ``filtered`` (algorithm 4). Two are ours:
``local``, which weights phases by time, and ``balanced``, a mean of local ratios and ``unfiltered``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import ColocationError
from .intervals import interval
from .methods import LEAST, METHODS, EstimateTerms, is_steady
from .records import ProgressRates
from .warmth import STEADY, Coldness, coldness

__all__ = ["DELTA", "METHODS", "NOTHING", "Estimate", "estimate", "filter_bias", "noise_of"]

DELTA = 0.05  # of the source: absolute for instructions per cycle, relative to the rate alone for other rates
SHARE = 0.1  # of all shutters that must pass a filter
DOUBT = 0.1  # performance that cold caches may hide without a word
TOO_SHORT = "too short to tell cold caches from a slow job: longer shutters, or more long ones, would (--warm)"
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """An estimate of ``T_solo / T_co`` of one job.

    :param method: name of the estimator that gave the value.
    :param performance: the estimate, unclamped: above 1 if the job seems faster beside others.
    :param low: lower end of the interval of 95 %, at least 0.
    :param high: upper end of the interval of 95 %.
    :param kept: number of shutters in which the job ran alone and that the estimator used.
    :param total: number of shutters in which the job ran alone.
    :param fallback: reason why another estimator than the requested one was used; empty if it was not.
    :param bias: expected error of ``performance`` by the selection of shutters under the measured noise; 0 if
        the estimator selects none by the rate alone.
    :param hidden: part of the interval below ``performance`` that stands for cold caches, not for noise.
    """

    method: str
    performance: float
    low: float
    high: float
    kept: int
    total: int
    fallback: str = ""
    bias: float = 0.0
    hidden: float = 0.0

    @property
    def doubt(self) -> str:
        """Reason why the interval is far wider than by noise; empty if it is not."""
        if not self.total:
            return "no shutter in which the job ran alone: nothing is known"
        return TOO_SHORT if self.hidden > DOUBT or self.low == 0 else ""

    @property
    def degradation(self) -> float:
        """``1 - performance``; negative if the job seems faster beside others."""
        return 1 - self.performance

    @property
    def dilation(self) -> float:
        """``T_co / T_solo``."""
        return 1 / self.performance


NOTHING = Estimate("none", 1.0, 0.0, 1.0, 0, 0, hidden=1.0)


def estimate(
    groups: ProgressRates,
    method: str = "balanced",
    *,
    delta: float = DELTA,
    absolute: bool | None = None,
    correct: bool = True,
    seed: int = 0,
) -> Estimate:
    """Estimate the performance of a job, with an interval of 95 % by a block bootstrap over its shutters.

    The unfiltered estimate replaces a filter that fewer than 10 shutters, or fewer than a tenth of all, pass, and
    ``balanced`` and ``local`` if there is one window per region and most shutters cross a phase boundary. The interval
    includes what the neighbours may have taken from the caches and no shutter has shown. Without a shutter the result
    is ``NOTHING``.

    :param groups: rates of the job by shutter.
    :param method: name in ``METHODS``.
    :param delta: largest difference of the rates before and after of a steady phase.
    :param absolute: whether ``delta`` is in the unit of the rate; else it is a share of the rate alone. None for the
        unit if the rate is instructions per cycle, and for the share otherwise.
    :param correct: whether the bias of ``filtered`` is subtracted.
    :param seed: seed of the bootstrap.
    :raises ColocationError: if the method is unknown.
    """
    if method not in METHODS:
        raise ColocationError(f"estimator: expecting one of {', '.join(METHODS)}, got {method!r}")
    if not groups.alone.any():
        return NOTHING
    # Around shutters of other jobs the daemon runs on their cores, so that the rates beside others are not comparable.
    groups = groups.only(groups.alone)
    absolute = groups.per_cycle if absolute is None else absolute
    terms_of, method, kept, fallback = _terms_of(groups, method, delta, absolute)
    terms = terms_of(groups)
    low, high = interval(terms, seed)
    value = float(terms.value(terms.rows.sum(axis=1)))
    total = groups.rates.shape[1]
    found = Estimate(method, value, low, high, kept, total, fallback)
    if method == "filtered":
        found = _unbiased(found, groups, delta, absolute, correct)
    return _warmed(
        found,
        coldness(groups, terms_of, is_steady(groups, delta, absolute), seed, paired=method in ("balanced", "local")),
    )


def _terms_of(
    groups: ProgressRates, method: str, delta: float, absolute: bool
) -> tuple[Callable[[ProgressRates], EstimateTerms], str, int, str]:
    """Return the function of the estimate's terms, its name, the number of shutters it keeps, and why it was taken."""
    total = groups.rates.shape[1]
    kept, fallback = int((METHODS[method](groups, delta, absolute).rows[1] > 0).sum()), ""
    if kept < min(total, LEAST) or kept < SHARE * total:
        fallback = f"{kept} of {total} shutters pass {method}: unfiltered"
    elif method in ("balanced", "local") and _needs_windows(groups, delta, absolute):
        fallback = "one window per region, as long as phases: unfiltered"
    method, kept = ("unfiltered", total) if fallback else (method, kept)
    return lambda of: METHODS[method](of, delta, absolute), method, kept, fallback


def _warmed(found: Estimate, cold: Coldness) -> Estimate:
    """Correct an estimate for cold caches, and widen its interval by what is not known of them."""
    value, warm = found.performance * (1 - cold.share), 1 - cold.share
    least = min(value, max(0.0, value - warm * (found.performance - found.low)))
    hidden = min(least, found.performance * (cold.high - cold.share))
    above = warm * (found.high - found.performance) + found.performance * max(0.0, cold.share - cold.low)
    high = value + above if math.isfinite(above) else max(1.0, value)
    return replace(found, performance=value, low=least - hidden, high=high, hidden=hidden)


def _needs_windows(groups: ProgressRates, delta: float, absolute: bool) -> bool:
    """Return whether one window per region is too long for the job's phases: most shutters cross a boundary of two.

    In the model `unfiltered` errs less than `local` up to phases of 10 ms, of which at most half are steady, and more
    from phases of 50 ms on, of which over three quarters are.
    """
    if groups.rates.shape[2] > 1:
        return False
    return bool(is_steady(groups, delta, absolute).mean() < STEADY)


def noise_of(groups: ProgressRates) -> float:
    """Standard deviation of a region's rate, relative to the rate alone, by the median difference of both sides.

    The median keeps phase boundaries out while fewer than half of the shutters cross one.
    """
    before, during, after = groups.rates.mean(axis=2)[:, groups.alone]
    gap = np.median(np.abs(before - after)) / max(float(np.mean(during)), np.finfo(float).tiny)
    return float(gap / 0.6744897501960817 / math.sqrt(2))


def filter_bias(performance: float, noise: float, delta: float = DELTA) -> float:
    """Expected error of algorithm 4 at a true performance, for normal noise of one relative standard deviation.

    Cost: 61^3 places of the three rates' normal densities.

    :param performance: true ``T_solo / T_co``.
    :param noise: standard deviation of the three rates, relative to the rate alone.
    :param delta: largest difference of the rates before and after, relative to the rate alone.
    """
    if noise <= 0:
        return 0.0
    at = np.linspace(-5, 5, 61)
    weight = np.exp(-at * at / 2)
    before, after = performance + noise * at[:, None, None], performance + noise * at[None, :, None]
    during = 1 + noise * at[None, None, :]
    # Ties on the grid stand for an interval of which half is on each side.
    steps = np.heaviside(during - before, 0.5) * np.heaviside(during - after, 0.5)
    keep = steps * (np.abs(before - after) < delta) * weight[:, None, None] * weight[:, None] * weight
    above, below = float((0.5 * (before + after) * keep).sum()), float((during * keep).sum())
    return above / below - performance if below > 0 else 0.0


def _unbiased(found: Estimate, groups: ProgressRates, delta: float, absolute: bool, correct: bool) -> Estimate:
    """State the bias of algorithm 4, and subtract it if asked: the performance that would give the found one."""
    noise = noise_of(groups)
    relative = delta / float(np.nanmean(groups.rates[1])) if absolute else delta
    low, high = 0.0, 1.0
    if found.performance > low and noise > 0:
        for _ in range(12):
            middle = (low + high) / 2
            above = middle + filter_bias(middle, noise, relative) > found.performance
            low, high = (low, middle) if above else (middle, high)
    bias = found.performance - (low + high) / 2 if noise > 0 and found.performance < 1 else 0.0
    if not correct:
        return replace(found, bias=bias)
    shifted = {word: getattr(found, word) - bias for word in ("performance", "low", "high")}
    return replace(found, **shifted, bias=0.0)
