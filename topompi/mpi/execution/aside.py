"""The thread that goes on with runs of plans while the program is elsewhere.

A plan has steps that follow each other, and the MPI library goes on with the messages of one step alone. The thread
takes the next steps if the program is, for example, in ``MPI.Request.Waitall`` or in a receive from another rank.
Without it, two ranks could wait for each other in programs that MPI allows.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from threading import Event, Lock, Thread
from time import sleep
from typing import Protocol
from weakref import WeakValueDictionary

from mpi4py import MPI

from .native import NativeIntracomm
from .resumable import go_on_with_all

__all__ = ["Aside", "aside"]

PAUSE = 1e-3  # seconds between two looks of the thread
LINGER = 100  # looks after the last run; then the thread sleeps until the next one
REST = 1e-2  # seconds between two looks at requests that the MPI library may start, while no run is active


class Startable(Protocol):
    """A request that the MPI library may start."""

    def begin(self, message: MPI.Message) -> None:
        """Begin its run, because it is started; ``message`` is the one by which the library started it."""


class Aside:
    """The thread, which is started at the first request, and ends before MPI does.

    :ivar startable: the requests that the MPI library may start, by number.
    :ivar begin_started: function that begins the runs of those that it has started.
    """

    def __init__(self) -> None:
        self.startable: WeakValueDictionary[int, Startable] = WeakValueDictionary()
        self.begin_started: Callable[[], None] = lambda: None
        self._needed, self._lock = Event(), Lock()
        self._runs: Thread | None = None
        self._stopped = False

    def wake(self) -> None:
        """Let the thread look, because a run is active or a request may be started."""
        if self._runs is None:
            self._start()
        if not self._needed.is_set():
            self._needed.set()

    def _start(self) -> None:
        with self._lock:
            if self._runs is None and not self._stopped:
                # MPI.Finalize deletes the attributes of MPI.COMM_SELF before all else.
                keyval = MPI.Comm.Create_keyval(delete_fn=lambda *_: self._stop())
                NativeIntracomm(MPI.COMM_SELF).Set_attr(keyval, self)
                atexit.register(self._stop)
                self._runs = Thread(target=self._run, name="topompi", daemon=True)
                self._runs.start()

    def _look(self) -> bool:
        if self.startable:
            self.begin_started()
        return go_on_with_all()

    def _run(self) -> None:
        idle = 0
        while not self._stopped:
            idle = 0 if self._look() else idle + 1
            if idle <= LINGER:
                sleep(PAUSE)
                continue
            self._needed.clear()
            if not self._look() and self._needed.wait(REST if self.startable else None):
                idle = 0  # else no run came between the two looks, nor later

    def _stop(self) -> None:
        self._stopped = True
        if self._runs is not None and self._runs.is_alive():  # in a forked process it is not
            self._needed.set()
            self._runs.join(timeout=1)


aside = Aside()
