"""Messages by which the ranks of a communicator decide together, sent from rank to rank.

The MPI library's collectives are not used for this. On the user's communicator they could match messages left over by a
call that failed on one rank. On a communicator of topompi they could match collectives of another user communicator,
because several may share it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from time import sleep
from typing import Any, TypeVar

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from .contexts import Channel
from .rankzero import tellable

__all__ = ["Answers", "Talks"]

QUESTIONS_HELD = 1024  # maximum number of kept answers; a full store is emptied
NOTHING = [bytearray(), 0, MPI.BYTE]
LONGEST = 1e-3  # maximum seconds that a rank sleeps between two tests, so that it sees a message soon
Answer = TypeVar("Answer")
Key = TypeVar("Key")
Value = TypeVar("Value")


class Talks:
    """Exchanges by which one communicator's ranks decide together; all ranks take part in each, in the same order.

    :param rank: this rank.
    :param size: number of ranks.
    :param channel: function that returns the messages' channel (communicator and tag), called at each message; None if
        there is only one rank.
    """

    def __init__(self, rank: int, size: int, channel: Callable[[], Channel] | None = None) -> None:
        self.rank, self._size, self._channel = rank, size, channel
        # Binomial tree from rank 0: a child's number differs from its parent's in one bit, below the parent's lowest
        # set bit.
        lowest = rank & -rank or 1 << size.bit_length()
        self._children = [rank | 1 << bit for bit in range(lowest.bit_length() - 1) if rank | 1 << bit < size]

    def from_rank_0(self, work: Callable[[], Answer]) -> Answer:
        """Run ``work`` on rank 0, and return its result, or raise its error, on all ranks; collective.

        The other ranks sleep meanwhile: with more ranks than cores, polling ranks would take rank 0's core.

        :param work: function without parameters, whose result or error must be picklable.

        Cost: log2(p) messages, one after the other, with the pickled answer.
        """
        return Answers().ask(self, lambda: None, work, lambda answer: False)

    def tell(self, said: bytes) -> bytes:
        """Broadcast rank 0's bytes along a binomial tree, and return them on all ranks; collective.

        :param said: the bytes on rank 0; ignored on the other ranks.
        """
        if self.rank:
            said = self._hear(self.rank & (self.rank - 1))
        for child in reversed(self._children):  # the child with the deepest subtree first
            self._say(child, said)
        return said

    def meet(self) -> None:
        """Wait for all ranks by a dissemination barrier: log2(p) empty messages per rank, one after the other."""
        step = 1
        while step < self._size:
            comm, tag = self._way()
            to, source = (self.rank + step) % self._size, (self.rank - step) % self._size
            comm.Sendrecv(NOTHING, to, tag, NOTHING, source, tag)
            step *= 2

    def largest(self, values: NDArray[Any]) -> NDArray[Any]:
        """The element-wise maximum of all ranks' values, on all ranks; collective.

        :param values: this rank's array, of the same shape and type on all ranks.
        """
        most = np.array(values)
        for child in self._children:
            np.maximum(most, np.frombuffer(self._hear(child), most.dtype).reshape(most.shape), out=most)
        if self.rank:
            self._say(self.rank & (self.rank - 1), most.tobytes())
        return np.frombuffer(self.tell(most.tobytes()), most.dtype).reshape(most.shape)

    def _say(self, rank: int, words: bytes) -> None:
        comm, tag = self._way()
        comm.Send([words, MPI.BYTE], rank, tag)

    def _hear(self, rank: int) -> bytes:
        (comm, tag), status, pause = self._way(), MPI.Status(), 0.0
        while (message := comm.Improbe(rank, tag, status)) is None:
            sleep(pause)
            pause = min(2 * pause + 1e-5, LONGEST)
        words = bytearray(status.Get_count(MPI.BYTE))
        message.Recv([words, MPI.BYTE])
        return bytes(words)

    def _way(self) -> Channel:
        if self._channel is None:
            raise RuntimeError("expecting a channel between ranks, got none")
        return self._channel()


class Answers:
    """Results that rank 0 computed for all ranks, kept for communicators that need the same results later."""

    def __init__(self) -> None:
        self._told: dict[Hashable, bytes] = {}
        self._read: dict[bytes, tuple[Any, Exception | None]] = {}

    def ask(
        self,
        talks: Talks,
        question: Callable[[], Hashable],
        work: Callable[[], Answer],
        lasts: Callable[[Answer], bool],
    ) -> Answer:
        """Rank 0's answer to a question, kept or newly computed, on all ranks; collective.

        Only rank 0 looks for a kept answer, because the other ranks may have made their communicators in another order.

        :param talks: the exchanges of the communicator.
        :param question: function that returns, on rank 0, a key with everything on which the answer depends.
        :param work: function that computes the answer on rank 0; its error is raised on all ranks.
        :param lasts: function of an answer; True if the answer is valid for other communicators, too, and is kept.

        Cost: log2(p) messages, one after the other, with the pickled answer.
        """
        asked = question() if talks.rank == 0 else None
        said = self._told.get(asked)
        if talks.rank == 0 and said is None:
            outcome: tuple[Answer | None, Exception | None]
            try:
                outcome = (work(), None)
            except Exception as error:  # any error, because the other ranks wait for the answer
                outcome = (None, tellable(error))
            said = MPI.pickle.dumps(outcome)
            if outcome[0] is not None and lasts(outcome[0]):
                _hold(self._told, asked, said)
        said = talks.tell(said or b"")
        read = self._read.get(said)
        if read is None:
            read = MPI.pickle.loads(said)
            _hold(self._read, said, read)
        answer: Answer
        answer, failure = read
        if failure is not None:
            raise failure
        return answer


def _hold(held: dict[Key, Value], key: Key, value: Value) -> None:
    if len(held) >= QUESTIONS_HELD:
        held.clear()
    held[key] = value
