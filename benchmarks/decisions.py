"""The decisions of a topompi communicator; the only benchmark module that reads a communicator's private state."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from topompi.mpi.communicator.handle import Handle
from topompi.mpi.communicator.state import state_of
from topompi.mpi.selection.choice import Choice

__all__ = ["decided", "is_undecided"]


def is_undecided(comm: MPI.Comm) -> bool:
    """Return whether trials of calls are under way; False for a communicator of the MPI library's own."""
    state = _state(comm)
    return state is not None and not state.only and bool(state.selector.trials)


def decided(comm: MPI.Comm) -> dict[object, Choice]:
    """Return the choices made so far, by the key of a call."""
    return dict(_state(comm).selector.final)


def _state(comm: MPI.Comm) -> Any:
    return state_of(comm) if isinstance(comm, Handle) else None
