"""Barriers in which ranks sleep until all have arrived.

The hosts of an emulated network share processors, so that a polling rank would take processor time from ranks that
measure. In MPI's own barriers ranks forward messages, and a sleeping rank delays others. Here all ranks report to rank
0, which answers all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from mpi4py import MPI

__all__ = ["Meeting", "sleep_until"]

SPIN = 5e-5  # seconds that a waiting rank polls before it sleeps
SHORTEST, LONGEST = 2e-4, 5e-3  # bounds of a sleep in seconds; each sleep is twice as long as the last one


class Meeting:
    """A barrier for the ranks of a communicator, which can be used repeatedly.

    :param comm: communicator of the ranks.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._begin = time.perf_counter()
        self._now, nothing = np.zeros(1), bytearray(0)
        self._leads = comm.rank == 0
        others = range(1, comm.size) if self._leads else [0]
        self._arrive: list[MPI.Prequest] = []
        self._answer: list[MPI.Prequest] = []
        for other in others:
            if self._leads:
                self._arrive.append(comm.Recv_init(nothing, other, 1))
                self._answer.append(comm.Send_init(self._now, other, 1))
            else:
                self._arrive.append(comm.Send_init(nothing, other, 1))
                self._answer.append(comm.Recv_init(self._now, other, 1))

    def meet(self) -> float:
        """Wait for all ranks, and return the seconds since the barrier was made, by rank 0's clock on all ranks."""
        for requests in (self._arrive, self._answer):
            if self._leads:
                self._now[0] = time.perf_counter() - self._begin
            MPI.Prequest.Startall(requests)
            sleep_until(requests, SHORTEST if self._leads else LONGEST)
        return float(self._now[0])

    def free(self) -> None:
        """Free the barrier's MPI requests."""
        for request in (*self._arrive, *self._answer):
            request.Free()


def sleep_until(requests: Sequence[MPI.Request], longest: float = LONGEST) -> None:
    """Complete requests, sleeping if that takes long.

    :param requests: the requests, of which all must complete.
    :param longest: maximum seconds of a sleep.
    """
    waiting, pause, until = list(requests), SHORTEST, time.perf_counter() + SPIN
    while not MPI.Request.Testall(waiting):
        if time.perf_counter() > until:
            time.sleep(pause)
            pause = min(2 * pause, longest)
