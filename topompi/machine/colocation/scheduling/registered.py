"""Policies that `topompi.machine.jobs` knows by name and imports from here when they are asked for.

Allocators are ``halves`` and, with a file of speed-ups after a colon, ``matched:heat.json``; both also
with ``isolated-`` before their names. The model of run times is ``colocated:heat.json``.
"""

from __future__ import annotations

from ...jobs import Workload
from ..errors import ColocationError
from ..speedups.files import read_speedups
from .allocators import Halves, Matched
from .halves import on_halves
from .isolating import IsolatedHalves, IsolatedMatched
from .speed import ColocatedSpeed
from .table import RateTable, rate_table

__all__ = ["colocated", "halves", "isolated_halves", "isolated_matched", "jobs_for", "matched", "table_of_file"]


def table_of_file(path: str) -> RateTable:
    """Return the rates of the programs of a file whose cells are all known.

    :param path: a file of speed-ups, in one of the forms of `read_speedups`.
    :raises ColocationError: if no file is named, or it is malformed or has no complete part.
    """
    if not path:
        raise ColocationError("expecting a file of speed-ups (--speedups FILE, or its name after a colon), got none")
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


def halves(word: str = "") -> Halves:
    """Return the allocator beside any neighbour.

    :raises ColocationError: if a word follows the name.
    """
    return _of_no_word(Halves(), word)


def isolated_halves(word: str = "") -> Halves:
    """Return the allocator beside any neighbour, which isolates jobs on the network, too.

    :raises ColocationError: if a word follows the name.
    """
    return _of_no_word(IsolatedHalves(), word)


def _of_no_word(allocator: Halves, word: str) -> Halves:
    if word:
        raise ColocationError(f"allocator: expecting {allocator.name} without a word, got {allocator.name}:{word}")
    return allocator


def matched(path: str) -> Matched:
    """Return the allocator by the rates of a file."""
    return Matched(table_of_file(path))


def isolated_matched(path: str) -> IsolatedMatched:
    """Return the allocator by the rates of a file, which isolates jobs on the network, too."""
    return IsolatedMatched(table_of_file(path))


def colocated(path: str) -> ColocatedSpeed:
    """Return the model of run times by the rates of a file."""
    return ColocatedSpeed(table_of_file(path))
