"""The choice of an algorithm for a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .trial import Trial

__all__ = ["Choice"]


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm for a call, and the reason for it.

    :param algorithm: ``native``, or a name of ``schedules.table.ALGORITHMS``.
    :param reason: the reason in words, with the numbers that decided.
    :param predicted: seconds by the cost model or by an earlier measurement; None if neither is known.
    :param trial: the trial that the call is part of, and that records the call's duration on this rank; None if the
        call is not part of a trial.
    :param always: True if every call on this communicator gets this choice.
    :param local: True if every rank can make this choice without asking rank 0, on any communicator over these ranks.
    """

    algorithm: str
    reason: str
    predicted: float | None = None
    trial: Trial | None = None
    always: bool = False
    local: bool = False
