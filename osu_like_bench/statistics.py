"""Comparison of two sides (implementations): the ratio of their median times, its interval, and a verdict in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topompi.errors import BenchmarkError

__all__ = ["LEAST_TIMES", "TOO_FEW", "Comparison", "TimeSummary", "compare", "compare_runs", "summary"]

RESAMPLES = 1000
WORK = 1 << 20  # maximum count of numbers held at once while resampling, which bounds memory
# Least relative difference that counts, because two native communicators of one process sometimes differ by 1 %, by
# clock ticks or the position of their memory.
LEAST_EFFECT = 0.02
LEAST_EXACT = 0.005  # least relative difference of computed times that counts, because they are not exact
LEAST_TIMES = 20  # least number of times for a verdict, because intervals from resampling fewer are too narrow
TOO_FEW = "too few pairs"


@dataclass(frozen=True)
class Comparison:
    """The ratio of the speeds of two sides, above 1 if the first is faster, with its interval.

    :param ratio: median time of the second side over that of the first.
    :param low: lower end of the ratio's 95 % interval.
    :param high: upper end of the ratio's 95 % interval.
    :param pairs: number of compared pairs of times; if the times are not paired, the smaller number of times of the two
        sides.
    :param exact: True if the times were computed, not measured, so that one time suffices.
    """

    ratio: float
    low: float
    high: float
    pairs: int
    exact: bool = False

    @property
    def verdict(self) -> str:
        """The comparison in words: ``1.23x faster``, ``1.08x slower``, ``not significant`` or ``too few pairs``.

        There are too few pairs if fewer than 20 were timed. A difference is not significant if the interval contains 1,
        or if the difference is below 2 %. Exact times are ``alike`` if they differ by less than half a per cent; every
        larger difference counts.
        """
        times = max(self.ratio, 1 / self.ratio)
        if self.exact and times < 1 + LEAST_EXACT:
            return "alike"
        if not self.exact and self.pairs < LEAST_TIMES:
            return TOO_FEW
        if not self.exact and (self.low <= 1 <= self.high or times < 1 + LEAST_EFFECT):
            return "not significant"
        return f"{times:.2f}x {'faster' if self.ratio > 1 else 'slower'}"

    @property
    def unstable(self) -> bool:
        """Whether the interval is wider than a fifth of the ratio."""
        return self.high - self.low > 0.2 * self.ratio


def compare(first: NDArray[np.float64], second: NDArray[np.float64], seed: int = 0) -> Comparison:
    """Compare the times of two sides (implementations) whose calls took turns.

    The interval is the percentile interval of a circular block bootstrap (D. N. Politis and J. P. Romano, 1992). It
    resamples blocks, because successive iterations resemble each other, and pairs of times, because both calls of an
    iteration met the same disturbance.

    :param first: times of the first side in seconds, shape (iterations,).
    :param second: times of the second side in seconds in the same iterations, shape (iterations,).
    :param seed: seed of the resampling.
    :raises BenchmarkError: if there are no times, or the numbers of times differ.

    Cost: 1,000 medians of each side.
    """
    if len(first) != len(second) or not len(first):
        raise BenchmarkError(f"comparison: expecting pairs of times, got {len(first)} and {len(second)}")
    ratios = np.concatenate(
        [
            np.median(second[chosen], axis=1) / np.median(first[chosen], axis=1)
            for chosen in _resamples(len(first), np.random.default_rng(seed))
        ]
    )
    ratio = np.median(second) / np.median(first)
    return Comparison(float(ratio), *_interval(ratios), len(first))


@dataclass(frozen=True, eq=False)
class TimeSummary:
    """A summary of the times of one run at one size, in seconds.

    :param median: median of the times.
    :param quartiles: lower and upper quartile of the times.
    :param medians: medians of the resampled times, shape (1000,).
    :param times: number of times.
    """

    median: float
    quartiles: tuple[float, float]
    medians: NDArray[np.float64]
    times: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the median."""
        return _interval(self.medians)

    @property
    def unstable(self) -> bool:
        """Whether the interval is wider than a fifth of the median."""
        low, high = self.interval
        return high - low > 0.2 * self.median


def summary(times: NDArray[np.float64], generator: np.random.Generator) -> TimeSummary:
    """Summarise the times of one run; the interval comes from resampling in blocks, as in ``compare``.

    :param times: times in seconds, shape (iterations,).
    :param generator: random generator of the resampling.
    :raises BenchmarkError: if there are no times, or a time is not above 0 and finite.

    Cost: 1,000 medians.
    """
    wrong = times[~(np.isfinite(times) & (times > 0))] if times.ndim == 1 and len(times) else times
    if times.ndim != 1 or not len(times) or len(wrong):
        raise BenchmarkError(f"comparison: expecting times above 0 s, at least one, got {wrong[:1].tolist() or 'none'}")
    medians = np.concatenate([np.median(times[chosen], axis=1) for chosen in _resamples(len(times), generator)])
    lower, median, upper = (float(value) for value in np.quantile(times, (0.25, 0.5, 0.75)))
    return TimeSummary(median, (lower, upper), medians, len(times))


def compare_runs(first: Sequence[TimeSummary], second: Sequence[TimeSummary]) -> Comparison:
    """Compare two separate runs by the geometric mean over sizes of the ratios of their medians.

    The iterations of separate runs are not paired, so that each run was resampled on its own. The interval covers the
    variation of the times within the two runs; a third run may differ by more.

    :param first: summaries of the first run, one per size, made with one generator for both runs, so that their
        resamples are independent.
    :param second: summaries of the second run, one per size.
    :raises BenchmarkError: if there are no sizes, or the numbers of sizes differ.
    """
    if len(first) != len(second) or not first:
        raise BenchmarkError(f"comparison: expecting the same sizes, got {len(first)} and {len(second)}")
    pairs = list(zip(first, second, strict=True))
    ratios = np.exp(np.mean([np.log(other.medians / one.medians) for one, other in pairs], axis=0))
    ratio = np.exp(np.mean([np.log(other.median / one.median) for one, other in pairs]))
    return Comparison(float(ratio), *_interval(ratios), min(side.times for side in (*first, *second)))


def _interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the percentile interval that contains 95 % of the resampled values."""
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def _resamples(size: int, generator: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield index arrays of shape (resamples, size) in portions, 1,000 rows in total."""
    length = round(size**0.5)  # long enough for the time slices of busy CPUs, short enough for many blocks
    blocks = -(-size // length)
    starts = generator.integers(size, size=(RESAMPLES, blocks, 1))
    for portion in np.array_split(starts, min(RESAMPLES, 1 + RESAMPLES * size // WORK)):
        yield ((portion + np.arange(length)) % size).reshape(len(portion), -1)[:, :size]
