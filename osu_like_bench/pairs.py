"""Point-to-point benchmarks: between ranks 0 and 1, or between each rank of the first half and one of the second."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from .operations import Call, Contents, Operation
from .patterns import pattern

__all__ = ["PAIRS", "PairCall"]

TAG = 1
WINDOW = 64  # number of messages in flight in a benchmark of bandwidth, as in OSU


class PairCall(Operation):
    """A point-to-point operation between ranks 0 and 1, or between the halves of the ranks if ``pairs`` is True."""

    paired = True

    def __init__(self, rank: int, ranks: int, nbytes: int) -> None:
        super().__init__(rank, ranks, nbytes)
        half = ranks // 2 if self.pairs else 1
        self.leads = rank < half
        self.peer = rank + half if self.leads else rank - half


class Latency(PairCall):
    title, scale = "Latency", 0.5

    def bind(self, comm: MPI.Intracomm, root: int) -> Call:
        send, receive = self.spec(self.send), self.spec(self.receive)

        def ping() -> None:
            comm.Send(send, self.peer, TAG)
            comm.Recv(receive, self.peer, TAG)

        def pong() -> None:
            comm.Recv(receive, self.peer, TAG)
            comm.Send(send, self.peer, TAG)

        return ping if self.leads else pong

    def sent(self, root: int) -> Contents:
        return pattern(self.rank, self.peer, self.items)

    def expected(self, root: int) -> Contents:
        return pattern(self.peer, self.rank, self.items)


class MultiLatency(Latency):
    title, pairs = "Multi Latency", True


class Bandwidth(PairCall):
    """The benchmark of bandwidth: a call sends a window of messages in one direction, and then one short answer back.

    Each message of a window has a buffer of its own.
    """

    title, window = "Bandwidth", WINDOW
    blocks = ("window", "window")

    def __init__(self, rank: int, ranks: int, nbytes: int) -> None:
        super().__init__(rank, ranks, nbytes)
        self.sends, self.receives = self.leads or self.ways == 2, not self.leads or self.ways == 2

    @classmethod
    def rows(cls, kind: str, ranks: int) -> int:
        return cls.window or 0

    @classmethod
    def footprint(cls, ranks: int, nbytes: int) -> int:
        return nbytes * (cls.window or 0) * cls.ways  # pages of the other direction's buffer are never touched

    def bind(self, comm: MPI.Intracomm, root: int) -> Call:
        begin, answer = self.started(comm), np.zeros(4, dtype=np.uint8)

        def first() -> None:
            MPI.Request.Waitall(begin())
            comm.Recv(answer, self.peer, TAG)

        def second() -> None:
            MPI.Request.Waitall(begin())
            comm.Send(answer, self.peer, TAG)

        return first if self.leads else second

    def started(self, comm: MPI.Intracomm) -> Any:
        """Return a function that posts this rank's receives and sends, and returns their requests."""
        outgoing = [self.spec(row) for row in self.send] if self.sends else []
        incoming = [self.spec(row) for row in self.receive] if self.receives else []

        def begin() -> list[MPI.Request]:
            requests = [comm.Irecv(message, self.peer, TAG) for message in incoming]
            return requests + [comm.Isend(message, self.peer, TAG) for message in outgoing]

        return begin

    def sent(self, root: int) -> Contents:
        return self._windows(self.rank) if self.sends else None

    def expected(self, root: int) -> Contents:
        return self._windows(self.peer) if self.receives else None

    def _windows(self, source: int) -> NDArray[np.uint8]:
        return pattern(np.arange(self.window or 0), source, self.items)


class BiBandwidth(Bandwidth):
    title, ways = "Bi-Directional Bandwidth", 2


class MultiBandwidth(Bandwidth):
    title, pairs = "Multiple Bandwidth / Message Rate", True


class PersistentPair(Operation):
    """A point-to-point operation by persistent requests, which ``bind`` makes and each call starts."""

    def __init__(self, rank: int, ranks: int, nbytes: int) -> None:
        super().__init__(rank, ranks, nbytes)
        self.made: list[MPI.Prequest] = []

    def release(self) -> None:
        for request in self.made:
            request.Free()
        self.made.clear()


class PersistentLatency(PersistentPair, Latency):
    title = "Persistent Latency"

    def bind(self, comm: MPI.Intracomm, root: int) -> Call:
        send = comm.Send_init(self.spec(self.send), self.peer, TAG)
        receive = comm.Recv_init(self.spec(self.receive), self.peer, TAG)
        order = (send, receive) if self.leads else (receive, send)
        self.made += order

        def call() -> None:
            for request in order:
                request.Start()
                request.Wait()

        return call


class _PersistentWindows(PersistentPair, Bandwidth):
    """The benchmark of bandwidth with persistent requests: each call starts a window of messages."""

    def started(self, comm: MPI.Intracomm) -> Any:
        sends, receives = self.send if self.sends else (), self.receive if self.receives else ()
        requests = [comm.Recv_init(self.spec(row), self.peer, TAG) for row in receives]
        requests += [comm.Send_init(self.spec(row), self.peer, TAG) for row in sends]
        self.made += requests

        def begin() -> list[MPI.Prequest]:
            MPI.Prequest.Startall(requests)
            return requests

        return begin


class PersistentBandwidth(_PersistentWindows):
    title = "Persistent Bandwidth"


class PersistentBiBandwidth(_PersistentWindows, BiBandwidth):
    title = "Persistent Bi-Directional Bandwidth"


PAIRS: dict[str, type[Operation]] = {
    "latency": Latency,
    "bw": Bandwidth,
    "bibw": BiBandwidth,
    "multi_lat": MultiLatency,
    "mbw_mr": MultiBandwidth,
    "latency_persistent": PersistentLatency,
    "bw_persistent": PersistentBandwidth,
    "bibw_persistent": PersistentBiBandwidth,
}
