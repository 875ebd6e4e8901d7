"""Roll calls: whether every rank can read its arguments of a call, before the ranks decide anything about it together.

Natively a rank whose arguments cannot be read raises, and the others may go on. Choosing and preparing are collective:
a rank that is absent there would keep the others waiting. So those who can read their arguments call the roll before a
class of calls is first chosen for, and in each call of a trial; those who cannot say so at once, without waiting, in
whatever call it is. Then the call is the MPI library's, on all ranks.
"""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np
from mpi4py import MPI

from .groups import ROLL_CALL, Groups

__all__ = ["RollCall"]


class RollCall:
    """The roll calls of one communicator.

    All of them go along the same ways, those of a dissemination barrier: in round k rank r tells r + 2^k what it knows.
    What an abstention says reaches every rank by these, since it goes out in all rounds.

    :param groups: the communicator's groups, with a context for messages.
    """

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._steps = [1 << number for number in range((groups.size - 1).bit_length())]
        self._behind = 0  # how much less this rank has counted than the one that has counted most
        self._under_way: list[MPI.Request] = []
        self._ahead: defaultdict[int, deque[tuple[int, bool]]] = defaultdict(deque)

    def hold(self, number: int) -> bool:
        """Whether all ranks can read their arguments of a call; waits for all.

        After calls that did not fit together, and were found out (``TOPOMPI_CHECK``), ranks may have counted
        differently. The greatest number holds: who hears of a greater one than its own says all again by that.

        :param number: the call's number, the same on all ranks and greater than those of earlier calls.
        Cost: log2(p) messages of 16 bytes a rank.
        """
        present, now = True, number + self._behind
        sent: list[MPI.Request] = []
        for place, step in enumerate(self._steps):
            sent.append(self._say(step, now, present))
            about, says = -1, False
            while about < now:  # what was said of calls for which nobody called the roll is past
                about, says = self._next_from((self._groups.rank - step) % self._groups.size)
            present = present and says
            if about > now:
                now = about
                sent += [self._say(earlier, now, present) for earlier in self._steps[: place + 1]]
        self._behind = now - number
        MPI.Request.Waitall(sent)
        return present

    def _say(self, step: int, number: int, present: bool) -> MPI.Request:
        comm, tag = self._groups.channel(ROLL_CALL)
        rank = (self._groups.rank + step) % self._groups.size
        return comm.Isend(np.array([number, present]), rank, tag)  # the request holds the message

    def _next_from(self, source: int) -> tuple[int, bool]:
        """The next message of a rank: number of a call, and whether the rank can read its arguments."""
        if self._ahead[source]:
            return self._ahead[source].popleft()
        comm, tag = self._groups.channel(ROLL_CALL)
        told = np.zeros(2, dtype=np.int64)
        comm.Recv(told, source, tag)
        return int(told[0]), bool(told[1])

    def abstain(self, number: int) -> None:
        """Say that this rank cannot read its arguments of a call; does not wait.

        :param number: the call's number.
        """
        self._under_way = [request for request in self._under_way if not request.Test()]
        self._under_way += [self._say(step, number + self._behind, False) for step in self._steps]
        self._tidy(number + self._behind)

    def _tidy(self, number: int) -> None:
        """Take in what was said of calls up to this one, so that it does not pile up; keep what is of later ones."""
        comm, tag = self._groups.channel(ROLL_CALL)
        for step in self._steps:
            source = (self._groups.rank - step) % self._groups.size
            while comm.Iprobe(source, tag):
                told = np.zeros(2, dtype=np.int64)
                comm.Recv(told, source, tag)
                if told[0] > number:
                    self._ahead[source].append((int(told[0]), bool(told[1])))
