"""Queue disciplines: strict order, or backfilling, by which jobs overtake if they delay no job with a reservation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ....inputs.extensions import names_function
from ..errors import JobsError
from ..named import made_by
from .order import Order, find_order
from .planning import plan
from .shadow import start_behind_head, start_heads
from .situation import Situation

__all__ = ["QUEUES", "Backfill", "Filler", "Queue", "find_queue"]


class Filler:
    """A queue that fills the machine: the waiting job with the most slots that finds nodes starts first.

    Of jobs with equal sizes the first starts, so that the order of arrival changes no more than filling needs. There
    are no reservations: large jobs may wait for long while smaller ones keep arriving.
    """

    name, order = "filler", "fcfs"

    def start_jobs(self, situation: Situation) -> None:
        """Start jobs, the largest that finds nodes first, until none does. Cost: a sort of the waiting jobs."""
        waiting, started, refused = situation.waiting, set[int](), set[int]()
        jobs = {index: situation.job(index) for index in waiting if situation.sizes[index] <= situation.state.free}
        for index in sorted(jobs, key=lambda one: -(jobs[one].slots or jobs[one].size)):
            if situation.kinds[index] in refused or situation.sizes[index] > situation.state.free:
                continue
            placement = situation.find(jobs[index], situation.state)
            if placement is None:
                refused.add(situation.kinds[index])
                continue
            situation.start(jobs[index], placement)
            started.add(index)
        if started:
            waiting[:] = [index for index in waiting if index not in started]


@runtime_checkable
class Queue(Protocol):
    """The interface of queue disciplines: the order of waiting jobs, and the choice of those that start now."""

    @property
    def name(self) -> str:
        """Name of the queue in messages."""
        ...

    @property
    def order(self) -> str | Order:
        """Order of ``situation.waiting``: a name in ``ORDERS``, or an order."""
        ...

    def start_jobs(self, situation: Situation) -> None:
        """Choose jobs, start them with ``situation.start``, and remove them from ``situation.waiting``."""
        ...


@dataclass(frozen=True)
class Backfill:
    """A queue with reservations for its first jobs; other jobs may start earlier if they delay none of these.

    :param depth: number of waiting jobs that have a reservation: if 0, no job overtakes; if 1, this is EASY (Lifka
        1995); None gives every job a reservation (conservative backfilling).
    :param order: an order, or its name.
    :raises JobsError: if the depth is negative or the order unknown.
    """

    depth: int | None = 1
    order: str | Order = field(default="fcfs")

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth < 0:
            raise JobsError(f"backfill: expecting a depth of 0 or more, or none, got {self.depth}")
        find_order(self.order)

    @property
    def name(self) -> str:
        """Name of the queue in messages."""
        kinds: dict[int | None, str] = {0: "no overtaking", 1: "EASY", None: "conservative"}
        order = self.order if isinstance(self.order, str) else self.order.name
        return f"{order} {kinds.get(self.depth, f'{self.depth} reservations')}"

    def start_jobs(self, situation: Situation) -> None:
        """Start the jobs that may start now, in one pass over the queue."""
        promise = situation.promise
        if promise is not None and situation.waiting[0] != promise.number:
            situation.promise = None  # another job has become the head
        if self.depth is None or self.depth > 1:
            plan(situation, self.depth)
        elif start_heads(situation) and self.depth:
            start_behind_head(situation)


QUEUES: dict[str, Queue] = {
    "no-overtaking": Backfill(0),
    "easy": Backfill(1),
    "conservative": Backfill(None),
    "filler": Filler(),
}


def find_queue(name: str | Queue | None) -> Queue:
    """Return the queue of this name, or the argument if it is a queue; if it is None, EASY backfilling.

    ``module:function`` makes a queue of a user's own.

    :raises JobsError: if the name is unknown, or the function makes no queue.
    """
    if not isinstance(name, str | None):
        return name
    if name is None or name in QUEUES:
        return QUEUES[name or "easy"]
    if not names_function(name):
        raise JobsError(f"queue: expecting one of {', '.join(QUEUES)}, or a module:function, got {name!r}")
    return made_by(name, Queue, JobsError)  # type: ignore[type-abstract] # a protocol, checked when it runs
