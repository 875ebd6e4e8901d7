"""Estimators as weighted means over shutters: POPPA's, and two of ours.

All take the shutters in which the job ran alone, and no others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .records import ProgressRates

__all__ = ["LEAST", "METHODS", "EstimateTerms", "is_steady"]

LEAST = 10  # shutters that must pass a filter
TAIL = 0.02  # share of the local ratios at either end that are moved to the next one
TAILS = 1.5  # of extrapolated ratios
Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EstimateTerms:
    """Terms of an estimate per shutter: pairs of a value and its weight, shape (2 m, n).

    :param rows: the terms.
    :param join: function of the m weighted means that is the estimate.
    :param tails: factor on the standard error. Extrapolated ratios have rare large values, of which a bootstrap of few
        shutters sees too few; the factor is that with which intervals cover the truth in the lab's grid.
    """

    rows: Reals
    join: Callable[..., Reals] = np.divide
    tails: float = 1.0

    def value(self, sums: Reals) -> Reals:
        """Return the estimate from sums of the terms, shape (2 m, ...); NaN or infinite where a weight is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.join(*(sums[::2] / sums[1::2]))


def _unfiltered(groups: ProgressRates, delta: float, absolute: bool) -> EstimateTerms:
    """Mean rate of the windows beside others over the mean rate alone."""
    before, during, after = groups.rates.mean(axis=2)
    each = np.ones(len(during))
    return EstimateTerms(np.stack((0.5 * (before + after), each, during, each)))


def is_steady(groups: ProgressRates, delta: float, absolute: bool) -> NDArray[np.bool_]:
    """Return whether the rates on both sides of each shutter are equal, shape (n,).

    :param groups: rates of the job by shutter.
    :param delta: largest difference of the rates before and after of a steady phase.
    :param absolute: whether ``delta`` is in the unit of the rate; else it is a share of the rate alone.
    """
    before, during, after = groups.rates.mean(axis=2)
    return np.asarray(np.abs(before - after) < (delta if absolute else delta * during))


def _filtered(groups: ProgressRates, delta: float, absolute: bool) -> EstimateTerms:
    """Algorithm 4: shutters with equal rates on both sides and a higher rate between; ratio of sums."""
    before, during, after = groups.rates.mean(axis=2)
    keep = is_steady(groups, delta, absolute) & (before < during) & (after < during)
    weight = keep.astype(float)
    return EstimateTerms(np.stack((0.5 * (before + after) * weight, weight, during * weight, weight)))


def _local(groups: ProgressRates, delta: float, absolute: bool) -> EstimateTerms:
    """Mean over shutters of the ratio of the rates on both sides of the moment at which the others stop.

    Shutters fall uniformly into the time beside others, and ``T_solo`` is the integral over this time of the local
    ratio of rates. A ratio of sums weights phases by their progress instead. With w seconds on both sides of the
    moment, phase boundaries cause an error proportional to w while w is shorter than the phases, so the mean with w and
    with 2 w extrapolates to w = 0. One window per region leaves the error in.
    """
    before, during = groups.rates[0], groups.rates[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = before[:, -1] / during[:, 0]
        if groups.rates.shape[2] > 1:
            ratio = 2 * ratio - before[:, -2:].mean(axis=1) / during[:, :2].mean(axis=1)
    good = np.isfinite(ratio)
    weight = good.astype(float)
    ratio = np.where(good, ratio, 0)
    known, sampled = _controls(before, good, ratio)
    terms = np.stack((np.where(good, ratio - sampled, 0), weight, known, np.ones_like(weight)))
    return EstimateTerms(terms, np.add, TAILS)


def _controls(before: Reals, good: NDArray[np.bool_], ratio: Reals) -> tuple[Reals, Reals]:
    """Return the part of the ratio that the rate beside others explains: mean per shutter, and at its last window.

    All "before" windows sample the same distribution as the last ones, so the difference of the two means is noise,
    which the sum of both cancels (control variates).
    """
    scale = max(float(before.mean()), np.finfo(float).tiny)
    features = np.stack((before / scale, (before / scale) ** 2))  # shape (2, n, K)
    centred = features - features.mean(axis=(1, 2), keepdims=True)
    last = centred[:, :, -1]
    if good.sum() < LEAST:
        return np.zeros(len(before)), np.zeros(len(before))
    own = last[:, good].T - last[:, good].mean(axis=1)
    # A job of two kinds of phases has two rates only, and its two features are one.
    slope = np.linalg.lstsq(own, ratio[good] - ratio[good].mean(), rcond=1e-6)[0]
    return slope @ centred.mean(axis=2), slope @ last


def _balanced(groups: ProgressRates, delta: float, absolute: bool) -> EstimateTerms:
    """Mean of the ratio of sums and of the local ratios at the stops, each relative to local ratios elsewhere.

    The ratio of sums of `_unfiltered` weights phases by their progress, which is right only if phases are much
    shorter than a region; local ratios are right only if phases are longer. The weight of the local ratios is twice the
    share of the variance that lies between regions, at most 1: short phases, and mere noise, vary within regions.

    The local ratio is divided by the same ratio around moments at which nothing happened. Noise, and windows in which
    the job lost its core to another process, bias both alike.
    """
    shared = _unfiltered(groups, delta, absolute).rows
    if groups.rates.shape[2] == 1:
        ratio, blank, weight = _ratio(groups.rates[0], groups.rates[1], 1, 0), np.ones(len(shared[0])), 1.0
    else:
        ratio, blank = _local_ratios(groups)
        weight = min(1.0, 2 * _between(groups.rates[0]))
    good, sound = np.isfinite(ratio), np.isfinite(blank)
    if not sound.any():
        blank, sound = np.ones(len(blank)), np.ones(len(blank), bool)
    rows = (np.where(good, ratio, 0), good.astype(float), np.where(sound, blank, 0), sound.astype(float))

    def join(local: Reals, still: Reals, beside: Reals, alone: Reals) -> Reals:
        return weight * local / still + (1 - weight) * beside / alone

    return EstimateTerms(np.concatenate((np.stack(rows), shared)), join, TAILS if groups.rates.shape[2] > 1 else 1.0)


def _local_ratios(groups: ProgressRates) -> tuple[Reals, Reals]:
    """Return the local ratio at each stop and its mean over moments within the regions around it, shape (n,) each."""
    regions, windows = groups.rates, groups.rates.shape[2]
    near = 2 if windows >= 9 else 1
    guard = int(windows >= 5)
    moments = range(2 * near, windows - guard - 2 * near + 1)
    found = [_extrapolated(one[:, :at], one[:, at:], near, guard) for one in regions for at in moments]
    if not found:
        return _extrapolated(regions[0], regions[1], near, guard), np.ones(regions.shape[1])
    every = np.stack(found)
    known = np.isfinite(every)
    with np.errstate(invalid="ignore", divide="ignore"):
        blank = np.where(known, every, 0).sum(axis=0) / known.sum(axis=0)
    return _extrapolated(regions[0], regions[1], near, guard), blank


def _extrapolated(before: Reals, after: Reals, near: int, guard: int) -> Reals:
    """Return the ratio of the rates at a moment, shape (n,), NaN if unknown.

    With w windows between the centres of both sides, phase boundaries cause an error proportional to w while w is
    shorter than the phases, so two values of w extrapolate to w = 0.

    :param before: rates before the moment, shape (n, k).
    :param after: rates after the moment, shape (n, l).
    :param near: number of windows on either side for the first value of w; twice as many for the second.
    :param guard: number of windows after the moment that are left out: the stop itself makes the first one slow.
    """
    first, second = near + guard, 2 * near + guard
    with np.errstate(invalid="ignore"):
        ratio = second * _ratio(before, after, near, guard) - first * _ratio(before, after, 2 * near, guard)
    ratio = ratio / (second - first)
    finite = ratio[np.isfinite(ratio)]
    if len(finite):  # in a window in which the job lost its core, a ratio has any size
        low, high = np.quantile(finite, (TAIL, 1 - TAIL))
        ratio = np.clip(ratio, low, high)
    return np.where(np.isfinite(ratio), ratio, np.nan)


def _ratio(before: Reals, after: Reals, windows: int, guard: int) -> Reals:
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio: Reals = before[:, -windows:].mean(axis=1) / after[:, guard : guard + windows].mean(axis=1)
    return ratio


def _between(rates: Reals) -> float:
    """Return the share of the variance of windows that lies between regions (intraclass correlation), 0 to 1.

    :param rates: rates of the windows of each region, shape (n, K).
    """
    if len(rates) < 2:
        return 0.0
    within = float(rates.var(axis=1, ddof=1).mean())
    between = max(0.0, float(rates.mean(axis=1).var(ddof=1)) - within / rates.shape[1])
    return between / (between + within) if between > 0 else 0.0


METHODS: dict[str, Callable[[ProgressRates, float, bool], EstimateTerms]] = {
    "balanced": _balanced,
    "local": _local,
    "unfiltered": _unfiltered,
    "filtered": _filtered,
}
