"""The decisions of a topompi communicator; the only benchmark module that reads a communicator's private state."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from topompi.communicator.handle import Handle
from topompi.communicator.state import state_of
from topompi.selection.choice import Choice

__all__ = ["algorithm_of", "decided", "is_undecided"]


def is_undecided(comm: MPI.Comm) -> bool:
    """Return whether trials of calls are under way; False for a communicator of the MPI library's own."""
    state = _state(comm)
    return state is not None and not state.only and bool(state.selector.trials)


def algorithm_of(comm: MPI.Comm, method: str, nbytes: int) -> str:
    """Return the algorithm that a topompi communicator chooses.

    :param comm: a communicator made by topompi.
    :param method: name of the method, for example ``Alltoall``.
    :param nbytes: message size in bytes, counted as the selector counts it for this method.
    """
    state = _state(comm)
    return str((state.only or state.selector.choose(method, nbytes)).algorithm)  # on one host there is no selector


def decided(comm: MPI.Comm) -> dict[object, Choice]:
    """Return the choices made so far, by the key of a call."""
    return dict(_state(comm).selector.final)


def _state(comm: MPI.Comm) -> Any:
    return state_of(comm) if isinstance(comm, Handle) else None
