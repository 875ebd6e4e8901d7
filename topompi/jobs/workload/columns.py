"""Jobs that a reader finds one after another, as the columns of a workload."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from ..errors import WorkloadError
from .workload import Reading, Workload

__all__ = ["gather"]

Job = TypeVar("Job")
WORDS = ("number", "submit", "run", "request", "nodes", "user")


def gather(
    name: str,
    jobs: Iterable[Job],
    values: Callable[[Job], dict[str, int] | None],
    reading: Reading,
    header: tuple[str, ...] = (),
) -> Workload:
    """The workload of the values of each job.

    :param name: where the jobs came from.
    :param jobs: as the format has them.
    :param values: number, submit, run, request, nodes and user of a job; None where it does not count.
    :param reading: is told of each job that ``values`` refuses.
    :param header: lines to keep.
    :raises WorkloadError: what ``values`` raises, unless the reading is partial.
    """
    columns = {word: array("q") for word in WORDS}
    for job in jobs:
        try:
            found = values(job)
        except WorkloadError as error:
            reading.problem(error)
            continue
        if found is not None:
            for word, column in columns.items():
                column.append(found[word])
    rows = {word: np.array(column, dtype=np.int64) for word, column in columns.items()}
    return Workload.of(name, **rows, header=header, reading=reading)
