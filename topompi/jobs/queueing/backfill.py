"""Which waiting jobs a pass starts: none before its turn, or those that delay no reserved one."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import JobsError
from .order import Order, find_order
from .planning import plan
from .shadow import start_behind_head, start_heads
from .situation import Situation

__all__ = ["Backfill"]


@dataclass(frozen=True)
class Backfill:
    """A queue with reservations for its first jobs; others may start before them where they delay none.

    :param depth: number of waiting jobs that have a reservation: 0 is without overtaking, 1 EASY (Lifka 1995), None
        conservative: all.
    :param order: the name of an order, or one.
    :raises JobsError: for a negative depth or an unknown order.
    """

    depth: int | None = 1
    order: str | Order = field(default="fcfs")

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth < 0:
            raise JobsError(f"backfill: expecting a depth of 0 or more, or none, got {self.depth}")
        find_order(self.order)

    @property
    def name(self) -> str:
        """What messages call it."""
        kinds: dict[int | None, str] = {0: "no overtaking", 1: "EASY", None: "conservative"}
        order = self.order if isinstance(self.order, str) else self.order.name
        return f"{order} {kinds.get(self.depth, f'{self.depth} reservations')}"

    def start_jobs(self, situation: Situation) -> None:
        """One pass."""
        promise = situation.promise
        if promise is not None and situation.waiting[0] != promise.number:
            situation.promise = None  # another job has come ahead of the one that had it
        if self.depth is None or self.depth > 1:
            plan(situation, self.depth)
        elif start_heads(situation) and self.depth:
            start_behind_head(situation)
