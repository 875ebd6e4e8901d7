"""Scores of predicted classes, splits into training and test rows, and decisions of two models together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topompi.machine.colocation.prediction.features import FeatureRows
from topompi.machine.colocation.speedups.bands import CLASSES, GOOD

__all__ = ["Score", "both_good", "frontier", "held_out", "score", "unseen"]

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Score:
    """Shares of right classes.

    :ivar accuracy: share of rows with the right class.
    :ivar precision: share of good ones among those called good; NaN if none is.
    :ivar recall: share of those called good among good ones; NaN if none is good.
    :ivar confusion: number of rows by measured class and predicted class, shape (3, 3).
    """

    accuracy: float
    precision: float
    recall: float
    confusion: NDArray[np.int64]


def score(predicted: ArrayLike, measured: ArrayLike) -> Score:
    """Compare predicted classes with measured ones.

    :param predicted: predicted classes, places in ``CLASSES``, shape (m,).
    :param measured: measured classes, all known, shape (m,).
    """
    ours, true = np.asarray(predicted, np.int64), np.asarray(measured, np.int64)
    size = len(CLASSES)
    counts = np.bincount(size * true + ours, minlength=size * size).reshape(size, size)
    right, called, good = (int(one) for one in (counts[GOOD, GOOD], counts[:, GOOD].sum(), counts[GOOD].sum()))
    return Score(
        float(np.trace(counts) / counts.sum()) if counts.sum() else math.nan,
        right / called if called else math.nan, right / good if good else math.nan, counts,
    )  # fmt: skip


def unseen(rows: int, seed: int, share: float = 0.3) -> Mask:
    """Return a random test part, rounded up to whole rows, as a mask.

    :param rows: number of rows.
    :param seed: seed of the draw.
    :param share: share of the rows in the test part.
    """
    mask = np.zeros(rows, np.bool_)
    mask[np.random.default_rng(seed).permutation(rows)[: math.ceil(rows * share)]] = True
    return mask


def held_out(pairs: FeatureRows, group: Callable[[str], str]) -> Iterator[tuple[str, Mask, Mask]]:
    """Yield the name, the training part and the test part of each group of programs that is held out.

    The test part has the rows in which a program of the group takes part, as program or as neighbour; the training part
    has all others. No row of the training part therefore knows a program of the group.

    :param pairs: the rows.
    :param group: function from a program to its group, for example to the benchmark of which it is one size.
    """
    one, other = (np.array([group(name) for name in names], dtype=object) for names in (pairs.program, pairs.beside))
    for name in sorted(set(one) | set(other)):
        test = np.asarray((one == name) | (other == name), np.bool_)
        yield name, ~test, test


def both_good(first: ArrayLike, second: ArrayLike) -> NDArray[np.int8]:
    """Combine the classes of two models: good only if both say good, else the worse of the two classes.

    The published combination does not say which class is taken if the models differ. With this one, the class is that
    of the model that does not say good if only one does, and the order of the models has no effect.

    :param first: classes by a model, places in ``CLASSES``.
    :param second: classes by another model, of the same shape.
    """
    return np.minimum(np.asarray(first, np.int8), np.asarray(second, np.int8))


def frontier(points: ArrayLike) -> Mask:
    """Return which points no other point beats: at least as large in each figure, and larger in one. NaN is beaten.

    :param points: figures of each point, all to be large, shape (m, k).
    """
    values = np.nan_to_num(np.asarray(points, np.float64), nan=-np.inf)
    least = (values[:, None] >= values[None]).all(axis=2)
    beats = least & (values[:, None] > values[None]).any(axis=2)
    return np.asarray(~beats.any(axis=0))
