"""Meetings of ranks that sleep until all are there.

The hosts of an emulated network share processors: a rank that polls takes them from those that measure. In MPI's own
barriers a rank that sleeps keeps others waiting, as it passes on what they say. Here all tell rank 0, and it tells all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from mpi4py import MPI

__all__ = ["Meeting", "sleep_until"]

SPIN = 5e-5  # seconds that a waiting rank looks before it sleeps
SHORTEST, LONGEST = 2e-4, 2e-3  # seconds of its sleeps; each is twice as long as the one before


class Meeting:
    """Where the ranks of a communicator wait for each other.

    :param comm: over the ranks.
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
        """Wait for all; seconds since the meeting was made, by the clock of rank 0."""
        for requests in (self._arrive, self._answer):
            if self._leads:
                self._now[0] = time.perf_counter() - self._begin
            MPI.Prequest.Startall(requests)
            sleep_until(requests, SHORTEST if self._leads else LONGEST)
        return float(self._now[0])

    def free(self) -> None:
        """Free the requests."""
        for request in (*self._arrive, *self._answer):
            request.Free()


def sleep_until(requests: Sequence[MPI.Request], longest: float = LONGEST) -> None:
    """Wait for requests, asleep where it takes long.

    :param requests: all of them complete, or one never returns.
    :param longest: seconds of a sleep at most.
    """
    waiting, pause, until = list(requests), SHORTEST, time.perf_counter() + SPIN
    while not MPI.Request.Testall(waiting):
        if time.perf_counter() > until:
            time.sleep(pause)
            pause = min(2 * pause, longest)
