"""Which side is faster: the ratio of medians with its interval, and a verdict in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topompi.errors import BenchmarkError

__all__ = ["LEAST_TIMES", "TOO_FEW", "Comparison", "Summary", "compare", "compare_runs", "summary", "summary_of_starts"]

RESAMPLES = 1000
WORK = 1 << 20  # numbers held at once while resampling
# Two native communicators of one process differ by 1 % at times: clock ticks, where their memory lies.
LEAST_EFFECT = 0.02
LEAST_EXACT = 0.005  # the accuracy of computed times
LEAST_TIMES = 20  # below, intervals made by resampling are too narrow
TOO_FEW = "too few pairs"


@dataclass(frozen=True)
class Comparison:
    """How many times faster the first side is than the second.

    :param ratio: median time of the second over median time of the first.
    :param low: lower end of the ratio's 95 % interval.
    :param high: its upper end.
    :param pairs: how many pairs of times were compared; where nothing pairs them, the number of times of the side that
        has fewer.
    :param exact: whether the times were computed, not measured, so that one says as much as many.
    """

    ratio: float
    low: float
    high: float
    pairs: int
    exact: bool = False

    @property
    def verdict(self) -> str:
        """``1.23x faster``, ``1.08x slower``, ``not significant``, or ``too few pairs`` where fewer than 20 were timed.

        A difference is not significant if the interval holds 1, or if it is below 2 %. Exact times are ``alike`` if
        they differ by less than half a per cent; every larger difference counts.
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
    """Compare the times of two sides that ran interleaved.

    The interval is the percentile interval of a circular block bootstrap (D. N. Politis and J. P. Romano,
    1992) on pairs: successive iterations resemble each other, and both sides of an iteration met the same
    disturbance.

    :param first: times in seconds, shape (iterations,).
    :param second: likewise, pair by pair.
    :param seed: of the resampling.
    :raises BenchmarkError: if there are no times, or not equally many.
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
class Summary:
    """The times of one run at one size, in seconds.

    :param median: of the times.
    :param quartiles: lower and upper.
    :param medians: of the resampled times, shape (1000,).
    :param times: how many there were.
    """

    median: float
    quartiles: tuple[float, float]
    medians: NDArray[np.float64]
    times: int

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the median."""
        return _interval(self.medians)

    @property
    def unstable(self) -> bool:
        """Whether the interval is wider than a fifth of the median."""
        low, high = self.interval
        return high - low > 0.2 * self.median


def summary(times: NDArray[np.float64], generator: np.random.Generator) -> Summary:
    """Sum up times in seconds, shape (iterations,), resampled in blocks as ``compare`` does.

    :raises BenchmarkError: if there are no times, or some that no clock measures.
    Cost: 1,000 medians.
    """
    wrong = times[~(np.isfinite(times) & (times > 0))] if times.ndim == 1 and len(times) else times
    if times.ndim != 1 or not len(times) or len(wrong):
        raise BenchmarkError(f"comparison: expecting times above 0 s, at least one, got {wrong[:1].tolist() or 'none'}")
    medians = np.concatenate([np.median(times[chosen], axis=1) for chosen in _resamples(len(times), generator)])
    lower, median, upper = (float(value) for value in np.quantile(times, (0.25, 0.5, 0.75)))
    return Summary(median, (lower, upper), medians, len(times))


def summary_of_starts(starts: Sequence[NDArray[np.float64]], generator: np.random.Generator) -> Summary:
    """Sum up the times of all starts of one program; the interval says how another start would differ.

    The bootstrap draws whole starts, because the times within a start share its conditions (A. C. Davison and D. V.
    Hinkley, Bootstrap Methods and their Application, 1997, section 3.8). With a single start it draws times, as
    ``summary`` does.

    :param starts: times in seconds, an array of shape (iterations,) for each start.
    :raises BenchmarkError: as ``summary``.
    """
    found = summary(np.concatenate([np.empty(0), *starts]), generator)
    if len(starts) < 2:
        return found
    drawn = generator.integers(len(starts), size=(RESAMPLES, len(starts)))
    medians = [float(np.median(np.concatenate([starts[start] for start in row]))) for row in drawn]
    return replace(found, medians=np.array(medians))


def compare_runs(first: Sequence[Summary], second: Sequence[Summary]) -> Comparison:
    """Compare two separate runs by the geometric mean over sizes of the ratios of their medians.

    Nothing pairs the iterations of such runs, so each was resampled by itself. The interval covers how the times vary
    within the runs, not how a third run would differ from them.

    :param first: one summary a size, made with the generator that made all the others, or they vary in step.
    :param second: likewise.
    :raises BenchmarkError: if there are no sizes, or not equally many.
    """
    if len(first) != len(second) or not first:
        raise BenchmarkError(f"comparison: expecting the same sizes, got {len(first)} and {len(second)}")
    pairs = list(zip(first, second, strict=True))
    ratios = np.exp(np.mean([np.log(other.medians / one.medians) for one, other in pairs], axis=0))
    ratio = np.exp(np.mean([np.log(other.median / one.median) for one, other in pairs]))
    return Comparison(float(ratio), *_interval(ratios), min(side.times for side in (*first, *second)))


def _interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """The percentile interval that 95 % of resampled values lie in."""
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def _resamples(size: int, generator: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Index arrays of shape (resamples, size) in portions, 1,000 rows together."""
    length = round(size**0.5)  # long enough for the time slices of busy CPUs, short enough for many blocks
    blocks = -(-size // length)
    starts = generator.integers(size, size=(RESAMPLES, blocks, 1))
    for portion in np.array_split(starts, min(RESAMPLES, 1 + RESAMPLES * size // WORK)):
        yield ((portion + np.arange(length)) % size).reshape(len(portion), -1)[:, :size]
