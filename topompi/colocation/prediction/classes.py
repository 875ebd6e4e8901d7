"""The three classes of a speed-up, at two decimals as the published tables print it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["CLASSES", "class_of", "edges"]

CLASSES = ("bad", "stationary", "good")
BAD, GOOD = 0.95, 1.10  # bad below, good from here on


def class_of(speedup: ArrayLike) -> NDArray[np.int64]:
    """Return the place in ``CLASSES`` of each speed-up, after it was rounded to two decimals.

    :param speedup: speed-ups, any shape.
    """
    rounded = np.round(np.asarray(speedup, np.float64), 2)
    return np.where(rounded >= GOOD, 2, np.where(rounded < BAD, 0, 1))


def edges() -> tuple[float, float]:
    """Return the logarithms of the speed-ups at which the rounded value changes its class."""
    return float(np.log(BAD - 0.005)), float(np.log(GOOD - 0.005))
