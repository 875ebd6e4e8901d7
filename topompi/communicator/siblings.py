"""Making a communicator by ``Split`` or ``Sub`` where its siblings matter: those that the same call makes."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np

from ..execution.native import NativeIntracomm

if TYPE_CHECKING:
    from ..dispatch.origin import Cut, Origin

__all__ = ["divide"]

ROW = Struct("3i")  # color, key, and number in the topology of a rank
Call = Callable[..., Any]


def divide(parent: Any, name: str, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Cut | None]:
    """What ``Split`` or ``Sub`` makes, of mpi4py's own kind, and this rank's part of the split.

    The part is None where no choice depends on the siblings: then the call is the MPI library's and no more.

    :param parent: the communicator of ours that is split.
    :param name: of the method that splits it, ``Split`` or ``Sub``.
    :param call: mpi4py's method.
    :param args: positional arguments of that call.
    :param kwargs: keyword arguments of that call.
    """
    origin: Origin | None = parent._family
    if origin is None or not origin.minds_siblings:
        return call(parent, *args, **kwargs), None
    if name == "Split":
        return _split(parent, origin, call, *args, **kwargs)
    made = call(parent, *args, **kwargs)
    return made, origin.cut_by(_rows_of_grids(parent, origin, *args, **kwargs))


def _split(parent: Any, origin: Origin, call: Call, color: Any = 0, key: Any = 0) -> tuple[Any, Cut | None]:
    """What an MPI library does for ``Split``, apart: all tell their colors and keys, each group makes a communicator.

    Cost: one allgather of 12 bytes a rank, and ``Create``.
    """
    try:
        row = ROW.pack(index(color), index(key), origin.rank)
    except Exception:  # what mpi4py refuses too, on this rank, before it communicates
        return call(parent, color, key), None
    rows = bytearray(ROW.size * parent.Get_size())
    NativeIntracomm(parent).Allgather(row, rows)
    cut = origin.cut_by(bytes(rows))
    if cut is None:
        return call(parent, color, key), None
    return NativeIntracomm.Create(parent, cut.group), cut


def _rows_of_grids(cart: Any, origin: Origin, remain_dims: Any) -> bytes:
    """What the ranks of a grid would tell that is cut into smaller ones: all of it follows from the grid's extents."""
    dims, _, _ = cart.Get_topo()
    table = np.zeros((cart.Get_size(), 3), dtype=np.int32)
    for extent, coordinate, remains in zip(dims, np.indices(dims), remain_dims, strict=True):
        if not remains:
            table[:, 0] = table[:, 0] * extent + coordinate.ravel()
    table[:, 2] = origin.ranks_of(cart)
    return table.tobytes()
