"""Accuracy of predictions over the number of measured pairs, for policies that choose the next pair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topompi.machine.colocation.prediction.cells import LEAST, PredictedCells, expected_accuracy, next_cells, predict
from topompi.machine.colocation.speedups.bands import classes
from topompi.machine.colocation.speedups.matrix import Speedups

__all__ = ["POLICIES", "Step", "curve", "in_random_order", "least_sure"]

Cells = list[tuple[int, int]]
Policy = Callable[[Speedups, PredictedCells, np.random.Generator], Cells]


class Step(NamedTuple):
    """The state after some runs.

    :ivar cells: number of measured cells.
    :ivar accuracy: share of the cells not measured yet whose predicted class is right.
    :ivar expected: the same share, as the prediction itself expects it.
    """

    cells: int
    accuracy: float
    expected: float


def least_sure(speedups: Speedups, prediction: PredictedCells, rng: np.random.Generator) -> Cells:
    """Return the unknown cells in the order of ``next_cells``.

    :param speedups: the matrix so far.
    :param prediction: its prediction.
    :param rng: not used.
    """
    return next_cells(speedups, prediction, speedups.ratio.size)


def in_random_order(speedups: Speedups, prediction: PredictedCells | None, rng: np.random.Generator) -> Cells:
    """Return the unknown cells in random order.

    :param speedups: the matrix so far.
    :param prediction: not used.
    :param rng: source of the order.
    """
    return [(int(row), int(column)) for row, column in rng.permutation(np.argwhere(~speedups.known))]


POLICIES: dict[str, Policy] = {"least sure first": least_sure, "random": in_random_order}


def curve(speedups: Speedups, policy: Policy, *, seed: int = 0, batch: int = 1, terms: int | None = None) -> list[Step]:
    """Measure a matrix in the order of a policy, from ``LEAST`` random cells on, and judge each prediction on the way.

    A run of a pair gives the cells of both programs. The last step leaves at least ``LEAST`` cells unmeasured.

    :param speedups: a matrix; its unknown cells are never measured.
    :param policy: function from the matrix so far, its prediction and a source of draws to unknown cells, best first.
    :param seed: seed of the first cells and of the policy.
    :param batch: number of runs between predictions.
    :param terms: number of interaction terms; None to choose by cross-validation at each step.
    """
    rng, truth = np.random.default_rng(seed), classes(speedups.ratio)
    seen = np.zeros(speedups.known.shape, np.bool_)
    for cell in in_random_order(_seen(speedups, seen), None, rng):
        if seen.sum() < LEAST:
            _run(seen, cell, speedups.known)
    steps = list[Step]()
    while (left := speedups.known & ~seen).sum() >= LEAST:
        now = _seen(speedups, seen)
        made = predict(now, terms=terms)
        steps.append(
            Step(int(seen.sum()), float((made.label == truth)[left].mean()), expected_accuracy(made, left))
        )  # fmt: skip
        runs = 0
        for cell in policy(now, made, rng):
            if runs < batch and _run(seen, cell, speedups.known):
                runs += 1
    return steps


def _seen(speedups: Speedups, seen: NDArray[np.bool_]) -> Speedups:
    return replace(speedups, ratio=np.where(seen, speedups.ratio, np.nan))


def _run(seen: NDArray[np.bool_], cell: tuple[int, int], known: NDArray[np.bool_]) -> bool:
    """Measure a pair in place; return whether this gave a new cell."""
    before = int(seen.sum())
    for at in (cell, cell[::-1]):
        seen[at] = known[at]
    return int(seen.sum()) > before
