"""Rates alone as they would be with warm caches, from long shutters.

What a neighbour takes by emptying caches does not come back in the milliseconds of a shutter: the job is then found too
fast beside others. A long shutter shows the rate that the job reaches after tens of milliseconds alone.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .methods import LEAST
from .records import Groups

__all__ = ["warmed"]

SURE = 2.0  # standard errors up to which a difference between the early and the late rate alone counts as noise


def warmed(groups: Groups) -> tuple[Groups, float]:
    """Return the shutters with rates alone as with warm caches, and the half-width of the correction's interval (95 %).

    Each window alone is divided by the mean rate of all windows as late after the stop, relative to the rate at the end
    of long shutters. A difference of ``SURE`` standard errors or less is noise, and more is shrunk by the noise
    (positive part of James and Stein). With fewer than 10 long shutters nothing changes. The half-width is relative.

    :param groups: rates of the job, of shutters in which it ran alone.
    """
    if groups.warm is None or np.isfinite(groups.warm).sum() < LEAST:
        return groups, 0.0
    is_long = np.isfinite(groups.warm)
    during = groups.rates[1]
    early, late = during[is_long].mean(axis=1), groups.warm[is_long]
    if not late.sum() > 0:
        return groups, 0.0
    share = float(early.sum() / late.sum())
    count = len(late)
    error = math.sqrt(count / (count - 1) * float(((early - share * late) ** 2).sum())) / float(late.sum())
    cold = 1 - share
    shrunk = max(0.0, 1 - (SURE * error / cold) ** 2) if cold > 0 else 0.0
    if shrunk == 0:
        return groups, 0.0
    profile = share * during.mean(axis=0) / during.mean()
    rates = groups.rates.copy()
    rates[1] /= 1 - shrunk * (1 - profile)
    return replace(groups, rates=rates), 1.96 * error * shrunk
