"""Sides of a comparison that take turns in one job, and what several comparisons say together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, permutations

import numpy as np

from osu_like_bench.statistics import Comparison

__all__ = ["orders", "together"]


def orders(sides: int) -> Iterator[tuple[int, ...]]:
    """Without end the orders in which the sides take their turns: each is as often first, and after each other one."""
    return cycle(permutations(range(sides)))


def together(found: Sequence[Comparison], floor: float) -> str:
    """The mean of some comparisons, how many are below the floor, and the least."""
    ratios = np.array([one.ratio for one in found])
    low, sure = np.sum(ratios < floor), sum(one.high < floor for one in found)
    mean = f"{len(found)} cells, geometric mean {np.exp(np.mean(np.log(ratios))):.3f}x"
    return f"{mean}; below {floor}: {low}, with the whole interval {sure}; least {ratios.min():.3f}x"
