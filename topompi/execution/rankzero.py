"""Work that rank 0 does for all ranks."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from time import sleep
from typing import Any, TypeVar

from mpi4py import MPI

from ..errors import TopompiError

__all__ = ["Answers", "from_rank_0", "tellable"]

LONGEST = 1e-3  # seconds that a rank sleeps between two looks
ROOM = 512  # bytes of an answer that is told at once
LENGTH = 2  # bytes of them for its length
QUESTIONS_HELD = 1024
Answer = TypeVar("Answer")


def from_rank_0(plain: MPI.Intracomm, work: Callable[[], Answer]) -> Answer:
    """Run ``work`` on rank 0, and return its result, or raise its error, on all ranks; collective.

    The others sleep meanwhile: where ranks outnumber cores, ranks that poll would take rank 0's core from it.

    :param plain: a communicator of the MPI library's own kind.
    :param work: takes nothing; its result or error must be picklable.
    Cost: one barrier, one broadcast of the answer.
    """
    said: tuple[Answer | None, Exception | None] = (None, None)
    if plain.Get_rank() == 0:
        try:
            said = (work(), None)
        except Exception as error:  # whatever it is, the others wait for word of it
            said = (None, tellable(error))
    _await_all(plain)
    answer: Answer
    answer, failure = plain.bcast(said)
    if failure is not None:
        raise failure
    return answer


def tellable(error: Exception) -> Exception:
    """The error itself, or one with the same message where the error cannot be pickled, as when it holds a file."""
    try:
        MPI.pickle.loads(MPI.pickle.dumps(error))
    except Exception:  # pickle raises whatever the object does
        return TopompiError(f"{type(error).__name__}: {error}")
    return error


def _await_all(plain: MPI.Intracomm) -> None:
    """A barrier in which ranks sleep, for longer the longer it lasts."""
    if plain.Get_size() == 1:
        return
    arrived, pause = plain.Ibarrier(), 0.0
    while not arrived.Test():
        sleep(pause)
        pause = min(2 * pause + 1e-5, LONGEST)


class Answers:
    """Rank 0's answers to questions that are asked again, on other communicators over the same ranks."""

    def __init__(self) -> None:
        self._told: dict[Hashable, bytes] = {}
        self._read: dict[bytes, Any] = {}

    def ask(
        self,
        plain: MPI.Intracomm,
        question: Callable[[], Hashable],
        work: Callable[[], Answer],
        lasts: Callable[[Answer], bool],
    ) -> Answer:
        """Rank 0's answer on all ranks; collective.

        Only rank 0 remembers: whether it does is told to the others, which may have come here in another order.

        :param plain: a communicator of the MPI library's own kind.
        :param question: called on rank 0 for what was asked, with all that the answer depends on.
        :param work: as ``from_rank_0`` takes it.
        :param lasts: whether an answer is true of other communicators too.
        Cost: one broadcast of ``ROOM`` bytes; the first time that of ``from_rank_0`` as well.
        """
        message, asked = bytearray(ROOM), question() if plain.Get_rank() == 0 else None
        known = self._told.get(asked, b"")
        message[: len(known)] = known
        plain.Bcast([message, ROOM, MPI.BYTE])
        if length := int.from_bytes(message[:LENGTH], "little"):
            answer: Answer = self._unpacked(bytes(message[LENGTH : LENGTH + length]))
            return answer
        answer = from_rank_0(plain, work)
        if plain.Get_rank() == 0 and lasts(answer):
            self._keep(asked, MPI.pickle.dumps(answer))
        return answer

    def _keep(self, asked: Hashable, packed: bytes) -> None:
        if len(packed) > ROOM - LENGTH:
            return
        if len(self._told) >= QUESTIONS_HELD:
            self._told.clear()
        self._told[asked] = len(packed).to_bytes(LENGTH, "little") + packed

    def _unpacked(self, packed: bytes) -> Any:
        answer = self._read.get(packed)
        if answer is None:
            if len(self._read) >= QUESTIONS_HELD:
                self._read.clear()
            answer = self._read[packed] = MPI.pickle.loads(packed)
        return answer
