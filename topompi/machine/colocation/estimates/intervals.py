"""Intervals of estimates by a block bootstrap over shutters."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .methods import EstimateTerms

__all__ = ["interval"]

SAMPLES = 400  # bootstrap samples
Reals = NDArray[np.float64]


def interval(terms: EstimateTerms, seed: int) -> tuple[float, float]:
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
    half = _student(blocks - 1) * terms.tails * spread
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
