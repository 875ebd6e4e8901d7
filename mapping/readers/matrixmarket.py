"""Matrix Market files, in which entry (i, j) is the bytes from rank i to rank j."""

from __future__ import annotations

import io
import re
from typing import NoReturn

import numpy as np

from ...inputs import guarded
from .edges import EdgeList
from .text import GraphFile, GraphFileError

__all__ = ["NAME", "from_matrix", "read", "recognise"]

NAME = "Matrix Market"
_EXTENTS = re.compile(rb"[0-9]{1,18}(?:[ \t]+[0-9]{1,18}){1,2}")
_NUMBER = rb"[-+]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][-+]?[0-9]{1,9})?|nan|inf"
_ENTRY = re.compile(rb"(?:(?:%b)(?:[ \t]+(?:%b)){0,3})?" % (_NUMBER, _NUMBER))
_LINE = re.compile(r"^Line (\d+): *(.*)", re.DOTALL)


def recognise(file: GraphFile) -> bool:
    """Whether the file begins with ``%%MatrixMarket``."""
    return file.head.lstrip().lower().startswith("%%matrixmarket")


def read(file: GraphFile) -> EdgeList:
    """Read the entries of a square matrix: coordinate or array, real, integer or pattern (each entry counts 1).

    A symmetric matrix lists each pair once, and the entry counts in both directions, as Matrix Market defines.

    :raises GraphFileError: if the content is wrong; the message names the file and, if known, the line. A header with
        more ranks than the limit, or more entries than the file can contain, is refused before memory is allocated.
    """
    from scipy.io import mminfo, mmread
    from scipy.sparse import coo_array

    _check_lines(file)
    data = file.data if file.data.endswith(b"\n") else file.data + b"\n"
    with guarded(file.name, GraphFileError):
        try:
            rows, columns, entries, form, field, symmetry = mminfo(io.BytesIO(data))
            _check_promise(file, (int(rows), int(columns)), int(entries), (form, field, symmetry))
            matrix = coo_array(mmread(io.BytesIO(data)))
        except GraphFileError:
            raise
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            _refuse(file, error)
    return from_matrix(file, matrix.shape, matrix.row, matrix.col, matrix.data)


def _check_lines(file: GraphFile) -> None:
    """Refuse lines that are no numbers, because scipy's parser (1.17) reads beyond the text's end for some of them.

    The lines are, in this order: the header, comments, the extents, and the entries.
    """
    wanted, form = "extents and entries: two or three whole numbers", _EXTENTS
    for number, raw in enumerate(io.BytesIO(file.data), 1):
        line = raw.strip(b" \t\r\n")
        if form is _EXTENTS and (not line or line.startswith(b"%")):
            continue
        if not form.fullmatch(line):
            file.fail(number, wanted, line.decode("utf-8", errors="replace"))
        wanted, form = "the numbers of an entry", _ENTRY


def _refuse(file: GraphFile, error: Exception) -> NoReturn:
    match = _LINE.match(str(error))
    where, what = (f"{file.name}:{match[1]}", match[2]) if match else (file.name, error)
    raise GraphFileError(f"{where}: expecting Matrix Market: {what}") from error


def _check_promise(file: GraphFile, shape: tuple[int, int], entries: int, form: tuple[str, str, str]) -> None:
    """Refuse a header with more entries than the file has bytes for, given the shortest possible line per entry.

    :param file: file of the matrix.
    :param shape: number of rows and columns in the header.
    :param entries: number of entries in the header.
    :param form: format, field and symmetry in the header, for example coordinate, real and general.
    """
    _check_square(file, shape)
    if form[0] == "array":
        triangle = shape[0] * (shape[0] + 1) // 2 if form[2] != "general" else shape[0] * shape[1]
        entries, least = triangle - (shape[0] if form[2] == "skew-symmetric" else 0), len("0\n")
    else:
        least = len("1 1\n") if form[1] == "pattern" else len("1 1 0\n")
    if entries * least > len(file.data) + 1:  # the last line may lack its end
        raise GraphFileError(
            f"{file.name}: expecting {entries:,} entries, as its header says, got {len(file.data):,} bytes"
        )


def _check_square(file: GraphFile, shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise GraphFileError(f"{file.name}: expecting a square matrix, got {' x '.join(map(str, shape))}")
    file.check_ranks(int(shape[0]))


def from_matrix(
    file: GraphFile, shape: tuple[int, ...], row: np.ndarray, column: np.ndarray, data: np.ndarray
) -> EdgeList:
    """Make edges from the entries of a matrix, after checking that they are numbers of bytes.

    :param file: file of the matrix, for error messages.
    :param shape: shape of the matrix.
    :param row: row of each entry, from 0, shape (entries,).
    :param column: column of each entry, from 0, shape (entries,).
    :param data: bytes of each entry, shape (entries,).
    :raises GraphFileError: if the matrix is not square, an entry is outside of it, or a number cannot be bytes.
    """
    _check_square(file, shape)
    if data.dtype.kind not in "buif":
        raise GraphFileError(f"{file.name}: expecting real numbers of bytes, got {data.dtype}")
    if data.dtype.kind == "f":
        data = np.rint(data)
    outside = np.flatnonzero((row < 0) | (row >= shape[0]) | (column < 0) | (column >= shape[0]))
    if len(outside):
        at = int(outside[0])
        entry = f"({int(row[at]) + 1}, {int(column[at]) + 1})"
        raise GraphFileError(f"{file.name}: expecting entries within {shape[0]} x {shape[1]}, got one at {entry}")
    wrong = np.flatnonzero(~((data >= 0) & (data < 2.0**63)))
    if len(wrong):
        at = int(wrong[0])
        entry = f"entry ({int(row[at]) + 1}, {int(column[at]) + 1})"
        raise GraphFileError(f"{file.name}: expecting bytes from 0 to 2^63 - 1, got {data[at]} at {entry}")
    columns = (np.asarray(column, dtype=np.int64) for column in (row, column, data))
    return EdgeList(file.name, int(shape[0]), True, *columns)
