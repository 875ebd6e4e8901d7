"""Requests of collectives that topompi runs, which every function of MPI for requests takes.

To the MPI library they are an empty message from this rank to itself, which ends when the collective is complete.
(MPICH 5.0.2 ends the program if it finds a generalized request in ``MPI.Request.Waitall``.) ``Wait``, ``Test`` and
``Get_status`` go on with the collective themselves; ``Waitall`` and the others wait for the thread of ``aside``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import count
from threading import RLock
from typing import TYPE_CHECKING, Literal, TypeVar

from mpi4py import MPI

from .aside import aside
from .contexts import alone, most_tags
from .native import NativeIntracomm, NativePrequest
from .program import Resumable
from .resumable import ResumableRun, go_on_with_all

if TYPE_CHECKING:
    from typing import Self

    from .binding import Sent

    Native = MPI.Request
else:
    Native = object

__all__ = ["PersistentRequest", "PlanRequest", "after", "begin_started"]

NOTHING = [bytearray(), 0, MPI.BYTE]
SOMETHING = [bytearray(1), 1, MPI.BYTE]

T = TypeVar("T")
_numbers, _starting = count(), RLock()


def _new_tag() -> int:
    """A tag that no persistent request has; copies of data with gaps have tag 0."""
    tags = (1 + number % (most_tags() - 1) for number in _numbers)
    return next(tag for tag in tags if tag not in aside.startable)


class _PlanRequest(Native):
    """Base class of requests of one run and of many runs."""

    _run: ResumableRun | None
    _error: Exception | None
    _tag: int

    def _go_on(self) -> None:
        go_on_with_all()

    def _finish(self) -> None:
        if self._run is not None:
            self._run.finish()

    def _told(self, native: Callable[[MPI.Status | None], T], status: MPI.Status | None) -> T:
        """What a function of the library returns; the error of the run is raised in its place."""
        raise NotImplementedError

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:
        """Complete the collective."""
        try:
            self._finish()
        finally:
            done = self._told(super().Wait, status)
        return done

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Go on with the collective as far as possible without waiting; True if it is complete."""
        self._go_on()
        return bool(self._told(super().Test, status))

    def Get_status(self, status: MPI.Status | None = None) -> bool:
        """Go on with the collective as far as possible without waiting; True if it is complete; the request stays."""
        self._go_on()
        return bool(super().Get_status(status))

    get_status = Get_status

    def wait(self, status: MPI.Status | None = None) -> None:
        """Complete the collective."""
        self.Wait(status)

    def test(self, status: MPI.Status | None = None) -> tuple[bool, None]:
        """Go on with the collective as far as possible without waiting; whether it is complete, and None."""
        return self.Test(status), None


class PlanRequest(_PlanRequest, MPI.Request):
    """The request of a non-blocking collective: the receive of a message that this rank sends at the end."""

    _kept: object

    @classmethod
    def of(cls, run: ResumableRun, kept: object) -> Self:
        """Begin a run, and return its request.

        :param run: a run that is not active; it is freed at the end if it holds what must be freed.
        :param kept: an object that is kept alive until the end, for example the memory of messages.
        """
        tag = _new_tag()
        request = cls(alone().Irecv(NOTHING, 0, tag))
        request._run, request._kept, request._error, request._tag = run, kept, None, tag
        run.begin(request._end)
        if not request.ended:
            aside.wake()
        return request

    @property
    def ended(self) -> bool:
        """Whether the collective is complete on this rank."""
        return self._run is None

    def _end(self, error: Exception | None) -> None:
        run, self._run, self._kept = self._run, None, None
        if run is not None and not run.lasts:
            run.free()
        self._error = error
        # A message that is too long for the receive is an error of MPI, also in ``MPI.Request.Waitall``.
        alone().Send(NOTHING if error is None else SOMETHING, 0, self._tag)

    def _told(self, native: Callable[[MPI.Status | None], T], status: MPI.Status | None) -> T:
        try:
            return native(status)
        except MPI.Exception as told:
            raise self._error or told from None


class PersistentRequest(_PlanRequest, NativePrequest):
    """The request of a persistent collective: a synchronous message, which this rank receives at the end.

    The MPI library may start it, too (``MPI.Prequest.Startall``). It then sends the message alone, which the thread
    finds. No other way is safe: while a thread waits for a request, Open MPI 5.0 tells others that it is complete.
    """

    _message: MPI.Message | None  # the message that is to be received; None if the request is not active

    @classmethod
    def of(cls, run: ResumableRun) -> Self:
        """The request of a run.

        :param run: a run that is not active; it is freed with the request.
        """
        tag = _new_tag()
        request = cls(_itself().Ssend_init(NOTHING, 0, tag))
        request._run, request._error, request._tag, request._message = run, None, tag, None
        aside.startable[tag] = request
        aside.begin_started = begin_started  # the thread's module cannot import this one, which needs the thread
        aside.wake()
        return request

    @property
    def sent(self) -> Sent | None:
        """Peers and sizes of the messages that a run sends; None if they are not counted."""
        return None if self._run is None else self._run.sent

    def Start(self) -> None:
        """Start the collective, without waiting for it.

        :raises MPI.Exception: if the request is active or freed.
        """
        with _starting:
            if self._message is not None:
                raise MPI.Exception(MPI.ERR_REQUEST)
            super().Start()
            self.begin(_itself().Mprobe(0, self._tag))
        aside.wake()

    def begin(self, message: MPI.Message) -> None:
        """Begin the run, because the request is started.

        :param message: the message by which the MPI library has started the request.
        """
        self._message = message
        if self._run is not None:
            self._run.begin(self._end)

    def _end(self, error: Exception | None) -> None:
        self._error = error
        with _starting:  # the request may be started again as soon as the message is received
            message, self._message = self._message, None
            if message is not None:
                message.Recv(NOTHING)

    def _told(self, native: Callable[[MPI.Status | None], T], status: MPI.Status | None) -> T:
        done = native(status)
        error = self._error
        if done and error is not None:
            self._error = None
            raise error
        return done

    def _go_on(self) -> None:
        begin_started()
        super()._go_on()

    def _finish(self) -> None:
        begin_started()
        super()._finish()

    def Cancel(self) -> None:
        """Refuse to cancel, because MPI has no way to cancel a collective.

        :raises MPI.Exception: always.
        """
        raise MPI.Exception(MPI.ERR_REQUEST)

    def Free(self) -> None:
        """Free the request.

        :raises MPI.Exception: if the collective is not complete, or the request is freed already.
        """
        with _starting:
            if self._message is not None:
                raise MPI.Exception(MPI.ERR_REQUEST)
            super().Free()
            run, self._run = self._run, None
        if run is not None:
            run.free()
            aside.startable.pop(self._tag, None)

    cancel, free = Cancel, Free


@cache
def _itself() -> MPI.Intracomm:
    """The communicator of this rank only for the messages of persistent requests."""
    return NativeIntracomm(NativeIntracomm(MPI.COMM_SELF).Split())


def begin_started() -> None:
    """Begin the runs of the requests that the MPI library has started."""
    status = MPI.Status()
    while _starting.acquire(blocking=False):  # else another thread begins them
        try:
            message = _itself().Improbe(0, MPI.ANY_TAG, status)
            if message is None:
                return
            if (request := aside.startable.get(status.Get_tag())) is not None:  # else the program has dropped it
                request.begin(message)
        finally:
            _starting.release()


def after(earlier: PlanRequest) -> Resumable:
    """The first call of a run that must not begin before an earlier request is complete.

    While the earlier one is active, ``ResumableRun.finish`` tests all active runs in turn, so that no call waits.
    """
    return Resumable(lambda: None, (), lambda: earlier.ended)
