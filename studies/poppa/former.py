"""The default estimator before intervals included cold caches, to compare with.

It corrected rates alone by long shutters only if their rise was significant, and took the corrected rates for certain
if it was not.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from topompi.colocation.estimates.estimators import Estimate
from topompi.colocation.estimates.intervals import interval
from topompi.colocation.estimates.methods import LEAST, METHODS
from topompi.colocation.estimates.records import Groups

__all__ = ["former_estimate"]


def former_estimate(groups: Groups) -> Estimate:
    """Return the former estimate of a job.

    :param groups: rates of the job, of shutters in which it ran alone, with several windows per region.
    """
    groups, cold = _warmed(groups)
    terms = replace(METHODS["balanced"](groups, 0.0, False), tails=1.0)
    value, (low, high) = float(terms.value(terms.rows.sum(axis=1))), interval(terms, 0)
    below, above = math.hypot(value - low, cold * value), math.hypot(high - value, cold * value)
    return Estimate("former", value, value - below, value + above, len(groups.rates[0]), len(groups.rates[0]))


def _warmed(groups: Groups) -> tuple[Groups, float]:
    """Return the rates with those alone as with warm caches, and the relative half-width of the correction."""
    if groups.warm is None or np.isfinite(groups.warm).sum() < LEAST:
        return groups, 0.0
    is_long, during = np.isfinite(groups.warm), groups.rates[1]
    early, late = during[is_long].mean(axis=1), groups.warm[is_long]
    share, count = float(early.sum() / late.sum()), len(late)
    error = math.sqrt(count / (count - 1) * float(((early - share * late) ** 2).sum())) / float(late.sum())
    shrunk = max(0.0, 1 - (2 * error / (1 - share)) ** 2) if share < 1 else 0.0
    if shrunk == 0:
        return groups, 0.0
    rates = groups.rates.copy()
    rates[1] /= 1 - shrunk * (1 - share * during.mean(axis=0) / during.mean())
    return replace(groups, rates=rates), 1.96 * error * shrunk
