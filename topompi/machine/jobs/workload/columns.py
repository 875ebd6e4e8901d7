"""Conversion of jobs, which are read one after another, into the columns of a workload."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from ..errors import WorkloadError
from .workload import FIXED, Column, LeftOut, Workload

__all__ = ["Value", "gather"]

Job = TypeVar("Job")
Value = bool | int | float | str
MOST = 64  # further columns; limits those of a file, because each takes 8 bytes per job, even if one job has a value
NO_VALUE: dict[type, Value] = {bool: False, int: -1, float: float("nan"), str: ""}


def gather(
    name: str,
    jobs: Iterable[Job],
    values: Callable[[Job], dict[str, int] | None],
    reading: LeftOut,
    header: tuple[str, ...] = (),
    further: Callable[[Job], Mapping[str, Value]] | None = None,
) -> Workload:
    """Make a workload from the values of each job.

    :param name: name of the source of the jobs.
    :param jobs: the jobs in the form of their format.
    :param values: function that returns number, submit, run, request, nodes and user of a job, by these names; None if
        the job is to be skipped.
    :param reading: record of the jobs that are left out, because ``values`` raises an error for them.
    :param header: header lines to keep.
    :param further: function that returns the values of a job's further columns; called for jobs that are not skipped.
    :raises WorkloadError: if ``values`` raises it and the reading is not partial, or there are too many columns.
    """
    columns = {word: array("q") for word in FIXED}
    more: list[Mapping[str, Value]] = []
    for job in jobs:
        try:
            found = values(job)
            beside = further(job) if further is not None and found is not None else {}
        except WorkloadError as error:
            reading.problem(error)
            continue
        if found is not None:
            for word, column in columns.items():
                column.append(found[word])
            more.append(beside)
    rows = {word: np.array(column, dtype=np.int64) for word, column in columns.items()}
    words = dict.fromkeys(word for of in more for word in of)
    if len(words) > MOST:
        raise WorkloadError(f"{name}: expecting at most {MOST} further columns, got {len(words)}")
    free = {word: _typed(word, [of.get(word) for of in more]) for word in words}
    return Workload.of(name, **rows, header=header, reading=reading, columns=free)


def _typed(word: str, values: Sequence[Value | None]) -> Column:
    """Make a column of the values' type if they have one in common, else of texts.

    A missing value becomes False, -1 (in ``slots`` 0), NaN or an empty text, by the column's type.
    """
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        kinds = {float}
    kind = kinds.pop() if len(kinds) == 1 else str
    missing = 0 if word == "slots" else NO_VALUE[kind]
    made = [missing if value is None else kind(value) for value in values]
    if kind is str:
        return np.array([sys.intern(str(one)) for one in made], dtype=object)
    return np.array(made, dtype=kind)
