"""NumPy's files: an archive (``.npz``) of a sparse matrix of scipy, a dense matrix, or columns; a matrix (``.npy``)."""

from __future__ import annotations

import io
import tokenize
import zipfile
from dataclasses import replace
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ...inputs import current_limits, guarded
from .edges import EdgeList
from .matrixmarket import from_matrix
from .text import GraphFile, GraphFileError

__all__ = ["NAME", "read", "recognise"]

NAME = ".npz, .npy"
_ARCHIVE, _ARRAY = b"PK\x03\x04", b"\x93NUMPY"
_WANTED = "scipy's sparse matrix, an array 'matrix' or 'volume' of shape (p, p), or arrays source, target, volume"


# Exceptions of numpy and zipfile for wrong headers and for unknown compression methods.
_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    OSError,
    SyntaxError,
    NotImplementedError,
    RuntimeError,
    tokenize.TokenError,
    zipfile.BadZipFile,
)


def recognise(file: GraphFile) -> bool:
    """Whether the file begins as a zip archive or an array of NumPy."""
    return file.data.startswith((_ARCHIVE, _ARRAY))


def read(file: GraphFile) -> EdgeList:
    """Read a matrix of ``scipy.sparse.save_npz``, an array ``matrix`` or ``volume``, or columns of edges.

    Entry (i, j) of a matrix, shape (p, p), is the bytes from rank i to rank j; NaN is 0. A file ``.npy`` has one matrix
    without a name. Columns are the arrays source, target and volume, and optionally messages and size.

    :raises GraphFileError: if an array is wrong; the message names file and array. Pickled objects are refused, and so
        are arrays whose header promises more than the archive contains, before memory is allocated.
    """
    with guarded(file.name, GraphFileError):
        try:
            arrays = _one_array(file) if file.data.startswith(_ARRAY) else _archived(file)
        except GraphFileError:
            raise
        except _UNREADABLE as error:
            raise GraphFileError(f"{file.name}: expecting {_WANTED}: {error}") from error
    if {"data", "format", "shape"} <= arrays.keys():
        return _sparse(file)
    if "source" in arrays:
        return _columns(file, arrays)
    dense = arrays.get("matrix", arrays.get("volume"))
    if dense is None or dense.ndim != 2:
        raise GraphFileError(f"{file.name}: expecting {_WANTED}, got {', '.join(sorted(arrays)) or 'no array'}")
    if dense.dtype.kind == "f":
        dense = np.where(np.isnan(dense), 0, dense)
    row, column = np.nonzero(dense)
    return from_matrix(file, dense.shape, row, column, dense[row, column])


def _one_array(file: GraphFile) -> dict[str, NDArray[np.generic]]:
    _check_array(file.name, io.BytesIO(file.data), len(file.data))
    return {"matrix": np.load(io.BytesIO(file.data), allow_pickle=False)}


def _archived(file: GraphFile) -> dict[str, NDArray[np.generic]]:
    _check_members(file)
    with np.load(io.BytesIO(file.data), allow_pickle=False) as archive:
        return {name: np.asarray(archive[name]) for name in archive.files}


def _check_members(file: GraphFile) -> None:
    """Refuse an archive beyond the limits, and arrays with another number of bytes than their headers promise."""
    limits = current_limits()
    with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
        members = archive.infolist()
        limits.check("members", len(members), file.name, GraphFileError)
        whole = sum(member.file_size for member in members)
        limits.check("bytes", whole, file.name, GraphFileError)
        if whole > 16 << 20:
            limits.check("ratio", whole // max(1, len(file.data)), file.name, GraphFileError)
        for member in members:
            with archive.open(member) as stream:
                _check_array(f"{file.name}:{member.filename}", stream, member.file_size)


def _check_array(place: str, stream: IO[bytes], size: int) -> None:
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise GraphFileError(f"{place}: expecting an array of format 1.0 or 2.0, got {version[0]}.{version[1]}")
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = header(stream)
    if dtype.hasobject:
        raise GraphFileError(f"{place}: expecting numbers, got Python objects, which are never unpickled")
    promised = dtype.itemsize
    for extent in shape:
        promised *= extent
    there = size - stream.tell()
    if promised != there or min(shape, default=0) < 0:
        raise GraphFileError(f"{place}: expecting {promised:,} bytes for shape {shape}, got {there:,}")


def _sparse(file: GraphFile) -> EdgeList:
    from scipy.sparse import coo_array, load_npz

    with guarded(file.name, GraphFileError):
        try:
            matrix = load_npz(io.BytesIO(file.data))
            if len(matrix.shape) == 2:
                file.check_ranks(max(matrix.shape))
            if hasattr(matrix, "check_format"):  # for compressed rows or columns, which load_npz does not check
                matrix.check_format(full_check=True)
            found = coo_array(matrix)
        except GraphFileError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, NotImplementedError) as error:
            raise GraphFileError(f"{file.name}: expecting a sparse matrix of scipy's: {error}") from error
    return from_matrix(file, found.shape, found.coords[0], found.coords[-1], found.data)


def _columns(file: GraphFile, arrays: dict[str, NDArray[np.generic]]) -> EdgeList:
    missing = [name for name in ("source", "target", "volume") if name not in arrays]
    if missing:
        raise GraphFileError(f"{file.name}: expecting {_WANTED}, got none of {', '.join(missing)}")
    if arrays["source"].ndim != 1:
        raise GraphFileError(f"{file.name}: expecting source of one dimension, got shape {arrays['source'].shape}")
    names = ("source", "target", "volume", *(["messages"] if "messages" in arrays else []))
    columns = [_column(file, name, arrays[name], len(arrays["source"])) for name in names]
    known = int(max(columns[0].max(initial=-1), columns[1].max(initial=-1))) + 1
    edges = EdgeList(file.name, known, False, *columns)
    if "size" not in arrays:
        return edges
    size = arrays["size"]
    if size.size != 1 or size.dtype.kind not in "ui":
        raise GraphFileError(f"{file.name}: expecting size to be one whole number, got {size.dtype} of {size.shape}")
    return replace(edges, size=edges.checked_size(int(size.item())), exact=True)


def _column(file: GraphFile, name: str, column: NDArray[Any], length: int) -> NDArray[np.int64]:
    if column.ndim != 1 or len(column) != length or column.dtype.kind not in "uif":
        raise GraphFileError(
            f"{file.name}: expecting {name} to hold {length} numbers, got shape {column.shape} of {column.dtype}"
        )
    wrong = np.flatnonzero(~((column >= 0) & (column < 2.0**63)))
    if len(wrong):
        raise GraphFileError(f"{file.name}: expecting {name} from 0, got {column[wrong[0]]} at {wrong[0]}")
    return np.rint(column).astype(np.int64) if column.dtype.kind == "f" else column.astype(np.int64)
