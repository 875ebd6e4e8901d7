"""The load of links over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .errors import NetsimError
from .flows import Result
from .program import BACKGROUND, COMPUTE, ONCE, Program

__all__ = ["link_bytes_at"]

Floats = NDArray[np.float64]


def link_bytes_at(
    run: Callable[[Sequence[Program]], Result], programs: Sequence[Program], times: Sequence[float]
) -> Floats:
    """The bytes that have crossed each link until each of the given times, shape (times, links).

    :param run: function that simulates programs, for example ``lambda jobs: run(tables, jobs)``.
    :param programs: one program per job, repeated as its ``repeat`` says until the last job outside the background has
        ended.
    :param times: times in seconds, ascending, above 0.
    :raises NetsimError: if the times are not above 0 and ascending, or ``run`` raises it.
    Cost: one simulation up to the end, and one up to each time.
    """
    if (np.diff(times, prepend=0.0) <= 0).any():
        raise NetsimError(f"timeline: expecting times above 0 that ascend, got {list(times)}")
    whole = run(programs)
    ends = [one.start + seconds for one, seconds in zip(programs, whole.job_seconds, strict=True)]
    last = max(end for one, end in zip(programs, ends, strict=True) if one.repeat != BACKGROUND)
    found, none = [], np.zeros(1, dtype=np.int64)
    for time in times:
        clock = Program(none, none, none, none + COMPUTE, none, np.array([time]), name="clock")
        # A job that runs at this time must not end the simulation; one that ran once must not begin again.
        beside = [
            one if one.repeat == ONCE and end <= time else replace(one, repeat=BACKGROUND)
            for one, end in zip(programs, ends, strict=True)
        ]
        found.append(whole.link_bytes if time >= last else run([*beside, clock]).link_bytes)
    return np.array(found)
