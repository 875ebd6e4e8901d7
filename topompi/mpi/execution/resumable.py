"""Runs of plans that can be interrupted and resumed, by the program's threads and by the thread of ``aside``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from time import sleep
from typing import Protocol

from mpi4py import MPI

from .binding import Sent
from .program import Resumable, run_all

__all__ = ["ResumableRun", "go_on_with_all"]

Ended = Callable[[Exception | None], None]

_active: dict[int, ResumableRun] = {}  # runs that are begun and not complete, by ``id`` of the object


class Freeable(Protocol):
    """An object that a run needs until it is freed."""

    def free(self) -> None:
        """Free the object."""


class ResumableRun:
    """A collective that topompi runs in parts, once or many times; it ends by calling a function.

    :param calls: the calls of a run, in order.
    :param held: the requests that the calls post, and others that are freed with the run.
    :param arguments: objects that are kept alive because the messages use their memory.
    :param sent: peers and sizes of the messages that a run sends; None if they are not counted.
    """

    def __init__(
        self, calls: list[Resumable], held: Sequence[Freeable], arguments: tuple[object, ...], sent: Sent | None = None
    ) -> None:
        self.sent = sent
        self._calls, self._held = calls, held
        self._arguments: tuple[object, ...] | None = arguments
        self._next = self._length = len(calls)  # index of the next call; the number of calls if the run is not begun
        self._first = next((at for at, call in enumerate(calls) if call.test is not None), len(calls))
        self._begin, self._end = ([call[:2] for call in some] for some in (calls[: self._first], calls[self._first :]))
        self._lock = Lock()
        self._error: Exception | None = None
        self._ended: Ended | None = None

    @property
    def lasts(self) -> bool:
        """Whether the run holds nothing that must be freed."""
        return not self._held

    @property
    def active(self) -> bool:
        """Whether the run is begun and not complete."""
        return self._next != self._length

    def begin(self, ended: Ended) -> None:
        """Post the first messages, without waiting for them; if one fails, the others are posted nevertheless.

        :param ended: function that is called once when the run is complete, with its first error or None.
        :raises MPI.Exception: if the run is active or freed.
        """
        if self.active or self._arguments is None:
            raise MPI.Exception(MPI.ERR_REQUEST)
        for call, arguments in self._begin:
            try:
                call(*arguments)
            except Exception as error:
                self._error = self._error or error
        self._ended, self._next = ended, self._first
        if self.active:
            _active[id(self)] = self
        else:
            self._complete()

    def finish(self) -> None:
        """Complete the run; return at once if it is not active."""
        if len(_active) > 1:  # another rank may be waiting for this rank's part in another run
            while self.active:
                go_on_with_all()
                sleep(0)
        elif self.active:
            with self._lock:
                rest = self._end if self._next == self._first else [call[:2] for call in self._calls[self._next :]]
                try:
                    run_all(rest)
                except Exception as error:
                    self._error = self._error or error
                finally:
                    self._complete()

    def go_on(self) -> None:
        """Make the calls that need not wait; if one fails, the calls after it are made nevertheless."""
        if not self._lock.acquire(blocking=False):  # another thread makes them
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
        """Note that the run is not active, after reading all that belongs to it: it may be begun again at once."""
        (ended, self._ended), (error, self._error) = (self._ended, None), (self._error, None)
        self._next = self._length
        _active.pop(id(self), None)
        if ended is not None:  # else another thread has completed it
            ended(error)

    def free(self) -> None:
        """Free what the run holds. A freed run cannot be begun."""
        for one in self._held:
            one.free()
        self._arguments = None
        self._calls, self._held, self._begin, self._end = [], [], [], []
        self._next = self._length = self._first = 0


def go_on_with_all() -> bool:
    """Go on with all active runs; False if there are none."""
    some = list(_active.values())
    for run in some:
        run.go_on()
    return bool(some)
