"""The instrument that measures by MPI: round trips of a byte, and streams, between the first ranks of hosts.

Hosts of an emulated network share processors, and a round trip between two ranks on the same processor takes longer by
as much as a further switch would add. Therefore the two ranks of a pair run on different processors. These change from
pair to pair, because one processor may have other work. If hosts have processors of their own, this has no effect.
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

SMALLEST, LARGEST = 1 << 14, 1 << 22  # bytes: first and largest size of a stream's messages
LONG = 1e-3  # seconds; after a message that took less, the next one is twice as large


class MPIInstrument:
    """The instrument between the ranks of a communicator, all of which make the same calls.

    :param comm: communicator with one rank per host.
    :param seconds: seconds after which no further measurement begins.
    """

    def __init__(self, comm: MPI.Intracomm, seconds: float) -> None:
        self._comm, self._seconds = comm, seconds
        self._meeting = Meeting(comm)
        self._elapsed = 0.0
        self._made = self._slept = 0
        self._out, self._in = np.zeros(LARGEST, np.uint8), np.zeros(LARGEST, np.uint8)
        self._together()

    def free(self) -> None:
        """Free the instrument's MPI requests. Not collective."""
        self._meeting.free()

    def slept(self) -> float:
        """The number of sleeps per round trip on the rank with most sleeps. Collective."""
        most: float = self._comm.allreduce(self._slept / max(self._made, 1), MPI.MAX)
        return most

    def left(self) -> float:
        """Seconds left for measurements, counted at the end of the latest one; the same on all ranks."""
        return self._seconds - self._elapsed

    def round_trips(self, rounds: Sequence[Round], trips: int) -> FloatArray:
        """Seconds of each pair's shortest round trip, round by round; inf for a pair for which no time was left.

        :param rounds: rounds of disjoint pairs.
        :param trips: number of round trips per pair.
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
        """Rate of each pair in bytes/s in each direction, all pairs sending at once; 0 if no time was left.

        :param pairs: disjoint pairs.
        :param seconds: seconds for which each pair sends.
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
        """The number of this rank's pair, its peer (both -1 if it is in no pair), and whether it leads the pair."""
        rank = self._comm.rank
        for number, (first, second) in enumerate(pairs):
            if rank in (first, second):
                return number, first + second - rank, rank == first
        return -1, -1, False

    def _together(self) -> None:
        """Wait for all ranks, and note the time."""
        self._elapsed = self._meeting.meet()

    def _trips(self, peer: int, leads: bool, trips: int) -> float:
        """Make one untimed and ``trips`` timed round trips; return the seconds of the shortest.

        :param peer: the other rank of the pair.
        :param leads: True if this rank sends first and measures; if not, it answers, and the result is inf.
        :param trips: number of timed round trips.
        """
        message, clock, shortest = bytearray(1), time.perf_counter, np.inf
        send, receive = self._comm.Send_init(message, peer), self._comm.Recv_init(message, peer)
        slept = 0
        for trip in range(trips + 1):
            if trip == 1:  # counting begins with the second trip: the peer may be late for the first one
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
        """Exchange messages with another rank for some time; return the rate in bytes/s per direction.

        The sizes grow until one message takes long enough. The leader's message begins with the size in bytes of the
        next one, or with 0 if it is the last one.

        :param peer: the other rank of the pair.
        :param leads: True if this rank decides the sizes.
        :param seconds: seconds for which messages are exchanged.
        """
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
            begin = begin or time.perf_counter()  # not the first message: a rate limiter may let it pass at full speed
            size = int(ahead[0] if leads else told[0])
        return nbytes / (time.perf_counter() - begin)


@contextmanager
def own_processor(number: int, leads: bool) -> Iterator[None]:
    """Pin this thread to one of its processors; the two ranks of a pair with the same processors get different ones.

    :param number: number of the pair, which selects the processor.
    :param leads: True if this rank leads the pair.
    """
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if not allowed:  # macOS and Windows lack the call
        yield
        return
    os.sched_setaffinity(0, {allowed[(number + (0 if leads else len(allowed) // 2)) % len(allowed)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
