"""Pairs of programs as rows of numbers, from which classifiers learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import ColocationError
from ..profiles.record import METRICS
from ..profiles.system import Tag
from ..rules.kinds import Kind
from ..rules.labels import Labels
from ..speedups.bands import UNKNOWN, classes
from ..speedups.matrix import Speedups

__all__ = ["PROGRAMS", "SETS", "FeatureRows", "joined", "pairs_of"]

Reals = NDArray[np.float64]
PROGRAMS = "programs"  # the set whose two columns are names: classifiers learn what each name's other pairs did


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Rows for classifiers, one per program and neighbour.

    :ivar features: name of the set of features, of ``SETS``.
    :ivar x: features, shape (m, k).
    :ivar label: measured classes, places in ``CLASSES``, -1 if unknown, shape (m,).
    :ivar program: names of the programs whose speed-ups are classified, shape (m,).
    :ivar beside: names of their neighbours, shape (m,).
    """

    features: str
    x: NDArray[np.generic]
    label: NDArray[np.int8]
    program: NDArray[np.generic]
    beside: NDArray[np.generic]

    def __len__(self) -> int:
        return len(self.label)

    def only(self, rows: NDArray[np.bool_]) -> FeatureRows:
        """Return some of the rows.

        :param rows: mask of the rows to keep, shape (m,).
        """
        return FeatureRows(self.features, self.x[rows], self.label[rows], self.program[rows], self.beside[rows])

    @property
    def measured(self) -> NDArray[np.bool_]:
        """Whether the class of each row is known, shape (m,)."""
        return np.asarray(self.label != UNKNOWN)


def _axes(*metrics: str) -> Callable[[Sequence[Tag], Sequence[Labels]], Reals]:
    def features(tags: Sequence[Tag], _: Sequence[Labels]) -> Reals:
        for tag in tags:
            tag.require(*metrics)
        return np.array([[getattr(tag, name) for name in metrics] for tag in tags], np.float64)

    return features


def _kinds(_: Sequence[Tag], characters: Sequence[Labels]) -> Reals:
    """Return a column per kind, and the memory bandwidth of memory-bound programs, 0 for others."""
    kinds = list(Kind)
    made = np.zeros((len(characters), len(kinds) + 1))
    for row, one in enumerate(characters):
        made[row, kinds.index(one.kind)] = 1
        made[row, -1] = np.nan_to_num(one.memory) if one.kind is Kind.M else 0.0
    return made


# Features of one program; a row has those of the program, then those of its neighbour. The published method has five
# axes per program, and elsewhere eight features per pair without their names; then one axis of the cache is left out.
SETS: dict[str, Callable[[Sequence[Tag], Sequence[Labels]], NDArray[np.generic]]] = {
    "axes": _axes(*METRICS),
    "no-hits": _axes(*(name for name in METRICS if name != "hits")),
    "no-misses": _axes(*(name for name in METRICS if name != "misses")),
    "kinds": _kinds,
    PROGRAMS: lambda _, characters: np.array([[one.program] for one in characters], dtype=object),
}


def pairs_of(speedups: Speedups, features: str, tags: Sequence[Tag], characters: Sequence[Labels]) -> FeatureRows:
    """Return a row per cell of a matrix, in the order of its rows.

    :param speedups: the matrix of n programs, some cells unknown.
    :param features: name of a set of ``SETS``.
    :param tags: normalised profiles of the n programs; not read by ``kinds`` and ``programs``.
    :param characters: kinds of the n programs; read by ``kinds`` and, for their names, by ``programs``.
    :raises ColocationError: if the set is unknown, or an axis that it needs.
    """
    if features not in SETS:
        raise ColocationError(f"features: expecting one of {', '.join(SETS)}, got {features!r}")
    own, n = SETS[features](tags, characters), len(speedups)
    row, column = (at.ravel() for at in np.indices((n, n)))
    names = np.array(speedups.programs, dtype=object)
    return FeatureRows(
        features, np.hstack((own[row], own[column])), classes(speedups.ratio).ravel(), names[row], names[column]
    )  # fmt: skip


def joined(first: FeatureRows, second: FeatureRows) -> FeatureRows:
    """Return the rows of two tables with the same features."""
    if first.features != second.features:
        raise ColocationError(f"features: expecting {first.features} twice, got {second.features}")
    columns = ("x", "label", "program", "beside")
    return FeatureRows(
        first.features, *(np.concatenate((getattr(first, one), getattr(second, one))) for one in columns)
    )
