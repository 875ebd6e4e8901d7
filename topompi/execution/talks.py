"""Words between the ranks of a communicator that decide together, in messages of ours from rank to rank.

They do not go by the library's collectives on the user's communicator: what is left there of a call that a rank refused
would meet them. Nor by those on a communicator of ours, which others may share.
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

QUESTIONS_HELD = 1024
NOTHING = [bytearray(), 0, MPI.BYTE]
LONGEST = 1e-3  # seconds that a rank sleeps between two looks
Answer = TypeVar("Answer")


class Talks:
    """The words of one communicator; all ranks take part in each, in the same order.

    :param rank: this rank.
    :param size: number of ranks.
    :param channel: called for the channel of the messages when there is one to send.
    """

    def __init__(self, rank: int, size: int, channel: Callable[[], Channel] | None = None) -> None:
        self.rank, self._size, self._channel = rank, size, channel
        # A binomial tree from rank 0: the children of a rank differ from it in a bit below its lowest one.
        lowest = rank & -rank or 1 << size.bit_length()
        self._children = [rank | 1 << bit for bit in range(lowest.bit_length() - 1) if rank | 1 << bit < size]

    def from_rank_0(self, work: Callable[[], Answer]) -> Answer:
        """Run ``work`` on rank 0, and return its result, or raise its error, on all ranks.

        The others sleep meanwhile: where ranks outnumber cores, ranks that poll would take rank 0's core from it.

        :param work: takes nothing; its result or error must be picklable.
        Cost: the pickled answer, log2(p) times one after the other.
        """
        return Answers().ask(self, lambda: None, work, lambda answer: False)

    def tell(self, said: bytes) -> bytes:
        """The bytes that rank 0 says, on all ranks.

        :param said: on rank 0; elsewhere anything.
        """
        if self.rank:
            said = self._hear(self.rank & (self.rank - 1))
        for child in reversed(self._children):  # the longest way first
            self._say(child, said)
        return said

    def meet(self) -> None:
        """Wait for all ranks, as in a barrier by dissemination: log2(p) empty messages one after the other."""
        step = 1
        while step < self._size:
            comm, tag = self._way()
            to, source = (self.rank + step) % self._size, (self.rank - step) % self._size
            comm.Sendrecv(NOTHING, to, tag, NOTHING, source, tag)
            step *= 2

    def largest(self, values: NDArray[Any]) -> NDArray[Any]:
        """Element by element the largest values of all ranks, on all of them.

        :param values: this rank's, of one shape and type on all ranks.
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
    """Rank 0's answers to questions that are asked again, on other communicators over the same ranks."""

    def __init__(self) -> None:
        self._told: dict[Hashable, bytes] = {}
        self._read: dict[bytes, Any] = {}

    def ask(
        self,
        talks: Talks,
        question: Callable[[], Hashable],
        work: Callable[[], Answer],
        lasts: Callable[[Answer], bool],
    ) -> Answer:
        """Rank 0's answer on all ranks; collective.

        Only rank 0 remembers: the others may have come here in another order.

        :param talks: the communicator's talks.
        :param question: called on rank 0 for what was asked, with all that the answer depends on.
        :param work: as ``Talks.from_rank_0`` takes it; an error is raised on all ranks.
        :param lasts: whether an answer is true of other communicators too.
        Cost: the pickled answer, log2(p) times one after the other.
        """
        asked = question() if talks.rank == 0 else None
        said = self._told.get(asked)
        if talks.rank == 0 and said is None:
            outcome: tuple[Answer | None, Exception | None]
            try:
                outcome = (work(), None)
            except Exception as error:  # whatever it is, the others wait for word of it
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


def _hold(held: dict[Any, Any], key: Any, value: Any) -> None:
    if len(held) >= QUESTIONS_HELD:
        held.clear()
    held[key] = value
