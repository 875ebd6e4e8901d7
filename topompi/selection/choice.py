"""The choice of an algorithm for a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .trial import Trial

__all__ = ["Choice"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What to run for one call, and why.

    :param algorithm: ``native``, ``levels``, or a name of ``schedules.registry.ALGORITHMS``.
    :param reason: in words, with the numbers that decided.
    :param predicted: seconds by the cost model or an earlier measurement; None where nothing predicts.
    :param trial: the trial that this call is one of: it wants to know what it took on this rank.
    :param local: whether all ranks choose so without asking rank 0, on any communicator over the same ranks.
    :param always: every call of this communicator would be answered so, of any method and size.
    """

    algorithm: str
    reason: str
    predicted: float | None = None
    trial: Trial | None = None
    always: bool = False
    local: bool = False
