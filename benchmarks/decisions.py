"""What a topompi communicator has decided: the one module here that looks into a communicator."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from topompi.selection.choice import Choice

__all__ = ["algorithm_of", "decided", "is_undecided"]


def is_undecided(comm: MPI.Comm) -> bool:
    """Whether trials of the calls made so far are under way; never for a communicator of the MPI library's own."""
    state = _state(comm)
    return state is not None and not state.only and bool(state.selector.trials)


def algorithm_of(comm: MPI.Comm, method: str, nbytes: int) -> str:
    """The algorithm that a topompi communicator chooses.

    :param comm: made by topompi.
    :param method: of the communicator, such as ``Alltoall``.
    :param nbytes: message size in bytes, counted as the selector counts it for this method.
    """
    state = _state(comm)
    return str((state.only or state.selector.choose(method, nbytes)).algorithm)  # on one host there is no choice


def decided(comm: MPI.Comm) -> dict[object, Choice]:
    """What was chosen so far, by what identifies a call."""
    return dict(_state(comm).selector.final)


def _state(comm: MPI.Comm) -> Any:
    return getattr(comm, "_state", None)
