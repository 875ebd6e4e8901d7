"""A collective with its buffers, to be started again and again: what the ``*_init`` methods return."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from .binding import Sent
from .program import Flight, Resumable, run_all

__all__ = ["PersistentPlan"]


class PersistentPlan:
    """A planned collective as a persistent request, spelt as ``MPI.Prequest``.

    ``Start`` posts the first messages. The rest of a plan with several steps goes on in ``Wait`` and ``Test`` only, as
    in an MPI library without a progress thread, but not in other calls of MPI either: before a rank waits for anything
    else that depends on the others' part in this collective, it has to complete its own.

    :param calls: of a run.
    :param flights: what they post.
    :param arguments: of the call; held, since the messages are to and from their memory.
    :param sent: what a run sends.
    """

    def __init__(
        self, calls: list[Resumable], flights: list[Flight], arguments: tuple[Any, ...], sent: Sent | None = None
    ) -> None:
        self.sent = sent
        self._calls, self._flights = calls, flights
        self._arguments: tuple[Any, ...] | None = arguments
        self._next = self._length = len(calls)  # the call to run next; behind the last: inactive
        self._first = next((at for at, call in enumerate(calls) if call.test is not None), len(calls))
        self._begin, self._end = ([call[:2] for call in some] for some in (calls[: self._first], calls[self._first :]))

    def Start(self) -> None:
        """Begin the collective; collective."""
        if self._next != self._length:
            raise RuntimeError("request already started")
        if self._arguments is None:
            raise RuntimeError("request already freed")
        for call, arguments in self._begin:
            call(*arguments)
        self._next = self._first

    def Wait(self, status: MPI.Status | None = None) -> bool:
        """Complete the collective; returns at once if it was not started. Always True."""
        rest = self._end if self._next == self._first else [call[:2] for call in self._calls[self._next :]]
        if self._next != self._length:
            self._next = self._length  # also where a call fails
            run_all(rest)
        return True

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Go on with the collective as far as possible without waiting; whether it is complete."""
        for call, arguments, test in self._calls[self._next :]:
            if test is None:
                call(*arguments)
            elif not test():
                return False
            self._next += 1
        return True

    start, wait, test = Start, Wait, Test

    def Free(self) -> None:
        """Free the requests. The collective has to be complete."""
        if self._arguments is None:
            raise RuntimeError("request already freed")
        if self._next < self._length:
            raise RuntimeError("expecting a request that is complete, got one that was started")
        for flight in self._flights:
            flight.free()
        self._arguments = None
        self._calls, self._flights, self._begin, self._end = [], [], [], []
        self._next = self._length = self._first = 0

    def __bool__(self) -> bool:
        return self._arguments is not None
