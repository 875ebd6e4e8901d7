"""Files of speed-ups: our JSON with intervals, a printed matrix as CSV, and run times of pairs as CSV."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import numpy as np

from ....inputs.csvtext import csv_rows
from ....inputs.files import read_text
from ....inputs.jsontext import parse_json
from ....inputs.limits import current_limits
from ....inputs.writing import write_text
from ..errors import ColocationError
from .matrix import Speedups

__all__ = ["RUN_COLUMNS", "read_speedups", "speedups_of_runs", "write_speedups"]

T = TypeVar("T")
VERSION = 1
HEADER = {"format": "topompi speedups", "version": VERSION}
RUN_COLUMNS = ("application", "processes", "beside", "group", "seconds")
COMPACT = "compact"
Run = tuple[str, int, str, str, float]
_COUNT = re.compile("[0-9]{1,9}")


def read_speedups(path: str | os.PathLike[str]) -> Speedups:
    """Read speed-ups.

    Three forms are read: the JSON that ``write_speedups`` writes; a CSV matrix, whose first row and first column name
    the programs; and CSV of run times with the columns of ``RUN_COLUMNS``, one row per run.

    :param path: the file.
    :raises ColocationError: if the file is malformed; the message names file, line and field.
    """
    text = read_text(path, ColocationError, "speed-ups of programs")
    try:
        if text.lstrip()[:1] == "{":
            return _of_json(parse_json(text, str(path), ColocationError))
        rows = list(csv_rows(text.splitlines(), str(path), ColocationError))
        if rows and tuple(rows[0][1]) == RUN_COLUMNS:
            return speedups_of_runs(_runs(rows[1:]))
        return _of_table(rows)
    except ColocationError as error:
        where = "" if str(error).startswith(str(path)) else f"{path}: "
        raise ColocationError(f"{where}{error}") from None


def write_speedups(path: str | os.PathLike[str], speedups: Speedups) -> None:
    """Write speed-ups as JSON, one cell per line; unknown values are left out.

    :param path: the file.
    :param speedups: the speed-ups.
    """
    programs = [
        _known(name=name, processes=int(count), compact=float(compact), alone=float(alone))
        for name, count, compact, alone in zip(
            speedups.programs, speedups.processes, speedups.compact, speedups.alone, strict=True
        )
    ]
    cells = []
    for row, column in np.argwhere(speedups.known).tolist():
        ends = [float(speedups.low[row, column]), float(speedups.high[row, column])]
        cell = _known(
            program=speedups.programs[row], beside=speedups.programs[column], speedup=float(speedups.ratio[row, column])
        )
        cells.append(cell if any(map(math.isnan, ends)) else cell | {"interval": ends})
    head = json.dumps(HEADER)[:-1]
    lines = (",\n  ".join(map(json.dumps, part)) for part in (programs, cells))
    text = '{},\n "programs": [\n  {}\n ],\n "cells": [\n  {}\n ]}}\n'.format(head, *lines)
    write_text(Path(path), text)


def speedups_of_runs(runs: Iterable[Run]) -> Speedups:
    """Return the speed-ups that follow from run times: median in compact mode over median beside the neighbour.

    Runs come in groups, one per batch job; the median is that of the last group, as the authors of the published
    tables take it.

    :param runs: application, processes, neighbour or ``compact``, group, and seconds of each run.
    :raises ColocationError: if no application has a run in compact mode.
    """
    groups: dict[tuple[str, str], tuple[str, list[float]]] = {}
    processes: dict[str, int] = {}
    for application, count, beside, group, seconds in runs:
        processes[application] = count
        last, times = groups.setdefault((application, beside), (group, []))
        if group != last:
            times = []
            groups[application, beside] = (group, times)
        times.append(seconds)
    medians = {key: float(np.median(times)) for key, (_, times) in groups.items()}
    names = sorted({name for name, beside in medians if beside == COMPACT})
    if not names:
        raise ColocationError(f"expecting runs in {COMPACT} mode, got none")
    _numbered(names)
    compact = np.array([medians[name, COMPACT] for name in names])
    time = np.array([[medians.get((one, other), np.nan) for other in names] for one in names])
    return Speedups.of(names, compact[:, None] / time, compact=compact, processes=[processes[name] for name in names])


def _known(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value == value and value != 0}


def _of_json(content: object) -> Speedups:
    if not isinstance(content, dict) or not HEADER.items() <= content.items():
        raise ColocationError(f"expecting an object with {json.dumps(HEADER)}, got other content")
    programs, cells = (_objects(content, name) for name in ("programs", "cells"))
    names = [_field(one, "name", str, f"programs[{at}]") for at, one in enumerate(programs)]
    number = _numbered(names)
    ratio, low, high = np.full((3, len(names), len(names)), np.nan)
    for at, cell in enumerate(cells):
        where = f"cells[{at}]"
        key = tuple(_program(cell, name, number, where) for name in ("program", "beside"))
        if not math.isnan(ratio[key]):
            raise ColocationError(
                f"{where}: expecting each cell once, got {names[key[0]]} beside {names[key[1]]} twice"
            )
        ratio[key] = _field(cell, "speedup", float, where)
        low[key], high[key] = _interval(cell, where)
    optional = {
        name: [_field(one, name, kind, f"programs[{at}]", default) for at, one in enumerate(programs)]
        for name, kind, default in (("compact", float, math.nan), ("alone", float, math.nan), ("processes", int, 0))
    }
    return Speedups.of(names, ratio, low=low, high=high, **optional)


def _numbered(names: list[str]) -> dict[str, int]:
    """Return the row of each program, before a matrix of them is made.

    :raises ColocationError: if a name is there twice, or the matrix has more cells than the limit of rows.
    """
    current_limits().check("rows", len(names) ** 2, "programs", ColocationError)
    number = {name: at for at, name in enumerate(names)}
    if len(number) < len(names):
        twice = next(name for at, name in enumerate(names) if number[name] != at)
        raise ColocationError(f"programs: expecting each name once, got {twice!r} twice")
    return number


def _objects(content: dict[str, object], name: str) -> list[dict[str, object]]:
    found = content.get(name)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ColocationError(f"{name}: expecting a list of objects, got {_short(found)}")
    return found


def _field(one: dict[str, object], name: str, kind: type[T], where: str, default: T | None = None) -> T:
    """Return a field of the wanted kind, or the default if it is absent."""
    value = one.get(name, default)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ColocationError(f"{where}: {name}: expecting {kind.__name__}, got {_short(value)}")
    return value


def _program(cell: dict[str, object], name: str, number: dict[str, int], where: str) -> int:
    found = _field(cell, name, str, where)
    if found not in number:
        raise ColocationError(f"{where}: {name}: expecting a program of the list, got {_short(found)}")
    return number[found]


def _interval(cell: dict[str, object], where: str) -> tuple[float, float]:
    ends = cell.get("interval", [math.nan, math.nan])
    if not (isinstance(ends, list) and len(ends) == 2 and all(type(one) in (int, float) for one in ends)):
        raise ColocationError(f"{where}: interval: expecting two numbers, got {_short(ends)}")
    if ends[0] > ends[1]:
        raise ColocationError(f"{where}: interval: expecting the lower end first, got {_short(ends)}")
    return float(ends[0]), float(ends[1])


def _of_table(rows: list[tuple[int, list[str]]]) -> Speedups:
    """Return the speed-ups of a printed matrix; its rows may be in any order."""
    if len(rows) < 2 or len(rows[0][1]) < 2:
        raise ColocationError("expecting a matrix with a row and a column of names, got no matrix")
    names = [word.strip() for word in rows[0][1][1:]]
    number = _numbered(names)
    ratio, seen = np.full((len(names), len(names)), np.nan), set[str]()
    for line, (first, *cells) in rows[1:]:
        name = first.strip()
        if name not in number or name in seen or len(cells) != len(names):
            wanted = f"a program of the first line, once, and {len(names)} cells"
            raise ColocationError(f"line {line}: expecting {wanted}, got {_short(name)} and {len(cells)} cells")
        seen.add(name)
        ratio[number[name]] = [_cell(word, f"line {line}: {other}") for word, other in zip(cells, names, strict=True)]
    return Speedups.of(names, ratio)


def _cell(word: str, where: str) -> float:
    return _positive(word, where) if word.strip() else math.nan


def _runs(rows: list[tuple[int, list[str]]]) -> Iterable[Run]:
    for line, row in rows:
        if len(row) != len(RUN_COLUMNS) or not _COUNT.fullmatch(row[1]):
            raise ColocationError(f"line {line}: expecting {','.join(RUN_COLUMNS)}, got {_short(','.join(row))}")
        yield row[0], int(row[1]), row[2], row[3], _positive(row[4], f"line {line}: seconds")


def _positive(word: str, where: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise ColocationError(f"{where}: expecting a positive number, got {_short(word)}")
    return value


def _short(value: object) -> str:
    return repr(value)[:60]
