"""What a topompi communicator has decided: the one module here that looks into a communicator."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

__all__ = ["algorithm_of", "decided", "is_undecided"]


def is_undecided(comm: MPI.Comm) -> bool:
    """Whether trials of the calls made so far are under way; never for a communicator of the MPI library's own."""
    levels = _levels(comm)
    return levels is not None and not levels.only and bool(levels.selector.trying)


def algorithm_of(comm: MPI.Comm, method: str, nbytes: int) -> str:
    """The algorithm that a topompi communicator chooses.

    :param comm: made by topompi.
    :param method: of the communicator, such as ``Alltoall``.
    :param nbytes: message size in bytes, counted as the selector counts it for this method.
    """
    levels = _levels(comm)
    return str((levels.only or levels.selector.choose(method, nbytes)).algorithm)  # on one host there is no choice


def decided(comm: MPI.Comm) -> dict[object, str]:
    """The algorithms chosen so far, by what identifies a call."""
    return {key: str(choice.algorithm) for key, choice in _levels(comm).selector.settled.items()}


def _levels(comm: MPI.Comm) -> Any:
    return getattr(comm, "_levels", None)
