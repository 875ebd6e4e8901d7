"""Which waiting jobs a pass starts: none before its turn, or those that delay no reserved one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ...extensions import names_function
from ..errors import JobsError
from ..named import made_by
from .order import Order, find_order
from .planning import plan
from .shadow import start_behind_head, start_heads
from .situation import Situation

__all__ = ["QUEUES", "Backfill", "Queue", "find_queue"]


@runtime_checkable
class Queue(Protocol):
    """A discipline: the order of waiting jobs, and which of them a pass starts."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def order(self) -> str | Order:
        """The order of ``situation.waiting``: a name of ``ORDERS``, or an order."""
        ...

    def start_jobs(self, situation: Situation) -> None:
        """Start jobs now by ``situation.start``, and take them out of ``situation.waiting``."""
        ...


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


QUEUES = {"no-overtaking": Backfill(0), "easy": Backfill(1), "conservative": Backfill(None)}


def find_queue(name: str | Queue | None) -> Queue:
    """A queue of ``QUEUES`` by its name, or the given one; without a name EASY.

    ``module:function`` makes one of a user's own.

    :raises JobsError: for a name that is not there, or a function that makes no queue.
    """
    if not isinstance(name, str | None):
        return name
    if name is None or name in QUEUES:
        return QUEUES[name or "easy"]
    if not names_function(name):
        raise JobsError(f"queue: expecting one of {', '.join(QUEUES)}, or a module:function, got {name!r}")
    return made_by(name, Queue, JobsError)  # type: ignore[type-abstract] # a protocol, checked when it runs
