"""Rates of programs on half nodes as a table of numbers, which schedulers and the model of run times look up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...jobs import Workload
from ..errors import ColocationError
from ..speedups.matrix import Speedups

__all__ = ["ALONE", "ITSELF", "RateTable", "program_numbers", "rate_table"]

ALONE, ITSELF = -2, -1  # columns after those of the programs
Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RateTable:
    """Rates of n programs on a half node, by the other half.

    :ivar programs: names of the programs.
    :ivar rates: rate of each program beside each program, beside an empty half (column ``ALONE``), and beside the same
        job on both halves (column ``ITSELF``), which is 1, shape (n, n + 2).
    """

    programs: tuple[str, ...]
    rates: Reals

    @property
    def slowest(self) -> float:
        """The lowest rate of any program, at most 1, because a job on whole nodes has rate 1."""
        return float(min(1.0, self.rates.min()))


def rate_table(speedups: Speedups) -> RateTable:
    """Return the rates of a matrix; beside an empty half a program runs as measured, else at its row's largest rate.

    :param speedups: a matrix without unknown cells.
    :raises ColocationError: if a cell is unknown; `Speedups.complete` has the programs without unknown cells.
    """
    if not speedups.known.all():
        row, column = np.argwhere(~speedups.known)[0].tolist()
        names, count = speedups.programs, int((~speedups.known).sum())
        raise ColocationError(
            f"expecting the speed-up of {names[row]} beside {names[column]}, got none; {count} cells are unknown"
        )
    ones = np.ones(len(speedups))
    return RateTable(speedups.programs, np.column_stack((speedups.ratio, speedups.beside_nothing, ones)))


def program_numbers(workload: Workload, programs: Sequence[str]) -> NDArray[np.int64]:
    """Return the number of each job's program, shape (jobs,); -1 for a job that shares no nodes.

    :param workload: jobs with the columns ``program`` and ``shared``.
    :param programs: names of the programs.
    :raises ColocationError: if a job that shares nodes has no program or an unknown one.
    """
    found, shared = np.full(len(workload), -1), workload.shared
    if not shared.any():
        return found
    if "program" not in workload.columns:
        raise ColocationError(f"{workload.name}: expecting a column program, got {', '.join(workload.columns)}")
    number = {name: at for at, name in enumerate(programs)}
    names = workload.columns["program"]
    for job in np.flatnonzero(shared).tolist():
        found[job] = number.get(names[job], -1)
        if found[job] < 0:
            known = f"a program of {', '.join(programs)}"
            raise ColocationError(f"{workload.name}: job {workload.number[job]}: expecting {known}, got {names[job]!r}")
    return found
