"""The proof that no rank leaves a barrier before all ranks have entered it."""

from __future__ import annotations

import numpy as np

from ..schedule import Schedule
from .error import ScheduleError

__all__ = ["meet"]


def meet(schedule: Schedule) -> None:
    """Prove that at the end of a barrier each rank knows that all ranks have entered it.

    With a message a rank learns of all ranks that its sender knew of before the step.

    :raises ScheduleError: for the first rank that has not heard of some rank.
    Cost: O(messages p) time and p^2 / 4 bytes.
    """
    size = schedule.size
    heard = np.packbits(np.eye(size, dtype=np.bool_), axis=1)
    messages = schedule.messages
    ends = np.flatnonzero(np.diff(schedule.step[messages])) + 1
    for rows in np.split(messages, ends):  # a step
        np.bitwise_or.at(heard, schedule.destination[rows], heard[schedule.source[rows]])
    missing = np.unpackbits(heard, axis=1, count=size) == 0
    if missing.any():
        rank, other = (int(place) for place in np.argwhere(missing)[0])
        raise ScheduleError(f"end: rank {rank} may leave before rank {other} has entered", None, (rank,))
