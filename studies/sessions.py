"""Simulations of jobs that repeat side by side, and the seconds of their first runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from topompi.netsim import BACKGROUND, Program, Session

__all__ = ["first_runs"]


def first_runs(session: Session, programs: Sequence[Program], runs: int = 1) -> NDArray[np.float64]:
    """Repeat jobs until all have run some times, and return the mean seconds of each job's first runs.

    :param session: a simulation without programs.
    :param programs: the jobs.
    :param runs: number of runs of each job that count.
    """
    handles = [session.add(replace(one, repeat=BACKGROUND)) for one in programs]
    left = set(handles)
    while left:
        left -= {handle for handle in session.advance() if len(session.runs(handle).ends) >= runs}
    return np.array([session.runs(handle).seconds[:runs].mean() for handle in handles])
