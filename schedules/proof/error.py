"""The exception for a faulty schedule, and the violations that lead to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import TopompiError
from ..schedule import Schedule

__all__ = ["ScheduleError", "Violation", "first_of", "first_row"]


class ScheduleError(TopompiError, ValueError):
    """A schedule violates a rule; the message names step, ranks, buffer and block.

    :param message: description of the violation.
    :param step: step of the violation, None if only the final state shows it.
    :param ranks: source and destination of the offending transfer, or the rank with the wrong result.
    """

    def __init__(self, message: str, step: int | None = None, ranks: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.step = step
        self.ranks = ranks


@dataclass(frozen=True)
class Violation:
    """A violation of a rule by a row of a schedule.

    :param row: index of the row.
    :param text: description of the violation, without step and ranks.
    """

    row: int
    text: str

    def error(self, schedule: Schedule) -> ScheduleError:
        """The exception, which names step and ranks of the row."""
        step, source, destination = (
            int(column[self.row]) for column in (schedule.step, schedule.source, schedule.destination)
        )
        ranks = f"rank {source}" if source == destination else f"rank {source} -> rank {destination}"
        return ScheduleError(f"step {step}, {ranks}: {self.text}", step, (source, destination))


def first_row(broken: NDArray[np.bool_]) -> int | None:
    """The index of the first True, None if there is none."""
    found = int(broken.argmax()) if len(broken) else 0
    return found if len(broken) and broken[found] else None


def first_of(*found: Violation | None) -> Violation | None:
    """The violation with the lowest row, None if there is none."""
    return min((one for one in found if one), key=lambda one: one.row, default=None)
