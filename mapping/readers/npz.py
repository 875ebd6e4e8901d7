"""NumPy archives (``.npz``): a sparse matrix of scipy's, a dense one, or columns of edges."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .edges import Edges
from .matrixmarket import from_matrix
from .text import GraphFile, GraphFileError

__all__ = ["NAME", "read", "recognise"]

NAME = ".npz"
_WANTED = "scipy's sparse matrix, an array 'matrix' or 'volume' of shape (p, p), or arrays source, target, volume"


def recognise(file: GraphFile) -> bool:
    """Whether it begins as a zip archive does."""
    return file.data.startswith(b"PK\x03\x04")


def read(file: GraphFile) -> Edges:
    """Read a sparse matrix of ``scipy.sparse.save_npz``, a ``matrix``, or columns.

    Entry (i, j) of a matrix, shape (p, p), is what rank i sends to rank j. Columns are the arrays source, target,
    volume and, where there are any, messages and size.

    :raises GraphFileError: with the file and the array that is wrong; pickled objects are refused.
    """
    try:
        with np.load(io.BytesIO(file.data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
        raise GraphFileError(f"{file.name}: expecting {_WANTED}: {error}") from error
    if {"data", "format", "shape"} <= arrays.keys():
        return _sparse(file)
    if "source" in arrays:
        return _columns(file, arrays)
    dense = arrays.get("matrix", arrays.get("volume"))
    if dense is None or dense.ndim != 2:
        raise GraphFileError(f"{file.name}: expecting {_WANTED}, got {', '.join(sorted(arrays)) or 'no array'}")
    row, column = np.nonzero(dense)
    return from_matrix(file, dense.shape, row, column, dense[row, column])


def _sparse(file: GraphFile) -> Edges:
    from scipy.sparse import coo_array, load_npz

    try:
        matrix = coo_array(load_npz(io.BytesIO(file.data)))
    except (ValueError, KeyError, IndexError, NotImplementedError) as error:
        raise GraphFileError(f"{file.name}: expecting a sparse matrix of scipy's: {error}") from error
    return from_matrix(file, matrix.shape, matrix.row, matrix.col, matrix.data)


def _columns(file: GraphFile, arrays: dict[str, NDArray[Any]]) -> Edges:
    missing = [name for name in ("source", "target", "volume") if name not in arrays]
    if missing:
        raise GraphFileError(f"{file.name}: expecting {_WANTED}, got none of {', '.join(missing)}")
    names = ("source", "target", "volume", *(["messages"] if "messages" in arrays else []))
    columns = [_column(file, name, arrays[name], len(arrays["source"])) for name in names]
    known = int(max(columns[0].max(initial=-1), columns[1].max(initial=-1))) + 1
    edges = Edges(file.name, known, False, *columns)
    if "size" not in arrays:
        return edges
    return replace(edges, size=edges.checked_size(int(np.asarray(arrays["size"]).item())), exact=True)


def _column(file: GraphFile, name: str, column: NDArray[Any], length: int) -> NDArray[np.int64]:
    if column.ndim != 1 or len(column) != length or column.dtype.kind not in "uif":
        raise GraphFileError(
            f"{file.name}: expecting {name} to hold {length} numbers, got shape {column.shape} of {column.dtype}"
        )
    wrong = np.flatnonzero(~((column >= 0) & (column < 2.0**63)))
    if len(wrong):
        raise GraphFileError(f"{file.name}: expecting {name} from 0, got {column[wrong[0]]} at {wrong[0]}")
    return np.rint(column).astype(np.int64) if column.dtype.kind == "f" else column.astype(np.int64)
