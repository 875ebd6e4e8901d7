"""The instrument of MPI: round trips of a byte, and streams, between the first ranks of hosts.

Hosts of an emulated network share processors, and a round trip between two ranks on one processor takes longer by as
much as one more switch would add. So the two ranks of a pair run on different processors; these change from pair to
pair, as one of them may have other work. Between hosts with processors of their own this makes no difference.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from mpi4py import MPI

from .levels import FloatArray
from .meeting import Meeting
from .polling import awake, sleeps
from .tournament import Round

__all__ = ["MPIInstrument", "own_processor"]

SMALLEST, LARGEST = 1 << 14, 1 << 22  # bytes of a message of a stream
LONG = 1e-3  # seconds; a message that takes less is followed by one of twice its size


class MPIInstrument:
    """Measures between the ranks of a communicator; all of them make the same calls.

    :param comm: one rank a host.
    :param seconds: after which nothing more is begun.
    """

    def __init__(self, comm: MPI.Intracomm, seconds: float) -> None:
        self._comm, self._seconds = comm, seconds
        self._meeting = Meeting(comm)
        self._elapsed = 0.0
        self._made = self._slept = 0
        self._out, self._in = np.zeros(LARGEST, np.uint8), np.zeros(LARGEST, np.uint8)
        self._together()

    def free(self) -> None:
        """Free what MPI holds for it. Not collective."""
        self._meeting.free()

    def slept(self) -> float:
        """How often a rank slept in each of its round trips, of the rank that slept most. Collective."""
        most: float = self._comm.allreduce(self._slept / max(self._made, 1), MPI.MAX)
        return most

    def left(self) -> float:
        """Seconds that are left, as all ranks know since they last measured."""
        return self._seconds - self._elapsed

    def round_trips(self, rounds: Sequence[Round], trips: int) -> FloatArray:
        """Seconds of each pair's shortest round trip, round by round; inf where no time was left.

        :param rounds: disjoint pairs each.
        :param trips: of each pair.
        """
        found, place = np.full(sum(map(len, rounds)), np.inf), 0
        for pairs in rounds:
            if self.left() <= 0:
                break
            number, peer, leads = self._mine(pairs)
            if peer >= 0:
                with own_processor(place + number, leads), awake():
                    found[place + number] = self._trips(peer, leads, trips)
            place += len(pairs)
            self._together()
        self._comm.Allreduce(MPI.IN_PLACE, found, MPI.MIN)
        return found

    def streams(self, pairs: Round, seconds: float) -> FloatArray:
        """Bytes/s each way of each pair, all pairs at once; 0 where no time was left.

        :param pairs: disjoint.
        :param seconds: that each pair sends.
        """
        found = np.zeros(len(pairs))
        if self.left() > seconds:
            number, peer, leads = self._mine(pairs)
            if peer >= 0:
                found[number] = self._stream(peer, leads, seconds)
            self._together()
        self._comm.Allreduce(MPI.IN_PLACE, found, MPI.MAX)
        return found

    def _mine(self, pairs: Round) -> tuple[int, int, bool]:
        """Which of the pairs this rank is in, its peer (-1 if it is in none), and whether it leads."""
        rank = self._comm.rank
        for number, (first, second) in enumerate(pairs):
            if rank in (first, second):
                return number, first + second - rank, rank == first
        return -1, -1, False

    def _together(self) -> None:
        """Wait for all."""
        self._elapsed = self._meeting.meet()

    def _trips(self, peer: int, leads: bool, trips: int) -> float:
        """Seconds of the shortest of some round trips, after one that does not count; inf on the rank that answers."""
        message, clock, shortest = bytearray(1), time.perf_counter, np.inf
        send, receive = self._comm.Send_init(message, peer), self._comm.Recv_init(message, peer)
        slept = 0
        for trip in range(trips + 1):
            if trip == 1:  # until then the peer may not have come
                slept = sleeps()
            begin = clock()
            for request in (send, receive) if leads else (receive, send):
                request.Start()
                request.Wait()
            if trip and leads:
                shortest = min(shortest, clock() - begin)
        self._made += trips
        self._slept += sleeps() - slept
        send.Free()
        receive.Free()
        return float(shortest)

    def _stream(self, peer: int, leads: bool, seconds: float) -> float:
        """Bytes/s each way; the first 8 bytes of the leader's message say how long the next one is, 0 for none."""
        size, nbytes, begin = SMALLEST, 0, 0.0
        ahead, told = self._out.view(np.int64), self._in.view(np.int64)
        last = time.perf_counter()
        while size:
            now = time.perf_counter()
            larger = size < LARGEST and now - last < LONG
            ahead[0] = 0 if begin and now - begin > seconds else size << larger
            last = now
            self._comm.Sendrecv(self._out[:size], peer, 0, self._in[:size], peer, 0)
            nbytes += size if begin else 0
            begin = begin or time.perf_counter()  # the first message finds buckets full and windows small
            size = int(ahead[0] if leads else told[0])
        return nbytes / (time.perf_counter() - begin)


@contextmanager
def own_processor(number: int, leads: bool) -> Iterator[None]:
    """Keep this thread on one of its processors, and not on that of the peer where both have the same processors.

    :param number: of the pair, by which the processor is chosen.
    :param leads: whether the rank leads the pair.
    """
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if not allowed:  # macOS and Windows
        yield
        return
    os.sched_setaffinity(0, {allowed[(number + (0 if leads else len(allowed) // 2)) % len(allowed)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
