"""The fit of a machine's parameters to measured times, and the halves of the runs that it may see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from .data import Row
from .times import START, Calibration, layer_of, seconds_of

__all__ = ["Weights", "fit", "fitted", "halves", "median_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Weights:
    """The weights of a fit.

    :param level: weight of the mean error of a call's algorithms beside the differences between them.
    :param prior: weight of a parameter's distance from `START`, for each row.
    :param robust: error, as a logarithm, from which on it counts linearly instead of squared.
    """

    level: float = 0.1
    prior: float = 0.3
    robust: float = 0.3


def halves(rows: Sequence[Row]) -> tuple[set[str], set[str]]:
    """The runs that fits may see, and the runs that check them.

    The runs of each machine are in the order of a hash of their names, and go to the halves in turns.

    :param rows: measured rows.
    """
    runs: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        runs[row.system].add(row.run)
    found: tuple[set[str], set[str]] = (set(), set())
    for some in runs.values():
        for place, run in enumerate(sorted(some, key=lambda run: sha256(run.encode()).hexdigest())):
            found[place % 2].add(run)
    return found


def fit(rows: Sequence[Row], terms: Floats, weights: Weights = Weights()) -> Calibration:
    """The parameters with the least squares of errors of the logarithms of times.

    :param rows: measured rows.
    :param terms: derivatives of their times, shape (rows, parameters).
    :param weights: weights of the errors.
    """
    start, wanted = np.array(START.values), np.log([row.seconds for row in rows])
    calls = [(row.run, row.collective, row.ranks, row.nbytes, row.implementation) for row in rows]
    number = {call: place for place, call in enumerate(dict.fromkeys(calls))}
    call = np.array([number[one] for one in calls])
    many = np.bincount(call)

    def errors(moved: Floats) -> Floats:
        error = np.log(seconds_of(rows, terms, start * np.exp(moved))) - wanted
        mean = np.bincount(call, error) / many
        held = weights.prior * np.sqrt(len(rows)) * moved
        return np.concatenate((error - mean[call], weights.level * mean[call], held))

    found = least_squares(errors, np.zeros(len(start)), loss="soft_l1", f_scale=weights.robust)
    return Calibration(tuple((start * np.exp(found.x)).tolist()))


def _by_layer(rows: Sequence[Row]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        found[layer_of(row)].append(place)
    return found


def fitted(rows: Sequence[Row], terms: Floats, weights: Weights = Weights()) -> dict[str, Calibration]:
    """The fit of each layer.

    :param rows: measured rows.
    :param terms: derivatives of their times, shape (rows, parameters).
    :param weights: weights of the errors.
    """
    return {
        layer: fit([rows[place] for place in places], terms[places], weights)
        for layer, places in _by_layer(rows).items()
    }


def median_of(calibrations: Mapping[str, Calibration], without: str) -> Calibration:
    """The medians of the parameters of all machines but one, of the messages of MPI only.

    :param calibrations: parameters by layer.
    :param without: the machine that is left out.
    """
    others = [one.values for layer, one in calibrations.items() if layer != without and "-" not in layer]
    return Calibration(tuple(np.exp(np.median(np.log(others), axis=0)).tolist()))
