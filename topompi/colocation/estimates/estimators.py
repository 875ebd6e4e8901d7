"""Estimates of a job's performance beside others, as a share of its performance alone, from records of the shutter.

Performance is ``T_solo / T_co``: 1 without interference, 0.5 if the job takes twice the time. Estimators of POPPA:
``by_cycles`` (equation 5), ``by_rates`` (6), ``unfiltered`` (8) and ``filtered`` (algorithm 4). Two are ours:
``steady``, without the selection that biases algorithm 4, and ``local``, which weights phases by time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import ColocationError
from .records import Groups

__all__ = ["DELTA", "METHODS", "Estimate", "by_cycles", "by_rates", "estimate", "filter_bias", "noise_of"]

DELTA = 0.05  # of the source: absolute for instructions per cycle, relative to the rate alone for other rates
LEAST = 10  # shutters that must pass a filter
SHARE = 0.1  # of all shutters that must pass a filter
STEADY = 0.55  # of all shutters that must be steady for `local` with one window per region
SAMPLES = 400  # bootstrap samples
Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Terms:
    """Terms of an estimate per shutter: a value and its weight, and a second value and its weight, shape (4, n).

    :param rows: the terms.
    :param join: function of the two weighted means that is the estimate.
    """

    rows: Reals
    join: Callable[[Reals, Reals], Reals] = np.divide

    def value(self, sums: Reals) -> Reals:
        """Return the estimate from sums of the terms, shape (4, ...); NaN or infinite where a weight is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.join(sums[0] / sums[1], sums[2] / sums[3])


@dataclass(frozen=True)
class Estimate:
    """An estimate of ``T_solo / T_co`` of one job.

    :param method: name of the estimator that gave the value.
    :param performance: the estimate, unclamped: above 1 if the job seems faster beside others.
    :param low: lower end of the interval of 95 %.
    :param high: upper end of the interval of 95 %.
    :param kept: number of shutters in which the job ran alone and that the estimator used.
    :param total: number of shutters in which the job ran alone.
    :param fallback: reason why another estimator than the requested one was used; empty if it was not.
    :param bias: expected error of ``performance`` by the selection of shutters under the measured noise; 0 if
        the estimator selects none by the rate alone.
    """

    method: str
    performance: float
    low: float
    high: float
    kept: int
    total: int
    fallback: str = ""
    bias: float = 0.0

    @property
    def degradation(self) -> float:
        """``1 - performance``; negative if the job seems faster beside others."""
        return 1 - self.performance

    @property
    def dilation(self) -> float:
        """``T_co / T_solo``."""
        return 1 / self.performance


def by_cycles(solo: float, shared: float) -> float:
    """Performance from the cycles of a whole run alone and of one beside others: equation 5."""
    return _positive("cycles", solo) / _positive("cycles", shared)


def by_rates(solo: float, shared: float) -> float:
    """Performance from the progress rate of a run alone and of one beside others, for equal work: equation 6."""
    return _positive("rate", shared) / _positive("rate", solo)


def _positive(name: str, value: float) -> float:
    if not (value > 0 and math.isfinite(value)):
        raise ColocationError(f"{name}: expecting a positive number, got {value!r}")
    return value


def _unfiltered(groups: Groups, delta: float, absolute: bool) -> _Terms:
    """Mean rate of all windows beside others, also around shutters of other jobs, over the mean rate alone."""
    before, during, after = groups.rates.mean(axis=2)
    alone = groups.alone.astype(float)
    return _Terms(np.stack((0.5 * (before + after), np.ones_like(alone), np.where(groups.alone, during, 0), alone)))


def _selected(groups: Groups, delta: float, absolute: bool, one_sided: bool) -> _Terms:
    before, during, after = groups.rates.mean(axis=2)
    during = np.where(groups.alone, during, 0)
    keep = groups.alone & (np.abs(before - after) < (delta if absolute else delta * during))
    if one_sided:
        keep &= (before < during) & (after < during)
    weight = keep.astype(float)
    return _Terms(np.stack((0.5 * (before + after) * weight, weight, during * weight, weight)))


def _filtered(groups: Groups, delta: float, absolute: bool) -> _Terms:
    """Algorithm 4: shutters with equal rates on both sides and a higher rate between; ratio of sums."""
    return _selected(groups, delta, absolute, one_sided=True)


def _steady(groups: Groups, delta: float, absolute: bool) -> _Terms:
    """Algorithm 4 without its condition on the rate alone, which selects by noise where there is no interference."""
    return _selected(groups, delta, absolute, one_sided=False)


def _local(groups: Groups, delta: float, absolute: bool) -> _Terms:
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
    good = groups.alone & np.isfinite(ratio)
    weight = good.astype(float)
    ratio = np.where(good, ratio, 0)
    known, sampled = _controls(before, good, ratio)
    terms = np.stack((np.where(good, ratio - sampled, 0), weight, known, np.ones_like(weight)))
    return _Terms(terms, np.add)


def _controls(before: Reals, good: NDArray[np.bool_], ratio: Reals) -> tuple[Reals, Reals]:
    """Return the part of the ratio that the rate beside others explains: mean per shutter, and at its last window.

    All "before" windows, of the shutters of other jobs too, sample the same distribution as the last one of the job's
    own shutters, so the difference of the two means is noise, which the sum of both cancels (control variates).
    """
    scale = max(float(before.mean()), np.finfo(float).tiny)
    features = np.stack((before / scale, (before / scale) ** 2))  # shape (2, n, K)
    centred = features - features.mean(axis=(1, 2), keepdims=True)
    last = centred[:, :, -1]
    if good.sum() < LEAST:
        return np.zeros(len(before)), np.zeros(len(before))
    own = last[:, good].T - last[:, good].mean(axis=1)
    slope = np.linalg.lstsq(own, ratio[good] - ratio[good].mean(), rcond=None)[0]
    return slope @ centred.mean(axis=2), slope @ last


METHODS: dict[str, Callable[[Groups, float, bool], _Terms]] = {
    "unfiltered": _unfiltered,
    "filtered": _filtered,
    "steady": _steady,
    "local": _local,
}


def estimate(
    groups: Groups,
    method: str = "local",
    *,
    delta: float = DELTA,
    absolute: bool | None = None,
    correct: bool = True,
    seed: int = 0,
) -> Estimate:
    """Estimate the performance of a job, with an interval of 95 % by a block bootstrap over its shutters.

    The unfiltered estimate replaces a filter that fewer than 10 shutters, or fewer than a tenth of all, pass, and
    ``local`` if there is one window per region and most shutters cross a phase boundary. Without a shutter the
    performance is 1.

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
    total = int(groups.alone.sum())
    if not total:
        return Estimate(method, 1.0, 1.0, 1.0, 0, 0, "no shutter in which the job ran alone: taken as undisturbed")
    absolute = groups.per_cycle if absolute is None else absolute
    terms = METHODS[method](groups, delta, absolute)
    kept, fallback = int((terms.rows[1][groups.alone] > 0).sum()), ""
    if kept < min(total, LEAST) or kept < SHARE * total:
        fallback = f"{kept} of {total} shutters pass {method}: unfiltered"
    elif method == "local" and _needs_windows(groups, delta, absolute):
        fallback = "one window per region, as long as phases: unfiltered"
    if fallback:
        method, terms = "unfiltered", _unfiltered(groups, delta, absolute)
        kept = total
    low, high = _interval(terms, seed)
    found = Estimate(method, float(terms.value(terms.rows.sum(axis=1))), low, high, kept, total, fallback)
    return _unbiased(found, groups, delta, absolute, correct) if method == "filtered" else found


def _needs_windows(groups: Groups, delta: float, absolute: bool) -> bool:
    """Return whether one window per region is too long for the job's phases: most shutters cross a boundary of two.

    In the model `unfiltered` errs less than `local` up to phases of 10 ms, of which at most half are steady, and more
    from phases of 50 ms on, of which over three quarters are.
    """
    if groups.rates.shape[2] > 1:
        return False
    steady = _steady(groups, delta, absolute).rows[1].sum()
    return bool(steady < STEADY * groups.alone.sum())


def _interval(terms: _Terms, seed: int) -> tuple[float, float]:
    """Return the ends of the interval of 95 %: Student's, with the standard error of a circular block bootstrap.

    With B blocks there are B - 1 degrees of freedom. Percentiles of the samples would cover the truth too rarely:
    they ignore that the standard error of few blocks is itself uncertain.
    """
    count = terms.rows.shape[1]
    total = terms.rows.sum(axis=1)
    value = float(terms.value(total))
    length = _block_length(value - terms.value(total[:, None] - terms.rows))
    blocks = -(-count // length)
    rng = np.random.default_rng(seed)
    sums = np.stack([_block_sums(one, length) for one in terms.rows])
    drawn = terms.value(sums[:, rng.integers(count, size=(SAMPLES, blocks))].sum(axis=2))
    drawn = drawn[np.isfinite(drawn)]
    if not len(drawn) or not math.isfinite(value) or blocks < 2:
        return -math.inf, math.inf
    # All blocks lie in one sample, so that their spread is too small by the share of a block in it.
    spread = float(drawn.std()) * math.sqrt(count / (count - length))
    half = _student(blocks - 1) * spread
    return value - half, value + half


def _block_length(influence: Reals) -> int:
    """Return the number of successive shutters per block: n^(1/3), or twice their correlation time if it is longer.

    :param influence: change of the estimate if a shutter is left out, shape (n,).
    """
    count = len(influence)
    least, most = max(1, round(count ** (1 / 3))), max(1, count // 6)
    centred = np.where(np.isfinite(influence), influence, 0)
    centred = centred - centred.mean()
    power = np.abs(np.fft.rfft(centred, 2 * count)) ** 2
    correlation = np.fft.irfft(power)[:count]
    if not correlation[0] > 0:
        return int(min(least, most))
    # The sum of two successive lags is positive for a reversible process; the first that is not is noise (Geyer).
    pairs = (correlation[: count // 2 * 2].reshape(-1, 2).sum(axis=1)) / correlation[0]
    positive = int(np.argmax(np.r_[pairs, -1] <= 0))
    time = max(1.0, 2 * float(pairs[:positive].sum()) - 1)
    return int(min(max(least, round(2 * time)), most))


def _student(freedom: int) -> float:
    """Return the 97.5 percentile of Student's distribution, by its expansion in 1 / freedom from 3 degrees on."""
    if freedom < 3:
        return 12.706 if freedom == 1 else 4.303
    z: float = 1.959964
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def _block_sums(values: Reals, length: int) -> Reals:
    """Return the sum of ``length`` values from each place on, circularly, shape (n,)."""
    total = np.r_[0, np.cumsum(np.r_[values, values[: length - 1]])]
    return np.asarray(total[length:] - total[:-length])


def noise_of(groups: Groups) -> float:
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


def _unbiased(found: Estimate, groups: Groups, delta: float, absolute: bool, correct: bool) -> Estimate:
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
