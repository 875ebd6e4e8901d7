"""Classes of speed-ups (bad, stationary, good), and verdicts on predicted classes.

Speed-ups are rounded to two decimals before they are compared, as in the published tables, because the bands meet at
0.95 and 1.1. The bands are those of A. Tsoukleidis-Karydakis, diploma thesis, NTUA 2025, tables 4.2 and 4.3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["CLASSES", "UNKNOWN", "VERDICTS", "classes", "edges", "verdicts"]

Codes = NDArray[np.int8]

CLASSES = ("bad", "stationary", "good")
VERDICTS = ("wrong", "sufficiently correct", "fully correct")
UNKNOWN = -1  # code of a class or verdict of an unknown speed-up
BAD, STATIONARY, GOOD = range(3)
FROM_STATIONARY, FROM_GOOD = 0.95, 1.1  # the least speed-ups of these classes
# Lenient bands of the predicted classes. 0.95 is still bad, and 1.15 no longer stationary.
LENIENT_BAD, LENIENT_STATIONARY, LENIENT_GOOD = 0.95, (0.9, 1.15), 1.05


def classes(ratio: ArrayLike) -> Codes:
    """Return the class of each speed-up as its index in ``CLASSES``; -1 if the speed-up is NaN.

    :param ratio: speed-ups, of any shape.
    """
    value = np.round(np.asarray(ratio, np.float64), 2)
    found = (value >= FROM_STATIONARY).astype(np.int8) + (value >= FROM_GOOD).astype(np.int8)
    return np.where(np.isnan(value), UNKNOWN, found).astype(np.int8)


def edges() -> tuple[float, float]:
    """Return the natural logarithms of the two speed-ups at which the rounded value changes its class."""
    return float(np.log(FROM_STATIONARY - 0.005)), float(np.log(FROM_GOOD - 0.005))


def verdicts(predicted: ArrayLike, ratio: ArrayLike) -> Codes:
    """Return the verdict on each predicted class as its index in ``VERDICTS``; -1 if either is unknown.

    A class is fully correct if the speed-up is in its band, and sufficiently correct if it is in its lenient band only.

    :param predicted: predicted classes, indices in ``CLASSES``.
    :param ratio: measured speed-ups, of the same shape.
    """
    label = np.asarray(predicted, np.int8)
    value = np.round(np.asarray(ratio, np.float64), 2)
    least, below = LENIENT_STATIONARY
    lenient = np.choose(
        np.maximum(label, 0), [value <= LENIENT_BAD, (value >= least) & (value < below), value >= LENIENT_GOOD]
    )
    found = np.where(label == classes(value), 2, lenient.astype(np.int8))
    return np.where(np.isnan(value) | (label < 0), UNKNOWN, found).astype(np.int8)
