"""Non-blocking collectives that topompi runs: their requests, and the thread that goes on with them meanwhile.

A plan has steps that follow each other, and the MPI library goes on with the messages of one step alone. The thread
takes the next steps if the program is elsewhere, for example in ``MPI.Request.Waitall`` or in a receive from another
rank. Without it, two ranks could wait for each other in programs that MPI allows.
"""

from __future__ import annotations

import atexit
from itertools import count
from threading import Event, Lock, Thread
from time import sleep
from typing import Any

from mpi4py import MPI

from .contexts import TAGS, alone
from .persistent import PersistentPlan, go_on_aside
from .program import Resumable

__all__ = ["PlanRequest", "after"]

NOTHING: Any = [bytearray(), 0, MPI.BYTE]
SOMETHING: Any = [bytearray(1), 1, MPI.BYTE]
PAUSE = 1e-3  # seconds between two looks of the thread
LINGER = 100  # looks after the last collective; then the thread sleeps until the next one


class PlanRequest(MPI.Request):
    """The request of a non-blocking collective, which every function of MPI for requests takes.

    To the MPI library it is the receive of an empty message, which this rank sends to itself when the collective is
    complete. (MPICH 5.0.2 ends the program if it finds a generalized request in ``MPI.Request.Waitall``.) ``Wait`` and
    ``Test`` go on with the collective themselves; ``Waitall`` and others wait for the thread.
    """

    _plan: PersistentPlan | None
    _kept: Any
    _error: Exception | None
    _tag: int

    @classmethod
    def of(cls, plan: PersistentPlan, kept: Any) -> PlanRequest:
        """Begin a plan, and return its request.

        :param plan: a plan that is not active; it is freed at the end if it holds what must be freed.
        :param kept: an object that is kept alive until the end, for example the memory of messages.
        """
        tag = 1 + next(_numbers) % (TAGS - 1)  # copies of data with gaps have tag 0
        request = cls(alone().Irecv(NOTHING, 0, tag))
        request._plan, request._kept, request._error, request._tag = plan, kept, None, tag
        plan.begin(request._end)
        if request._plan is not None:
            _thread.wake()
        return request

    @property
    def ended(self) -> bool:
        """Whether the collective is complete on this rank."""
        return self._plan is None

    def _end(self, error: Exception | None) -> None:
        plan, self._plan, self._kept = self._plan, None, None
        if plan is not None and not plan.lasts:
            plan.Free()
        self._error = error
        # A message that is too long for the receive is an error of MPI, also in ``MPI.Request.Waitall``.
        alone().Send(NOTHING if error is None else SOMETHING, 0, self._tag)

    def Wait(self, status: MPI.Status | None = None) -> Any:
        """Complete the collective."""
        plan = self._plan
        try:
            if plan is not None:
                plan.Wait()
        finally:
            done = self._told(super().Wait, status)
        return done

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Go on with the collective as far as possible without waiting; True if it is complete."""
        plan = self._plan
        if plan is not None:
            plan.Test()
        return bool(self._told(super().Test, status))

    def _told(self, native: Any, status: MPI.Status | None) -> Any:
        try:
            return native(status)
        except MPI.Exception as told:
            raise self._error or told from None

    def wait(self, status: MPI.Status | None = None) -> Any:
        """Complete the collective."""
        self.Wait(status)

    def test(self, status: MPI.Status | None = None) -> tuple[bool, Any]:
        """Go on with the collective as far as possible without waiting; whether it is complete, and None."""
        return self.Test(status), None


def after(earlier: PlanRequest) -> Resumable:
    """The first call of a plan that must not begin before an earlier request is complete.

    While the earlier one is active, ``PersistentPlan.Wait`` tests all active plans in turn, so that no call waits.
    """
    return Resumable(lambda: None, (), lambda: earlier.ended)


class _Aside:
    """The thread, which is started at the first request, and ends before MPI does."""

    def __init__(self) -> None:
        self._needed, self._lock = Event(), Lock()
        self._runs: Thread | None = None
        self._stopped = False

    def wake(self) -> None:
        if self._runs is None:
            with self._lock:
                if self._runs is None and not self._stopped:
                    self._runs = Thread(target=self._run, name="topompi", daemon=True)
                    self._runs.start()
                    atexit.register(self._stop)
        if not self._needed.is_set():
            self._needed.set()

    def _run(self) -> None:
        idle = 0
        while not self._stopped:
            idle = 0 if go_on_aside() else idle + 1
            if idle > LINGER:
                self._needed.clear()
                if not go_on_aside():  # no request came between the look and the line above
                    self._needed.wait()
                idle = 0
            sleep(PAUSE)

    def _stop(self) -> None:
        self._stopped = True
        self._needed.set()
        if self._runs is not None:
            self._runs.join(timeout=1)


_numbers, _thread = count(), _Aside()
