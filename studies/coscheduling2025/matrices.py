"""Measured speed-ups of programs beside each other, on ARIS and on Marconi."""

from __future__ import annotations

from functools import cache

from benchmarks.paths import SHARED_DATA
from topompi.machine.colocation.speedups.files import read_speedups
from topompi.machine.colocation.speedups.matrix import Speedups

__all__ = ["aris", "marconi"]

SECONDS = 100.0  # run time of Marconi's programs


@cache
def aris() -> Speedups:
    """Return the measured speed-ups of the programs on ARIS that were all measured beside each other."""
    return read_speedups(SHARED_DATA / "colocation/aris-nas.csv").complete()


@cache
def marconi() -> Speedups:
    """Return Marconi's matrix, with equal run times, because the source gives none, and 256 processes."""
    found = read_speedups(SHARED_DATA / "colocation/marconi-speedups.csv")
    return Speedups.of(found.programs, found.ratio, compact=SECONDS, processes=256)
