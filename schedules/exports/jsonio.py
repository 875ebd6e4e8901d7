"""Schedules as JSON text with a version, which is short if columns are regular, and a strict reader of this text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ...errors import TopompiError
from ...inputs import current_limits, guarded, parse_json
from ..algorithm import current_name
from ..schedule import COLUMNS, Schedule

__all__ = ["VERSION", "ScheduleTextError", "from_json", "to_json"]

Integers = NDArray[np.int64]
VERSION = 1
_KINDS: dict[str, tuple[type, ...]] = {
    "collective": (str,),
    "size": (int,),
    "algorithm": (str,),
    "root": (int, type(None)),
    "blocks": (int,),
    "counts": (list, type(None)),
    "independent": (bool,),
    "window": (int,),
}
_FIELDS = ("schedule", *_KINDS, "rows", "columns")
_WORDS = {str: "a string", int: "an integer", bool: "true or false", list: "a list", type(None): "null"}
_RUNS = ("start", "stride", "length")
_MOST = 2**31 - 1


class ScheduleTextError(TopompiError, ValueError):
    """Text that is not the JSON of a schedule; the message names the field."""


def to_json(schedule: Schedule) -> str:
    """Write a schedule as one line of JSON, the same for equal schedules.

    A column is a list of integers or, if this is shorter, a list of arithmetic runs. A shift alltoall of 1,024 ranks,
    with one million rows, takes 67 KB.
    """
    head = {name: getattr(schedule, name) for name in _KINDS}
    head["counts"] = None if schedule.counts is None else schedule.counts.tolist()
    columns = {name: _encode(column.astype(np.int64)) for name, column in schedule.columns().items()}
    document = {"schedule": VERSION, **head, "rows": schedule.num_rows, "columns": columns}
    return json.dumps(document, separators=(",", ":"), allow_nan=False)


def from_json(text: str, name: str = "") -> Schedule:
    """Read a schedule from the text of ``to_json``. It is not proved; ``check`` does that.

    :param text: content of the file.
    :param name: name of the file, with which error messages begin.
    :raises ScheduleTextError: if the text is not JSON, its version is unknown, or a field is missing, unknown, repeated
        or of a wrong value; the message names the field.
    """
    document = parse_json(text, name or "schedule", ScheduleTextError, pairs=partial(_unique, name or "schedule"))
    with guarded(name or "schedule", ScheduleTextError):
        try:
            return _schedule(document)
        except ValueError as error:  # includes errors that ``Schedule`` raises
            raise ScheduleTextError(f"{name}: {error}" if name else str(error)) from error


def _schedule(parsed: object) -> Schedule:
    document = _fields("a schedule", parsed, _FIELDS)
    if _typed("schedule", document["schedule"], (int,)) != VERSION:
        _refuse("schedule", f"version {VERSION}", document["schedule"])
    head: dict[str, Any] = {name: _typed(name, document[name], kinds) for name, kinds in _KINDS.items()}
    head["algorithm"] = current_name(head["algorithm"])
    if head["counts"] is not None:
        head["counts"] = _counts(head["counts"])
    rows = _typed("rows", document["rows"], (int,))
    sizes = {"size": head["size"], "blocks": head["blocks"], "window": head["window"], "rows": rows}
    for name, value in sizes.items():
        if not 0 <= value <= _MOST:
            _refuse(name, f"0 to {_MOST}", value)
    # Limits are checked first, because a few bytes of runs can expand to any number of rows.
    current_limits().check("rows", rows, "rows", ScheduleTextError)
    current_limits().check("ranks", head["size"], "size", ScheduleTextError)
    columns = _fields("columns", document["columns"], COLUMNS)
    table: dict[str, Any] = {name: _decode(f"columns.{name}", columns[name], rows) for name in COLUMNS}
    return Schedule(**head, **table)


def _refuse(name: str, wanted: str, got: object) -> NoReturn:
    shown = json.dumps(got, default=str)
    raise ScheduleTextError(f"{name}: expecting {wanted}, got {shown if len(shown) < 60 else shown[:57] + '...'}")


def _unique(file: str, pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ScheduleTextError(f"{file}: expecting each field once, got {json.dumps(twice)} twice")
    return found


def _fields(name: str, value: object, wanted: Sequence[str]) -> dict[str, Any]:
    """Check that a value is an object with exactly the wanted fields."""
    if not isinstance(value, dict):
        _refuse(name, "an object", value)
    for field in wanted:
        if field not in value:
            raise ScheduleTextError(f"{name}: expecting a field {field}, got none")
    for field in value:
        if field not in wanted:
            raise ScheduleTextError(f"{name}: expecting fields {', '.join(wanted)}, got {json.dumps(field)}")
    return value


def _typed(name: str, value: Any, kinds: tuple[type, ...]) -> Any:
    """Check that a value has one of the given types exactly; a boolean is no integer."""
    if type(value) not in kinds:
        _refuse(name, " or ".join(_WORDS[kind] for kind in kinds), value)
    return value


def _counts(value: list[Any]) -> Integers:
    if value and isinstance(value[0], list):
        rows = [_integers(f"counts[{i}]", row) for i, row in enumerate(value)]
        for i, row in enumerate(rows):
            if len(row) != len(rows):
                _refuse(f"counts[{i}]", f"{len(rows)} integers", value[i])
        return np.stack(rows)
    return _integers("counts", value)


def _integers(name: str, value: object, bits: int = 32) -> Integers:
    """Check that a value is a list of integers of the given number of bits."""
    limit = 2 ** (bits - 1)
    if not isinstance(value, list):
        _refuse(name, "a list of integers", value)
    if set(map(type, value)) - {int} or (value and not -limit <= min(value) <= max(value) < limit):
        wrong = next(i for i, one in enumerate(value) if type(one) is not int or not -limit <= one < limit)
        _refuse(f"{name}[{wrong}]", f"an integer of {bits} bits", value[wrong])
    return np.array(value, dtype=np.int64)


def _encode(column: Integers) -> list[int] | dict[str, list[int]]:
    """Encode a column as a plain list or as arithmetic runs, whichever has fewer integers."""
    first = _run_starts(column)
    if 3 * len(first) >= len(column):
        plain: list[int] = column.tolist()
        return plain
    length = np.diff(first, append=len(column))
    ahead = np.where(length > 1, first + 1, first)
    stride = column[ahead] - column[first]
    return {"start": column[first].tolist(), "stride": stride.tolist(), "length": length.tolist()}


def _run_starts(column: Integers) -> NDArray[np.intp]:
    """The index at which each arithmetic run begins; each run is as long as possible.

    A run ends at the element after which the difference changes, and the next element begins a new run. The difference
    between the two elements belongs to no run. So if the difference changes at two consecutive elements, no run begins
    at the second change.
    """
    change = np.flatnonzero(np.diff(column, 2)) + 2
    streak = np.flatnonzero(np.diff(change, prepend=-2) != 1)
    offset = np.arange(len(change)) - np.repeat(streak, np.diff(streak, append=len(change)))
    return np.concatenate([np.arange(min(len(column), 1)), change[offset % 2 == 0]])


def _decode(name: str, value: object, rows: int) -> Integers:
    """Decode a column, which must have ``rows`` rows."""
    if isinstance(value, dict):
        runs = _fields(name, value, _RUNS)
        start, stride, length = (_integers(f"{name}.{part}", runs[part], bits=33) for part in _RUNS)
        if not len(start) == len(stride) == len(length) or (length < 1).any():
            _refuse(name, "start, stride and length of each run, of 1 or more", value)
        _same_length(name, rows, int(length.sum()))
        inside = np.arange(rows) - np.repeat(np.cumsum(length) - length, length)
        return np.repeat(start, length) + np.repeat(stride, length) * inside
    column = _integers(name, value)
    _same_length(name, rows, len(column))
    return column


def _same_length(name: str, rows: int, got: int) -> None:
    if got != rows:
        raise ScheduleTextError(f"{name}: expecting {rows} rows, got {got}")
