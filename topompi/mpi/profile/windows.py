"""A window class that counts one-sided calls during a recording."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI

from .live import running
from .messages import bytes_of

__all__ = ["Win"]


class Win(MPI.Win):
    """mpi4py's window class, which also counts the data that a rank puts or gets during a recording.

    Windows are made as with mpi4py: ``topompi.mpi.profile.windows.Win.Allocate(...)``. The launcher replaces
    ``MPI.Win`` by this class.
    """


_TARGET_AT = {"Get_accumulate": 2, "Rget_accumulate": 2, "Fetch_and_op": 2, "Compare_and_swap": 3}
_MOVES = {
    **dict.fromkeys(("Put", "Rput", "Accumulate", "Raccumulate"), "S"),
    **dict.fromkeys(("Get", "Rget"), "R"),
    **dict.fromkeys(_TARGET_AT, "SR"),  # counted twice, because new data go to the target and old data come back
}


def _method(name: str) -> Any:
    native, at = getattr(MPI.Win, name), _TARGET_AT.get(name, 1)

    def method(self: Win, *args: Any, **named: Any) -> Any:
        done = native(self, *args, **named)
        target = args[at] if len(args) > at else named.get("target_rank", MPI.PROC_NULL)
        recording = running()
        if recording is not None and target >= 0:
            origin = args[0] if args else named.get("origin")
            units = _units(self, recording)[np.array([target])]
            for kind in _MOVES[name]:
                recording.counters.add(kind, units, np.array([bytes_of(origin)]))
        return done

    method.__name__, method.__doc__ = name, native.__doc__
    return method


def _units(window: Any, recording: Any) -> Any:
    """Number of the counters' peer for each rank of a window's group, shape (ranks,); stored in the window."""
    held = getattr(window, "_units", None)
    if held is None or held[0] is not recording:
        group = window.Get_group()
        held = window._units = recording, recording.units_of(group)
        group.Free()
    return held[1]


for _name in _MOVES:
    setattr(Win, _name, _method(_name))
