"""The barrier benchmark, and its validation."""

from __future__ import annotations

import time

import numpy as np
from mpi4py import MPI

from .operations import Call, Operation

__all__ = ["Barrier"]

TAG = 1
DELAY = 0.01  # seconds by which the validation lets a rank enter late, so that a rank that leaves too early is noticed
POLLS = 100


class Barrier(Operation):
    """A barrier, which has no buffers."""

    title, method, sized = "Barrier Latency", "Barrier", False
    blocks = ("none", "none")

    def arguments(self, root: int) -> tuple[object, ...]:
        """Return no arguments."""
        return ()

    def verify(self, comm: MPI.Intracomm, native: MPI.Intracomm, root: int) -> bool:
        """Check that no rank leaves the barrier before all have entered, even if the first or the last rank is late.

        The late rank sends a message to every other rank, waits until all have it (synchronous mode), and only then
        enters the barrier. A rank that leaves the barrier without the message left too early.

        :param comm: communicator under test.
        :param native: native communicator over the same ranks.
        :param root: ignored, because a barrier has no root.
        """
        call = self.bind(comm, root)
        outcomes = [self._waits_for(call, native, late) for late in sorted({0, self.ranks - 1})]
        self.release()
        return all(outcomes)

    def _waits_for(self, call: Call, native: MPI.Intracomm, late: int) -> bool:
        word = np.zeros(1, dtype=np.uint8)
        if self.rank == late:
            native.Barrier()
            time.sleep(DELAY)
            others = [rank for rank in range(self.ranks) if rank != late]
            MPI.Request.Waitall([native.Issend(word, dest=rank, tag=TAG) for rank in others])
            call()
            return True
        request = native.Irecv(word, source=late, tag=TAG)
        native.Barrier()
        call()
        in_time = any(request.Test() for _ in range(POLLS))
        request.Wait()
        return in_time
