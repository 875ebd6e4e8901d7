"""Matrix Market files: entry (i, j) is what rank i sends to rank j."""

from __future__ import annotations

import io
import re

import numpy as np

from .edges import Edges
from .text import GraphFile, GraphFileError

__all__ = ["NAME", "read", "recognise"]

NAME = "Matrix Market"
_LINE = re.compile(r"^Line (\d+): *(.*)", re.DOTALL)


def recognise(file: GraphFile) -> bool:
    """Whether it begins with ``%%MatrixMarket``."""
    return file.head.lstrip().lower().startswith("%%matrixmarket")


def read(file: GraphFile) -> Edges:
    """The entries of a square matrix, coordinates or array, real, integer or pattern (1 each).

    A symmetric one holds each pair once and means it both ways, as Matrix Market defines.

    :raises GraphFileError: with file and, where the parser says, line.
    """
    from scipy.io import mmread
    from scipy.sparse import coo_array

    try:
        matrix = coo_array(mmread(io.BytesIO(file.data)))
    except (ValueError, OverflowError, TypeError) as error:
        match = _LINE.match(str(error))
        where, what = (f"{file.name}:{match[1]}", match[2]) if match else (file.name, error)
        raise GraphFileError(f"{where}: expecting Matrix Market: {what}") from error
    return from_matrix(file, matrix.shape, matrix.row, matrix.col, matrix.data)


def from_matrix(
    file: GraphFile, shape: tuple[int, ...], row: np.ndarray, column: np.ndarray, data: np.ndarray
) -> Edges:
    """The edges of the entries of a matrix, once they have been found to be bytes."""
    if len(shape) != 2 or shape[0] != shape[1]:
        raise GraphFileError(f"{file.name}: expecting a square matrix, got {' x '.join(map(str, shape))}")
    if data.dtype.kind not in "buif":
        raise GraphFileError(f"{file.name}: expecting real numbers of bytes, got {data.dtype}")
    if data.dtype.kind == "f":
        data = np.rint(data)
    wrong = np.flatnonzero(~((data >= 0) & (data < 2.0**63)))
    if len(wrong):
        at = int(wrong[0])
        entry = f"entry ({int(row[at]) + 1}, {int(column[at]) + 1})"
        raise GraphFileError(f"{file.name}: expecting bytes from 0 to 2^63 - 1, got {data[at]} at {entry}")
    columns = (np.asarray(column, dtype=np.int64) for column in (row, column, data))
    return Edges(file.name, int(shape[0]), True, *columns)
