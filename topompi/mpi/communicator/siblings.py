"""Replacements of ``Split`` and ``Sub`` that record which siblings, communicators made by the same call, they make."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ..execution.native import NativeCartcomm, NativeIntracomm
from .handle import kept_of

if TYPE_CHECKING:
    from ..dispatch.origin import Cut, Origin

__all__ = ["divide"]

ROW = Struct("3i")  # a rank's color, key, and number in the topology
Call = Callable[..., Any]


def divide(parent: Any, name: str, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Cut | None]:
    """Split a communicator by ``Split`` or ``Sub``; return mpi4py's new communicator, and a record of the split.

    The record has the ranks of all communicators that the split makes, which are called siblings. It is None if no
    choice of an algorithm depends on siblings; then only the MPI library's method is called.

    :param parent: the communicator of topompi that is split.
    :param name: name of the method, ``Split`` or ``Sub``.
    :param call: mpi4py's method.
    :param args: positional arguments of the call.
    :param kwargs: keyword arguments of the call.
    """
    origin: Origin | None = kept_of(parent).family
    if origin is None or not origin.minds_siblings:
        return call(parent, *args, **kwargs), None
    if name == "Split":
        return _split(parent, origin, call, *args, **kwargs)
    made = call(parent, *args, **kwargs)
    return made, origin.cut_by(_rows_of_grids(parent, origin, *args, **kwargs))


def _split(parent: Any, origin: Origin, call: Call, color: Any = 0, key: Any = 0) -> tuple[Any, Cut | None]:
    """Split as an MPI library does, but keep the exchanged colors and keys: gather them, then ``Create`` the group.

    Cost: one allgather of 12 bytes per rank, and ``Create``.
    """
    try:
        row = ROW.pack(index(color), index(key), origin.rank)
    except Exception:  # mpi4py's method raises the same error, on this rank, before it communicates
        return call(parent, color, key), None
    plain = NativeIntracomm(parent)
    rows = bytearray(ROW.size * plain.Get_size())
    plain.Allgather(row, rows)
    cut = origin.cut_by(bytes(rows))
    if cut is None:
        return call(parent, color, key), None
    return NativeIntracomm.Create(parent, cut.group), cut


def _rows_of_grids(cart: Any, origin: Origin, remain_dims: Any) -> bytes:
    """The colors and keys that ranks would exchange to split a Cartesian grid by ``Sub``, computed from its extents."""
    dims, _, _ = NativeCartcomm.Get_topo(cart)
    table = np.zeros((MPI.Comm.Get_size(cart), 3), dtype=np.int32)
    for extent, coordinate, remains in zip(dims, np.indices(dims), remain_dims, strict=True):
        if not remains:
            table[:, 0] = table[:, 0] * extent + coordinate.ravel()
    table[:, 2] = origin.ranks_of(cart)
    return table.tobytes()
