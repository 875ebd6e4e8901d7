"""The Standard Workload Format, version 2.2, of the Parallel Workloads Archive.

One job a line, 18 numbers; -1 is unknown; lines that start with ``;`` are the header (S. J. Chapin et al., Benchmarks
and standards for the evaluation of parallel job schedulers, 1999).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np

from ...inputs import InputFile
from ..errors import WorkloadError
from .text import Source, lines, open_log, whole
from .workload import LATEST, Reading, Workload

__all__ = ["read_swf"]

FIELDS = 18
NAMES = {0: "job number", 1: "submit time", 3: "run time", 4: "processors", 7: "requested processors"}
NAMES |= {8: "requested time", 11: "user"}
KEPT = tuple(NAMES)


def read_swf(path: Source, cores_per_node: int = 1, partial: bool = False) -> Workload:
    """The jobs of a log; nodes are processors over cores a node, rounded up.

    Jobs without processors or run time are left out and counted; allocated processors count before requested ones.

    :param path: of the log, plain or packed.
    :param cores_per_node: processors of one node.
    :param partial: go on after a wrong line, and count it.
    :raises WorkloadError: with file, line and field of what is wrong.
    Cost: 64 bytes a job.
    """
    log = open_log(path)
    if cores_per_node < 1:
        raise WorkloadError(f"{log.name}: expecting 1 or more cores a node, got {cores_per_node}")
    reading, header = Reading(partial), list[str]()
    columns = [array("q") for _ in KEPT]
    for values in _usable(log, reading, header):
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    jobs, submit, run, processors, requested, request, user = (np.array(column, dtype=np.int64) for column in columns)
    return Workload.of(
        log.name,
        number=jobs,
        submit=submit,
        run=run,
        request=np.maximum(request, 0),
        nodes=-(-np.where(processors > 0, processors, requested) // cores_per_node),
        user=np.maximum(user, -1),
        header=tuple(header),
        reading=reading,
    )


def _usable(log: InputFile, reading: Reading, header: list[str]) -> Iterator[list[int]]:
    """The kept fields of each job that ran; other lines go into the reading and the header."""
    for number, line in lines(log):
        if line.lstrip().startswith(";"):
            header.append(line.strip())
        elif words := line.split():
            try:
                values = _values(f"{log.name}: line {number}", words)
            except WorkloadError as error:
                reading.problem(error)
                continue
            if reason := _unusable(values):
                reading.drop(reason)
            else:
                yield values


def _values(where: str, words: list[str]) -> list[int]:
    if len(words) != FIELDS:
        raise WorkloadError(f"{where}: expecting {FIELDS} fields, got {len(words)}")
    try:
        values = [int(words[at]) for at in KEPT]
        if min(values) > -LATEST and max(values) < 2**31:
            return values
    except ValueError:
        pass  # told field by field
    limits = {4: (-LATEST, 2**31), 7: (-LATEST, 2**31), 11: (-LATEST, 2**31)}
    for at in KEPT:
        least, below = limits.get(at, (-LATEST, LATEST))
        value = whole(where, f"field {at + 1} ({NAMES[at]})", words[at], least)
        if value >= below:
            raise WorkloadError(f"{where}: field {at + 1} ({NAMES[at]}): expecting less than {below}, got {value}")
    return [whole(where, NAMES[at], words[at]) for at in KEPT]


def _unusable(values: list[int]) -> str:
    if max(values[3], values[4]) <= 0:
        return "no processors"
    if values[1] < 0:
        return "no submit time"
    return "no run time" if values[2] < 0 else ""
