"""Tables of numbers without names: their cells, and whether as many lines as numbers are a matrix or a list."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...inputs import current_limits
from .text import LIST, MATRIX, GraphFile

__all__ = ["SMALL", "bare_value", "is_cell", "is_hole", "meaning"]

SMALL = 4  # most ranks of a matrix that could also be a list of edges, whose lines have up to 4 numbers

# What programs write into a cell of a pair that never talks: pandas, numpy's masked arrays, R, spreadsheets, JSON.
_HOLES = frozenset({"", "-", "--", ".", "na", "n/a", "<na>", "nan", "null", "none", "#n/a"})
_NUMBER = re.compile(
    r"([-+]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][-+]?[0-9]{1,3})?)\s?([A-Za-z]{0,5})"
)


def is_hole(word: str) -> bool:
    """Whether a cell has no number, because its pair of ranks never talks."""
    return word.lower().lstrip("-+") in _HOLES or word in _HOLES


def is_cell(word: str) -> bool:
    """Whether a word can be a cell of a matrix: a number, perhaps with a unit, or a hole."""
    return bool(_NUMBER.fullmatch(word)) or is_hole(word)


def bare_value(word: str) -> float:
    """Return the number that a word without a unit is; NaN for other words."""
    match = _NUMBER.fullmatch(word)
    return float(match[1]) if match and not match[2] else math.nan


def meaning(file: GraphFile, rows: Sequence[Sequence[str]]) -> str:
    """Decide by the values whether n lines of n numbers are a MATRIX or a LIST of edges; note a choice of two.

    A list has ranks in its first two columns and no holes. If both are possible, the numbers are a list if each line
    names another pair of two ranks, the ranks are close together, and the numbers would be an odd matrix: one with
    bytes from a rank to itself, and not symmetric.

    :param file: file of the table, which has the number of ranks that the caller expects, and the notes.
    :param rows: words of each line, n lines of n words.
    """
    size = len(rows)
    if file.form or size > SMALL:
        return file.form or MATRIX
    values = _values(rows)
    ends = values[:, :2]
    most = file.size or current_limits().ranks
    if np.isnan(ends).any() or (ends != np.rint(ends)).any() or (ends < 0).any() or ends.max() > most:
        return MATRIX
    if file.size is not None and file.size != size:
        return LIST
    form = LIST if _is_likely_list(values) and not np.isnan(values).any() else MATRIX
    other = LIST if form == MATRIX else MATRIX
    file.notes.append(f"{file.name}: {size} lines of {size} numbers taken as a {form}; else --columns {other}")
    return form


def _values(rows: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Return the numbers, without their units, as an array of the shape of the rows; NaN for holes."""
    found = [[_NUMBER.fullmatch(word) for word in row] for row in rows]
    return np.array([[float(match[1]) if match else np.nan for match in row] for row in found])


def _is_likely_list(values: NDArray[np.float64]) -> bool:
    source, target = values[:, 0], values[:, 1]
    is_symmetric = len(values) > 2 and (values == values.T).all()  # of two lines, a chain of two edges is, too
    is_matrix = not values.diagonal().any() or is_symmetric
    are_pairs = (source != target).all() and len(np.unique(values[:, :2], axis=0)) == len(values)
    return bool(not is_matrix and are_pairs and values[:, :2].max() < 2 * len(values))
