"""The benchmarks that are no collective with buffers: barrier, and point-to-point between ranks 0 and 1."""

from __future__ import annotations

import time

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from .operations import COLLECTIVES, Call, Contents, Operation
from .patterns import pattern

__all__ = ["OPERATIONS"]

TAG = 1
DELAY = 0.01  # seconds by which a rank is late when a barrier is put to the test
POLLS = 100


class Barrier(Operation):
    title, method, sized = "Barrier Latency", "Barrier", False
    blocks = ("none", "none")

    def arguments(self, root: int) -> tuple[object, ...]:
        return ()

    def verify(self, comm: MPI.Intracomm, native: MPI.Intracomm, root: int) -> bool:
        """Whether nobody leaves before the last has entered, for the first and the last rank being late.

        The late rank sends to all, waits until every receiver has the message (synchronous mode), and only
        then enters. Who leaves without the message left too early; a true barrier never fails this.
        """
        outcomes = [self._waits_for(comm, native, late) for late in sorted({0, self.ranks - 1})]
        return all(outcomes)

    def _waits_for(self, comm: MPI.Intracomm, native: MPI.Intracomm, late: int) -> bool:
        word = np.zeros(1, dtype=np.uint8)
        if self.rank == late:
            native.Barrier()
            time.sleep(DELAY)
            others = [rank for rank in range(self.ranks) if rank != late]
            MPI.Request.Waitall([native.Issend(word, dest=rank, tag=TAG) for rank in others])
            comm.Barrier()
            return True
        request = native.Irecv(word, source=late, tag=TAG)
        native.Barrier()
        comm.Barrier()
        in_time = any(request.Test() for _ in range(POLLS))
        request.Wait()
        return in_time


class Pair(Operation):
    """Point-to-point between ranks 0 and 1."""

    paired = True

    def __init__(self, rank: int, ranks: int, nbytes: int) -> None:
        super().__init__(rank, ranks, nbytes)
        self.peer = 1 - rank


class Latency(Pair):
    title, scale = "Latency", 0.5

    def bind(self, comm: MPI.Intracomm, root: int) -> Call:
        send, receive = self.spec(self.send), self.spec(self.receive)

        def ping() -> None:
            comm.Send(send, self.peer, TAG)
            comm.Recv(receive, self.peer, TAG)

        def pong() -> None:
            comm.Recv(receive, self.peer, TAG)
            comm.Send(send, self.peer, TAG)

        return ping if self.rank == 0 else pong

    def sent(self, root: int) -> Contents:
        return pattern(self.rank, self.peer, self.items)

    def expected(self, root: int) -> Contents:
        return pattern(self.peer, self.rank, self.items)


class Bandwidth(Pair):
    """A window of messages one way, each with a buffer of its own, then one short answer."""

    title, window = "Bandwidth", 64
    blocks = ("window", "window")

    @classmethod
    def rows(cls, kind: str, ranks: int) -> int:
        return cls.window

    @classmethod
    def footprint(cls, ranks: int, nbytes: int) -> int:
        return nbytes * cls.window  # ranks send or receive; the other buffer is never touched

    def bind(self, comm: MPI.Intracomm, root: int) -> Call:
        answer = np.zeros(4, dtype=np.uint8)
        outgoing, incoming = ([self.spec(row) for row in buffer] for buffer in (self.send, self.receive))

        def source() -> None:
            MPI.Request.Waitall([comm.Isend(message, self.peer, TAG) for message in outgoing])
            comm.Recv(answer, self.peer, TAG)

        def sink() -> None:
            MPI.Request.Waitall([comm.Irecv(message, self.peer, TAG) for message in incoming])
            comm.Send(answer, self.peer, TAG)

        return source if self.rank == 0 else sink

    def sent(self, root: int) -> Contents:
        return self._windows() if self.rank == 0 else None

    def expected(self, root: int) -> Contents:
        return self._windows() if self.rank == 1 else None

    def _windows(self) -> NDArray[np.uint8]:
        return pattern(np.arange(self.window), 0, self.items)


OPERATIONS: dict[str, type[Operation]] = {
    **COLLECTIVES,
    "barrier": Barrier,
    "latency": Latency,
    "bw": Bandwidth,
}
