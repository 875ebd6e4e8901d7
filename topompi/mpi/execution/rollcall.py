"""Roll calls, by which ranks learn whether all of them can read their arguments, before they decide anything together.

In a call of the MPI library, a rank whose arguments cannot be read raises an error, and the other ranks may go on. In
topompi all ranks choose and prepare an algorithm together, and would wait for that rank. Therefore the ranks that can
read their arguments hold a roll call before the first choice for a class of calls (method, size class, needs of the
operation), and in each call of a trial, which compares algorithms during the job. A rank that cannot read its arguments
tells the others so in every call, without waiting for them: it abstains. If one rank abstains, the MPI library runs the
call on all ranks.
"""

from __future__ import annotations

from collections import defaultdict, deque
from contextlib import suppress
from threading import Lock

import numpy as np
from mpi4py import MPI

from .contexts import Channel, Context
from .groups import ROLL_CALL, Groups
from .program import wait_all

__all__ = ["RollCall", "settle"]

END = np.iinfo(np.int64).max  # number of the last message, which belongs to no call


class RollCall:
    """The roll calls of one communicator.

    Messages follow a dissemination barrier of p ranks: in round k rank r tells rank r + 2^k (modulo p) whether any rank
    that it knows of abstains. A rank that abstains sends its messages of all rounds at once.

    :param groups: the communicator's groups, with a communicator for messages of plans.
    """

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._steps = [1 << number for number in range((groups.size - 1).bit_length())]
        self._behind = 0  # by how much the highest number that any rank has for a call exceeds this rank's number
        self._under_way: list[MPI.Request] = []
        self._ahead: defaultdict[int, deque[tuple[int, bool]]] = defaultdict(deque)

    def hold(self, number: int) -> bool:
        """Hold a roll call, which waits for all ranks; return True if all ranks can read their arguments of a call.

        The ranks' numbers of a call differ if ``TOPOMPI_CHECK`` has found mismatched calls before. The highest number
        is valid: a rank that receives a higher number than its own repeats its messages with that number.

        :param number: number of the call, on this rank greater than that of any earlier call.

        Cost: log2(p) messages of 16 bytes per rank, for p ranks.
        """
        sent: list[MPI.Request] = []
        try:
            present, now = self._exchange(number + self._behind, sent)
            wait_all(sent)
        except MPI.Exception:  # a request that Python frees here ends the job if its message fails later
            self._under_way += sent
            raise
        self._behind = now - number
        return present

    def _exchange(self, now: int, sent: list[MPI.Request]) -> tuple[bool, int]:
        """Exchange the numbers of a call; return whether all ranks can read their arguments, and the highest number.

        :param now: number of the call on this rank.
        :param sent: list that receives the requests of this rank's messages.
        """
        present = True
        for place, step in enumerate(self._steps):
            sent.append(self._say(step, now, present))
            about, says = -1, False
            while about < now:  # skip abstentions from earlier calls, in which no roll call was held
                about, says = self._next_from((self._groups.rank - step) % self._groups.size)
            present = present and says
            if about > now:
                now = about
                sent += [self._say(earlier, now, present) for earlier in self._steps[: place + 1]]
        return present, now

    def _say(self, step: int, number: int, present: bool) -> MPI.Request:
        comm, tag = self._groups.channel(ROLL_CALL)
        rank = (self._groups.rank + step) % self._groups.size
        return comm.Isend(np.array([number, present]), rank, tag)  # the request keeps the array alive

    def _next_from(self, source: int) -> tuple[int, bool]:
        """The next message of a rank: the number of a call, and whether the rank can read its arguments."""
        if self._ahead[source]:
            return self._ahead[source].popleft()
        comm, tag = self._groups.channel(ROLL_CALL)
        told = np.zeros(2, dtype=np.int64)
        comm.Recv(told, source, tag)
        return int(told[0]), bool(told[1])

    def abstain(self, number: int) -> None:
        """Tell the other ranks that this rank cannot read its arguments of a call; does not wait.

        :param number: number of the call.
        """
        self._under_way = [request for request in self._under_way if not request.Test()]
        self._under_way += [self._say(step, number + self._behind, False) for step in self._steps]
        self._tidy(number + self._behind)

    def _tidy(self, number: int) -> None:
        """Receive the pending messages; keep only the messages about calls after ``number``."""
        comm, tag = self._groups.channel(ROLL_CALL)
        for step in self._steps:
            source = (self._groups.rank - step) % self._groups.size
            while comm.Iprobe(source, tag):
                told = np.zeros(2, dtype=np.int64)
                comm.Recv(told, source, tag)
                if told[0] > number:
                    self._ahead[source].append((int(told[0]), bool(told[1])))

    def end(self) -> None:
        """Tell the other ranks that no abstention follows, before the communicator is freed; does not wait.

        The communicator of the messages lasts until this rank has received the other ranks' ends. A message that
        arrives after that would be taken for one of the next communicator to which Open MPI gives the number of the
        freed one, and end the job or hang it. Waiting for the ends here would hang ranks that free their communicators
        in different orders, or if one rank frees none after an error; the MPI libraries free without waiting.

        Cost: log2(p) messages of 16 bytes per rank, for p ranks.
        """
        sent = self._under_way
        for step in self._steps:
            with suppress(MPI.Exception):  # the communicator may be revoked, or another rank may have failed
                sent.append(self._say(step, END, False))
        sources = {(self._groups.rank - step) % self._groups.size for step in self._steps}
        _ends.append(_End(self._groups.held(0), self._groups.channel(ROLL_CALL), sources, sent))
        settle()


class _End:
    """The messages of an ended roll call that are still to be sent or received.

    :param held: holder of the communicator.
    :param channel: the communicator and the tag.
    :param sources: ranks whose last message has not been received.
    :param sent: requests of this rank's messages.
    """

    def __init__(self, held: Context, channel: Channel, sources: set[int], sent: list[MPI.Request]) -> None:
        self._held, self._channel, self._sources, self._sent = held, channel, sources, sent

    def settle(self) -> bool:
        """Receive what has arrived; free the communicator and return True if nothing is left to be sent or received."""
        done = True
        with suppress(MPI.Exception):  # the communicator may be revoked
            self._receive()
            done = not self._sources and all(request.Test() for request in self._sent)
        if done:
            self._held.free()
        return done

    def _receive(self) -> None:
        comm, tag = self._channel
        told = np.zeros(2, dtype=np.int64)
        for source in [*self._sources]:
            while source in self._sources and comm.Iprobe(source, tag):
                comm.Recv(told, source, tag)
                if told[0] == END:
                    self._sources.remove(source)


_ends: list[_End] = []
_settling = Lock()


def settle() -> None:
    """Free the communicators of ended roll calls whose messages have all arrived; does not wait."""
    if _settling.acquire(blocking=False):  # else another thread does this
        try:
            for one in [*_ends]:  # another thread may append
                if one.settle():
                    _ends.remove(one)
        finally:
            _settling.release()
