"""Work that rank 0 does for all ranks of a communicator from which topompi has made no sub-communicator yet."""

from __future__ import annotations

from collections.abc import Callable
from time import sleep
from typing import TypeVar

from mpi4py import MPI

from ...errors import TopompiError

__all__ = ["from_rank_0", "tellable"]

LONGEST = 1e-3  # maximum seconds that a rank sleeps between two tests, so that it sees the arrival soon
Answer = TypeVar("Answer")


def from_rank_0(plain: MPI.Intracomm, work: Callable[[], Answer]) -> Answer:
    """Run ``work`` on rank 0, and return its result, or raise its error, on all ranks; collective.

    The other ranks sleep meanwhile: on a machine with more ranks than cores, polling ranks would take rank 0's core.

    :param plain: an instance of mpi4py's own communicator class.
    :param work: function without parameters, whose result or error must be picklable.

    Cost: one barrier, one broadcast of the answer.
    """
    said: tuple[Answer | None, Exception | None] = (None, None)
    if plain.Get_rank() == 0:
        try:
            said = (work(), None)
        except Exception as error:  # any error, because the other ranks wait for the answer
            said = (None, tellable(error))
    _await_all(plain)
    answer: Answer
    answer, failure = plain.bcast(said)
    if failure is not None:
        raise failure
    return answer


def tellable(error: Exception) -> Exception:
    """The error, or a TopompiError with its message if pickle refuses it, for example because of an open file."""
    try:
        MPI.pickle.loads(MPI.pickle.dumps(error))
    except Exception:  # pickle calls the object's own code, which may raise anything
        return TopompiError(f"{type(error).__name__}: {error}")
    return error


def _await_all(plain: MPI.Intracomm) -> None:
    """A barrier in which ranks sleep between tests; each pause is longer than the last, up to ``LONGEST``."""
    if plain.Get_size() == 1:
        return
    arrived, pause = plain.Ibarrier(), 0.0
    while not arrived.Test():
        sleep(pause)
        pause = min(2 * pause + 1e-5, LONGEST)
