"""The persistent request that ``Bcast_init`` and the other ``*_init`` methods return if topompi runs the collective."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from time import sleep
from typing import Any

from mpi4py import MPI

from .binding import Sent
from .program import Flight, Resumable, run_all

__all__ = ["PersistentPlan", "go_on_aside"]

Ended = Callable[[Exception | None], None]

_active: dict[int, PersistentPlan] = {}  # requests that are started and not complete, by ``id`` of the object


class PersistentPlan:
    """A collective that topompi runs, as a persistent request with the methods of ``MPI.Prequest``.

    ``Start`` posts the first messages. The later steps progress in ``Wait`` and ``Test`` of this request and of others
    of this class, so that ranks may start and complete several in different orders, as MPI 4.1, 6.13, allows. They do
    not progress in other MPI calls: a rank must complete its own part before it waits for anything else that depends on
    this collective.

    :param calls: the calls of a run, in order.
    :param flights: the requests that the calls post.
    :param arguments: the arguments of mpi4py's method, kept alive because the messages use their memory.
    :param sent: peers and sizes of the messages that a run sends; None if they are not counted.
    """

    def __init__(
        self, calls: list[Resumable], flights: list[Flight], arguments: tuple[Any, ...], sent: Sent | None = None
    ) -> None:
        self.sent = sent
        self._calls, self._flights = calls, flights
        self._arguments: tuple[Any, ...] | None = arguments
        self._next = self._length = len(calls)  # index of the next call; the number of calls if the request is inactive
        self._first = next((at for at, call in enumerate(calls) if call.test is not None), len(calls))
        self._begin, self._end = ([call[:2] for call in some] for some in (calls[: self._first], calls[self._first :]))
        self._lock = Lock()
        self._error: Exception | None = None
        self._ended: Ended | None = None

    @property
    def lasts(self) -> bool:
        """Whether the request holds nothing that must be freed."""
        return not self._flights

    def begin(self, ended: Ended | None = None) -> None:
        """Start the collective, without waiting for it.

        :param ended: function that is called once when the collective is complete, with its first error or None; an
            error is then not raised by ``Test``. Only if it is given, ``go_on_aside`` goes on with the collective.
        :raises MPI.Exception: if the request is active or freed.
        """
        if self._next != self._length or self._arguments is None:
            raise MPI.Exception(MPI.ERR_REQUEST)
        for call, arguments in self._begin:
            call(*arguments)
        self._ended, self._next = ended, self._first
        if self._next != self._length:
            _active[id(self)] = self
        else:
            self._complete()

    def Start(self) -> None:
        """Start the collective, without waiting for it.

        :raises MPI.Exception: if the request is active or freed.
        """
        self.begin()

    def Wait(self, status: MPI.Status | None = None) -> bool:
        """Complete the collective; return at once if it was not started. The result is always True."""
        if len(_active) > 1:  # another rank may be waiting for this rank's part in another plan
            while not self.Test():
                for other in list(_active.values()):
                    other._go_on()
                sleep(0)
        elif self._next != self._length:
            with self._lock:
                rest = self._end if self._next == self._first else [call[:2] for call in self._calls[self._next :]]
                try:
                    run_all(rest)
                finally:
                    self._complete()
        self._raise()
        return True

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Progress the collective as far as possible without waiting; True if it is complete."""
        self._go_on()
        if self._next != self._length:
            return False
        self._raise()
        return True

    def _go_on(self) -> None:
        """Make the calls that need not wait; if one fails, the calls after it are made nevertheless."""
        if not self._lock.acquire(blocking=False):  # another thread progresses it
            return
        try:
            for call, arguments, test in self._calls[self._next :]:
                try:
                    if test is None:
                        call(*arguments)
                    elif not test():
                        return
                except Exception as error:
                    self._error = self._error or error
                self._next += 1
            self._complete()
        finally:
            self._lock.release()

    def _complete(self) -> None:
        """Note that the request is inactive, after reading all that belongs to this run: it may be started again."""
        ended, self._ended = self._ended, None
        if ended is None:
            error = None
        else:
            error, self._error = self._error, None
        self._next = self._length
        _active.pop(id(self), None)
        if ended is not None:
            ended(error)

    def _raise(self) -> None:
        """Raise the first error of this run's calls, if there is one."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    start, wait, test = Start, Wait, Test

    def Free(self) -> None:
        """Free the request.

        :raises MPI.Exception: if the collective is not complete, or the request is freed already.
        """
        if self._arguments is None or self._next < self._length:
            raise MPI.Exception(MPI.ERR_REQUEST)
        for flight in self._flights:
            flight.free()
        self._arguments = None
        self._calls, self._flights, self._begin, self._end = [], [], [], []
        self._next = self._length = self._first = 0

    def __bool__(self) -> bool:
        return self._arguments is not None


def go_on_aside() -> bool:
    """Go on with all active collectives that were begun with a function for their end; False if there are none."""
    some = [plan for plan in list(_active.values()) if plan._ended is not None]
    for plan in some:
        plan._go_on()
    return bool(some)
