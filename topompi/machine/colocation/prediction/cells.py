"""Predictions of a matrix's cells: speed-up, interval and class; how good they are, and the cell to measure next."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import ColocationError
from ..speedups.bands import classes, edges
from ..speedups.matrix import Speedups
from .model import TERMS, fit

__all__ = ["LEAST", "PredictedCells", "choose_terms", "expected_accuracy", "left_out", "next_cells", "predict"]

Reals = NDArray[np.float64]
LEAST = 4  # known cells without which there is nothing to learn from
FOLDS = 10
BATCH = 2_000_000  # cells of all masks fitted at once, for memory


@dataclass(frozen=True, eq=False)
class PredictedCells:
    """Predicted speed-ups of all cells of a matrix, each as if it had not been measured if it was left out.

    :ivar speedup: median of the predicted speed-up, shape (n, n).
    :ivar low: lower ends of the intervals, shape (n, n).
    :ivar high: upper ends of the intervals, shape (n, n).
    :ivar chance: probability of each of ``CLASSES``, shape (n, n, 3).
    :ivar error: standard deviation of the logarithm, shape (n, n).
    :ivar terms: number of interaction terms.
    :ivar scores: errors of left-out cells in standard deviations, sorted, which make the intervals.
    :ivar level: share of values that the intervals promise to cover.
    """

    speedup: Reals
    low: Reals
    high: Reals
    chance: Reals
    error: Reals
    terms: int
    scores: Reals
    level: float

    @property
    def label(self) -> NDArray[np.int64]:
        """The most probable class of each cell, a place in ``CLASSES``, shape (n, n)."""
        best: NDArray[np.int64] = np.argmax(self.chance, axis=2)
        return best


def predict(speedups: Speedups, *, level: float = 0.9, terms: int | None = None) -> PredictedCells:
    """Predict every cell of a matrix from its known cells.

    Intervals are conformal: each known cell is predicted without itself, and the errors in units of the predicted
    standard deviations give the factor by which an interval is wide, and the chance of each class.

    :param speedups: speed-ups, at least ``LEAST`` of them known.
    :param level: share of values that an interval shall cover.
    :param terms: number of interaction terms; None to choose by cross-validation.
    :raises ColocationError: if too few cells are known or the level is no share.
    """
    _require(speedups, level)
    terms = terms or choose_terms(speedups.ratio, speedups.known)
    logs = np.log(speedups.ratio)
    found = fit(logs, speedups.known[None], terms)
    mean, error = found.mean[0], np.sqrt(found.variance[0])
    scores = _scores(logs, speedups.known, terms)
    factor = _factor(scores, level)
    return PredictedCells(
        np.exp(mean), np.exp(mean - factor * error), np.exp(mean + factor * error),
        _chances(mean, error, scores), error, terms, scores, level,
    )  # fmt: skip


def left_out(speedups: Speedups, *, level: float = 0.9, terms: int | None = None) -> PredictedCells:
    """Predict each known cell from all others; unknown cells are NaN.

    The number of terms is chosen without the cell: cross-validation runs without each tenth of the cells in turn, and
    each cell takes the number chosen without its tenth. The interval and the chances of a cell do not use the
    cell's own error, but errors of other cells, whose predictions have seen the cell.

    :param speedups: speed-ups, at least ``LEAST`` of them known.
    :param level: share of values that an interval shall cover.
    :param terms: number of interaction terms; None to choose by nested cross-validation.
    :raises ColocationError: if too few cells are known or the level is no share.
    """
    _require(speedups, level)
    logs, known = np.log(speedups.ratio), speedups.known
    chosen = _nested_terms(speedups.ratio, known, terms)
    mean, error = np.full((2, *logs.shape), np.nan)
    for count in np.unique(chosen[known]).tolist():
        one, spread = _each_left_out(logs, known, count)
        mean, error = np.where(chosen == count, one, mean), np.where(chosen == count, spread, error)
    signed = (logs - mean) / error
    factor, chance = np.full(logs.shape, np.nan), np.full((*logs.shape, 3), np.nan)
    for row, column in np.argwhere(known).tolist():
        mask = known.copy()
        mask[row, column] = False
        others = np.sort(signed[mask])
        factor[row, column] = _factor(others, level)
        chance[row, column] = _chances(mean[row, column], error[row, column], others)
    return PredictedCells(
        np.exp(mean), np.exp(mean - factor * error), np.exp(mean + factor * error), chance, error,
        int(np.bincount(chosen[known]).argmax()), np.sort(signed[known]), level,
    )  # fmt: skip


def choose_terms(ratio: Reals, known: NDArray[np.bool_]) -> int:
    """Return the least number of interaction terms whose share of right classes is not clearly below the best one's.

    Clearly is more than a standard error of the difference, in cross-validation over ``FOLDS`` parts.

    :param ratio: speed-ups, shape (n, n).
    :param known: cells that may be used, shape (n, n).
    """
    parts = _parts(known)
    masks = known[None] & (parts[None] != np.arange(FOLDS)[:, None, None])
    right = []
    for terms in TERMS:
        mean = fit(np.log(ratio), masks, terms).mean
        own = np.take_along_axis(mean, np.maximum(parts, 0)[None], axis=0)[0]
        right.append((classes(np.exp(own)) == classes(ratio))[known])
    best = max(right, key=np.mean)
    for terms, one in zip(TERMS, right, strict=True):
        loss = best.astype(float) - one
        if loss.mean() <= loss.std() / math.sqrt(len(loss)):
            return terms
    return TERMS[0]


def next_cells(speedups: Speedups, prediction: PredictedCells, count: int) -> list[tuple[int, int]]:
    """Return the unknown cells to measure next, as rows and columns: those whose classes are least sure.

    A pair run gives the cells of both programs, so a cell's worth includes that of its mirror image.

    :param speedups: speed-ups, some unknown.
    :param prediction: their prediction.
    :param count: number of cells.
    """
    doubt = np.where(speedups.known, 0.0, 1 - prediction.chance.max(axis=2) + prediction.error)
    worth = np.where(speedups.known, -1.0, doubt + doubt.T * ~np.eye(len(speedups), dtype=bool))
    order = np.argsort(-worth, axis=None, kind="stable")[: min(count, int((~speedups.known).sum()))]
    return [(int(at) // len(speedups), int(at) % len(speedups)) for at in order]


def expected_accuracy(prediction: PredictedCells, cells: NDArray[np.bool_]) -> float:
    """Return the share of some cells whose predicted class is right, as the chances of the classes say; NaN for none.

    :param prediction: the prediction.
    :param cells: mask of the cells, shape (n, n).
    """
    return float(prediction.chance.max(axis=2)[cells].mean()) if cells.any() else math.nan


def _require(speedups: Speedups, level: float) -> None:
    count = int(speedups.known.sum())
    if count < LEAST:
        raise ColocationError(f"expecting at least {LEAST} known cells to predict from, got {count}")
    if not 0 < level < 1:
        raise ColocationError(f"level: expecting a share between 0 and 1, got {level:g}")


def _parts(known: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the part of each known cell, -1 for unknown ones, equal on every call."""
    order = np.random.default_rng(0).permutation(int(known.sum()))
    parts = np.full(known.shape, -1)
    parts[known] = order % FOLDS
    return parts


def _nested_terms(ratio: Reals, known: NDArray[np.bool_], terms: int | None) -> NDArray[np.int64]:
    if terms is not None:
        return np.full(ratio.shape, terms)
    parts, chosen = _parts(known), np.zeros(ratio.shape, np.int64)
    for part in range(FOLDS):
        mask = known & (parts != part)
        chosen[parts == part] = choose_terms(ratio, mask) if mask.any() else TERMS[0]
    return chosen


def _each_left_out(logs: Reals, known: NDArray[np.bool_], terms: int) -> tuple[Reals, Reals]:
    """Return the mean and standard deviation of each known cell, predicted from all others."""
    at = np.argwhere(known)
    mean, error = np.full((2, *logs.shape), np.nan)
    step = max(1, BATCH // logs.size)
    for start in range(0, len(at), step):
        rows, columns = at[start : start + step].T
        each = np.arange(len(rows))
        masks = np.repeat(known[None], len(rows), axis=0)
        masks[each, rows, columns] = False
        found = fit(logs, masks, terms)
        mean[rows, columns] = found.mean[each, rows, columns]
        error[rows, columns] = np.sqrt(found.variance[each, rows, columns])
    return mean, error


def _scores(logs: Reals, known: NDArray[np.bool_], terms: int) -> Reals:
    mean, error = _each_left_out(logs, known, terms)
    return np.sort(((logs - mean) / error)[known])


def _factor(scores: Reals, level: float) -> float:
    """Return the quantile of absolute scores that conformal prediction takes: the ``ceil((n + 1) level)``-th least."""
    size = np.sort(np.abs(scores))
    return float(size[min(len(size), math.ceil((len(size) + 1) * level)) - 1])


def _chances(mean: Reals, error: Reals, scores: Reals) -> Reals:
    """Return the probability of each class if errors are distributed as the scores, symmetric, half a count each."""
    both = np.sort(np.concatenate((scores, -scores)))
    low, high = ((np.asarray(edge) - mean) / error for edge in edges())
    below, under = ((np.searchsorted(both, at) + 0.5) / (len(both) + 1) for at in (low, high))
    return np.stack((below, under - below, 1 - under), axis=-1)
