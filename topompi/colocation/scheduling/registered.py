"""The names that this room adds to those of `topompi.jobs`: allocators, a queue, and a model of run times.

Allocators are ``halves`` and, with a file of speed-ups after a colon, ``matched:heat.json``; both also
with ``isolated-`` before their names. The queue is ``filler``, the model of run times ``colocated:heat.json``.
"""

from __future__ import annotations

from functools import cache

from ...jobs import ALLOCATORS, QUEUES, Workload
from ...jobs.allocation import MADE_FROM
from ...jobs.speed import SPEEDS
from ..errors import ColocationError
from ..speedups.files import read_speedups
from .allocators import Halves, Matched
from .halves import on_halves
from .isolating import IsolatedHalves, IsolatedMatched
from .queues import Filler
from .speed import ColocatedSpeed
from .table import RateTable, rate_table

__all__ = ["WITH_FILE", "jobs_for", "table_of_file"]

WITH_FILE = ("matched", "isolated-matched")  # names of allocators that take a file


@cache
def table_of_file(path: str) -> RateTable:
    """Return the rates of the programs of a file whose cells are all known.

    :param path: a file of speed-ups, in one of the forms of `read_speedups`.
    :raises ColocationError: if no file is named, or it is malformed or has no complete part.
    """
    if not path:
        raise ColocationError("expecting a file of speed-ups (--coschedule FILE, or its name after a colon), got none")
    speedups = read_speedups(path)
    complete = speedups.complete()
    if not len(complete):
        raise ColocationError(f"{path}: expecting a program whose speed-up beside itself is known, got none")
    return rate_table(complete)


def jobs_for(path: str, workload: Workload) -> Workload:
    """Return the jobs on half nodes with programs of a file; requests are longer, by the file's lowest rate.

    :param path: a file of speed-ups.
    :param workload: the jobs.
    """
    table = table_of_file(path)
    return on_halves(workload, table.programs, stretch=1 / table.slowest)


ALLOCATORS["halves"] = Halves
ALLOCATORS["isolated-halves"] = IsolatedHalves
MADE_FROM["isolated-matched"] = lambda path: IsolatedMatched(table_of_file(path))
MADE_FROM["matched"] = lambda path: Matched(table_of_file(path))
QUEUES["filler"] = Filler()
SPEEDS["colocated"] = lambda path: ColocatedSpeed(table_of_file(path))
