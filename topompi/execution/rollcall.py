"""Roll calls: whether every rank can read its arguments of a call, before the ranks decide anything about it together.

Natively a rank whose arguments cannot be read raises, and the others may go on. Choosing and preparing are collective:
a rank that is absent there would keep the others waiting. So those who can read their arguments call the roll before a
class of calls is first chosen for, and in each call of a trial; those who cannot say so at once, without waiting, in
whatever call it is. Then the call is the MPI library's, on all ranks.
"""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from .groups import ROLL_CALL, Groups

__all__ = ["RollCall"]


class RollCall:
    """The roll calls of one communicator.

    All of them go along the same ways, those of a dissemination barrier: in round k rank r tells r + 2^k what it knows.
    What an abstention says reaches every rank by these, since it goes out in all rounds.

    :param groups: of the communicator, with a context for messages.
    """

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._steps = [1 << number for number in range((groups.size - 1).bit_length())]
        self._under_way: list[tuple[MPI.Request, NDArray[np.int64]]] = []

    def hold(self, number: int) -> bool:
        """Whether all ranks can read their arguments of a call; waits for all.

        :param number: of the call, the same on all ranks and greater than those of earlier calls.
        Cost: log2(p) messages of 16 bytes a rank.
        """
        (comm, tag), rank, size = self._groups.channel(ROLL_CALL), self._groups.rank, self._groups.size
        present = True
        told = np.zeros(2, dtype=np.int64)
        for step in self._steps:
            sent = comm.Isend(np.array([number, present]), (rank + step) % size, tag)
            told[0] = -1
            while told[0] < number:  # what was said of calls for which nobody called the roll is past
                comm.Recv(told, (rank - step) % size, tag)
            present = present and told[0] == number and bool(told[1])
            sent.Wait()
        return present

    def abstain(self, number: int) -> None:
        """Say that this rank cannot read its arguments of a call; does not wait.

        :param number: of the call.
        """
        (comm, tag), rank, size = self._groups.channel(ROLL_CALL), self._groups.rank, self._groups.size
        said = np.array([number, False])
        self._under_way = [pair for pair in self._under_way if not pair[0].Test()]
        self._under_way += [(comm.Isend(said, (rank + step) % size, tag), said) for step in self._steps]
