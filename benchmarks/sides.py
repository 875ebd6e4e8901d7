"""Sides of a comparison that take turns in one job, and summaries of several comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, permutations

import numpy as np

from osu_like_bench.statistics import Comparison

__all__ = ["orders", "spread", "together"]


def orders(sides: int) -> Iterator[tuple[int, ...]]:
    """Yield orders of the sides without end.

    Each side is equally often first, and equally often after each other one.
    """
    return cycle(permutations(range(sides)))


def spread(found: Sequence[Comparison]) -> float:
    """Return the standard deviation of the logarithms of the true ratios of some comparisons.

    It is the part of the ratios' variance that their intervals do not explain (R. DerSimonian and N. Laird, 1986): 0 if
    chance explains all of it. Comparisons without an interval are left out.
    """
    ends = np.log([(one.low, one.ratio, one.high) for one in found if one.low < one.high])
    if len(ends) < 2:
        return 0.0
    weights = (2 * 1.96 / (ends[:, 2] - ends[:, 0])) ** 2
    about = ends[:, 1] - np.average(ends[:, 1], weights=weights)
    beyond = np.sum(weights * about**2) - (len(ends) - 1)
    return float(np.sqrt(max(0.0, beyond / (np.sum(weights) - np.sum(weights**2) / np.sum(weights)))))


def together(found: Sequence[Comparison], floor: float) -> str:
    """Summarise comparisons: their mean, the number below the floor, the least, and their true differences."""
    ratios = np.array([one.ratio for one in found])
    low, sure = np.sum(ratios < floor), sum(one.high < floor for one in found)
    mean = f"{len(found)} cells, geometric mean {np.exp(np.mean(np.log(ratios))):.3f}x"
    least = f"least {ratios.min():.3f}x, differing by {spread(found):.1%} beyond chance"
    return f"{mean}; below {floor}: {low}, with the whole interval {sure}; {least}"
