"""Work that rank 0 does for all ranks of a communicator for which nothing of ours is made yet."""

from __future__ import annotations

from collections.abc import Callable
from time import sleep
from typing import TypeVar

from mpi4py import MPI

from ..errors import TopompiError

__all__ = ["from_rank_0", "tellable"]

LONGEST = 1e-3  # seconds that a rank sleeps between two looks
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
