"""What a faulty schedule is refused with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import TopompiError
from ..schedule import Schedule

__all__ = ["ScheduleError", "Violation", "first_of", "first_row"]


class ScheduleError(TopompiError, ValueError):
    """A schedule breaks a rule; the message names step, ranks, buffer and block.

    :param step: step of the violation, None where only the end of the schedule shows it.
    :param ranks: source and destination of the offending transfer, or the rank whose result is wrong.
    """

    def __init__(self, message: str, step: int | None = None, ranks: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.step = step
        self.ranks = ranks


@dataclass(frozen=True)
class Violation:
    """A rule that a row of a schedule breaks."""

    row: int
    text: str

    def error(self, schedule: Schedule) -> ScheduleError:
        """The exception that names step and ranks of the row."""
        step, source, destination = (
            int(column[self.row]) for column in (schedule.step, schedule.source, schedule.destination)
        )
        ranks = f"rank {source}" if source == destination else f"rank {source} -> rank {destination}"
        return ScheduleError(f"step {step}, {ranks}: {self.text}", step, (source, destination))


def first_row(broken: NDArray[np.bool_]) -> int | None:
    """The first place where a rule is broken."""
    found = int(broken.argmax()) if len(broken) else 0
    return found if len(broken) and broken[found] else None


def first_of(*found: Violation | None) -> Violation | None:
    """The violation with the lowest row."""
    return min((one for one in found if one), key=lambda one: one.row, default=None)
