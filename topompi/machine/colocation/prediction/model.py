"""A model of speed-ups: each program's own level and sensitivity, and each neighbour's pressure.

``log H[a, b] = r_a + sum_k s_ak g_bk + d [a = b] + noise_a``, fitted by variational Bayes with normal priors whose
variances are learnt from the given matrix (empirical Bayes), so that unknown cells pull towards the average program. It
is a probabilistic matrix factorisation (Salakhutdinov and Mnih 2008) with a level per row, noise per row, and an offset
of the diagonal. All functions fit many masks of one matrix at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["TERMS", "Fit", "fit"]

Reals = NDArray[np.float64]
TERMS = (1, 2, 3)  # numbers of interaction terms among which cross-validation chooses
ROUNDS = 60
FLOOR = 0.005**2  # variance of the rounding of a speed-up to two decimals, and of a quiet measurement
ROWS = 4.0  # number of cells as which the noise common to all programs counts in each program's own noise
PRIOR = 3.0  # number of programs as which the prior counts in each learnt variance
SMALL, WIDE = 0.05**2, 0.1**2  # variances of logarithms before anything is learnt


@dataclass(frozen=True, eq=False)
class Fit:
    """Predictive distributions of the logarithms of speed-ups, for m masks of a matrix of n programs.

    :ivar mean: predicted logarithm, shape (m, n, n).
    :ivar variance: variance of the prediction, measurement noise included, shape (m, n, n).
    """

    mean: Reals
    variance: Reals


@dataclass(eq=False)
class _State:
    """Present estimates: means and covariances of rows (r, s) and columns (1, g), noise, and the diagonal's offset."""

    rows: Reals
    row_spread: Reals
    columns: Reals
    column_spread: Reals
    noise: Reals
    offset: Reals
    offset_spread: Reals

    @property
    def mean(self) -> Reals:
        return self.rows @ self.columns.swapaxes(1, 2)

    @property
    def doubt(self) -> Reals:
        """Variance of the predictions without the noise."""
        m, n, k = self.rows.shape
        rows, columns = (_squares(*two).reshape(m, n, k * k) for two in self._pairs())
        return np.maximum(rows @ columns.swapaxes(1, 2) - self.mean**2, 0)

    def _pairs(self) -> tuple[tuple[Reals, Reals], tuple[Reals, Reals]]:
        return (self.rows, self.row_spread), (self.columns, self.column_spread)


def fit(logarithms: ArrayLike, known: NDArray[np.bool_], terms: int = 1) -> Fit:
    """Fit the model to the known cells of a matrix, for many masks at once.

    Cost: ROUNDS times O(m n^2 terms^2).

    :param logarithms: logarithms of speed-ups, shape (n, n); cells that no mask knows may be NaN.
    :param known: masks of the cells that may be used, shape (m, n, n).
    :param terms: number of interaction terms.
    """
    values = np.asarray(logarithms, np.float64)
    values = np.where(np.isfinite(values), values, 0.0)
    weight = np.asarray(known, np.float64)
    eye = np.eye(len(values))
    state = _start(values, weight, terms)
    for _ in range(ROUNDS):
        precision = weight / (state.noise[:, :, None] + eye * state.offset_spread[:, None, None])
        target = values - eye * state.offset[:, None, None]
        _fit_rows(state, precision, target)
        _fit_columns(state, precision, target)
        _fit_noise(state, values, weight * (1 - eye))
        _fit_diagonal(state, values, np.einsum("mii->mi", weight))
    variance = state.doubt + state.noise[:, :, None] + eye * state.offset_spread[:, None, None]
    return Fit(state.mean + eye * state.offset[:, None, None], variance)


def _start(values: Reals, weight: Reals, terms: int) -> _State:
    """Return levels by row means, and interactions by the singular vectors of the rest."""
    m, n, _ = weight.shape
    total = np.maximum(weight.sum(axis=(1, 2)), 1)
    centre = (weight * values).sum(axis=(1, 2)) / total
    level = (weight * (values - centre[:, None, None])).sum(axis=2) / (weight.sum(axis=2) + 0.5)
    rest = weight * (values - centre[:, None, None] - level[:, :, None])
    left, size, right = np.linalg.svd(rest)
    k = min(terms, n)
    rows, columns = np.zeros((m, n, terms + 1)), np.zeros((m, n, terms + 1))
    rows[..., 0], columns[..., 0] = centre[:, None] + level, 1
    sign = np.where(left[:, :, :k].sum(axis=1) < 0, -1.0, 1.0)[:, None]
    rows[..., 1 : k + 1] = left[:, :, :k] * sign * size[:, None, :k] / np.sqrt(n)
    columns[..., 1 : k + 1] = right[:, :k].swapaxes(1, 2) * sign * np.sqrt(n)
    none = np.zeros((m, n, terms + 1, terms + 1))
    return _State(rows, none, columns, none.copy(), np.full((m, n), SMALL), np.zeros(m), np.full(m, WIDE))


def _fit_rows(state: _State, precision: Reals, target: Reals) -> None:
    """Update levels and sensitivities; their prior's mean and variances are those of the programs themselves."""
    m, _, k = state.rows.shape
    mean = state.rows.mean(axis=1)
    deviation = state.rows - mean[:, None]
    first = not state.row_spread.any()
    spread = np.full((m, k), WIDE) if first else _learnt(deviation, state.row_spread)
    curvature = _curvature(precision, _squares(state.columns, state.column_spread))
    state.row_spread = _inverse(curvature + (np.eye(k) / spread[:, None])[:, None])
    pull = (precision * target) @ state.columns + (mean / spread)[:, None]
    state.rows = (state.row_spread @ pull[..., None])[..., 0]


def _fit_columns(state: _State, precision: Reals, target: Reals) -> None:
    """Update pressures, whose prior is standard normal; their mean moves into the levels."""
    turned = precision.swapaxes(1, 2)
    curvature = _curvature(turned, _squares(state.rows, state.row_spread))
    spread = _inverse(curvature[..., 1:, 1:] + np.eye(state.rows.shape[2] - 1))
    pull = (precision * target).swapaxes(1, 2) @ state.rows[..., 1:] - curvature[..., 0, 1:]
    pressure = (spread @ pull[..., None])[..., 0]
    mean = pressure.mean(axis=1)
    state.columns[..., 1:] = pressure - mean[:, None]
    state.column_spread[..., 1:, 1:] = spread
    state.rows[..., 0] += (state.rows[..., 1:] * mean[:, None]).sum(axis=2)


def _fit_noise(state: _State, values: Reals, weight: Reals) -> None:
    """Update each row's noise, shrunk towards the noise of all rows."""
    squared = ((values - state.mean) ** 2 + state.doubt) * weight
    count = weight.sum(axis=2)
    common = (squared.sum(axis=(1, 2)) + 1e-4) / (count.sum(axis=1) + 1)
    state.noise = FLOOR + (ROWS * common[:, None] + squared.sum(axis=2)) / (ROWS + count)


def _fit_diagonal(state: _State, values: Reals, weight: Reals) -> None:
    """Update the mean and variance of the extra effect that a program has on a second run of itself."""
    rest = np.einsum("mii->mi", values - state.mean)
    total = state.offset_spread[:, None] + state.noise
    state.offset = (weight * rest / total).sum(axis=1) / ((weight / total).sum(axis=1) + 1 / WIDE)
    share = state.offset_spread[:, None] / total
    squared = (share * (rest - state.offset[:, None])) ** 2 + share * state.noise
    state.offset_spread = ((weight * squared).sum(axis=1) + PRIOR * SMALL) / (weight.sum(axis=1) + PRIOR)


def _learnt(deviation: Reals, spread: Reals) -> Reals:
    """Return the prior variance of each component, from deviations of programs and their own variances."""
    own = np.einsum("mikk->mik", spread)
    learnt: Reals = ((deviation**2 + own).sum(axis=1) + PRIOR * 1e-3) / (deviation.shape[1] + PRIOR)
    return learnt


def _inverse(matrices: Reals) -> Reals:
    return np.asarray(np.linalg.inv(matrices), np.float64)


def _squares(mean: Reals, spread: Reals) -> Reals:
    """Return the second moments, shape (m, n, k, k)."""
    return mean[..., :, None] * mean[..., None, :] + spread


def _curvature(precision: Reals, squares: Reals) -> Reals:
    m, n, k, _ = squares.shape
    return (precision @ squares.reshape(m, n, k * k)).reshape(m, n, k, k)
