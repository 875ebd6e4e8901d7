"""Finding the siblings of a communicator: those that the same call of ``Split`` or ``Sub`` made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

if TYPE_CHECKING:
    from ..views.siblings import Meeting

__all__ = ["meet"]


def meet(parent: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Meeting | None:
    """What tells the siblings of the communicator that ``Split`` or ``Sub`` gave this rank; None if there are none.

    Collective over the parent if a choice may depend on them; without communication otherwise.

    :param parent: the communicator of ours that was split.
    :param name: of the method that split it, ``Split`` or ``Sub``.
    :param args: positional arguments of that call.
    :param kwargs: keyword arguments of that call.
    Cost: one allgather of 24 bytes a rank.
    """
    origin = parent._family
    if origin is None or not origin.policy.minds_siblings(origin.interface):
        return None
    from ..views.siblings import Meeting  # where it matters who they are: on networks of several hosts

    color, key = _cut(parent, *args, **kwargs) if name == "Sub" else _split(*args, **kwargs)
    table = np.empty((parent.Get_size(), 3), dtype=np.int64)
    MPI.Intracomm(parent).Allgather(np.array([color, key, origin.rank], dtype=np.int64), table)
    meeting = Meeting(origin.interface, table, parent.Get_rank())
    return meeting if color >= 0 and meeting.divides else None


def _split(color: int = 0, key: int = 0) -> tuple[int, int]:
    return (-1 if color == MPI.UNDEFINED else color), key


def _cut(cart: Any, remain_dims: Any) -> tuple[int, int]:
    """Number of this rank's sub-grid, from its coordinates in the dimensions that are dropped; and the key, 0."""
    dims, _, coords = cart.Get_topo()
    part = 0
    for extent, coord, remains in zip(dims, coords, remain_dims, strict=True):
        part = part if remains else part * extent + coord
    return part, 0
