"""Replacements of ``Split`` and ``Sub`` that record which siblings, communicators made by the same call, they make."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ..execution.native import NativeCartcomm, NativeIntracomm
from .handle import Handle, origin_of

if TYPE_CHECKING:
    from ..dispatch.common import Common

__all__ = ["divide"]

ROW = Struct("3i")  # a rank's color, key, and number in the topology
Call = Callable[..., Any]


def divide(
    parent: Handle, name: str, call: Call, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[Any, Common | None]:
    """Split a communicator by ``Split`` or ``Sub``; return mpi4py's new communicator, and the state of its ranks.

    The state knows all communicators that the split makes, which are called siblings. It is None if no choice of an
    algorithm depends on siblings; then only the MPI library's method is called.

    :param parent: the communicator of topompi that is split.
    :param name: name of the method, ``Split`` or ``Sub``.
    :param call: mpi4py's method.
    :param args: positional arguments of the call.
    :param kwargs: keyword arguments of the call.
    """
    origin = origin_of(parent)
    if origin is None or not origin.minds_siblings:
        return call(parent, *args, **kwargs), None
    if name == "Split":
        return _split(parent, origin, call, *args, **kwargs)
    made = call(parent, *args, **kwargs)
    parted = origin.split(_rows_of_grids(parent, origin, *args, **kwargs))
    return made, None if parted is None else parted[1]


def _split(parent: Handle, origin: Common, call: Call, color: Any = 0, key: Any = 0) -> tuple[Any, Common | None]:
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
    parted = origin.split(bytes(rows))
    if parted is None:
        return call(parent, color, key), None
    ranks, common = parted
    if common is None:
        return NativeIntracomm.Create(parent, MPI.GROUP_EMPTY), None
    group = origin.group_of(ranks)
    try:
        return NativeIntracomm.Create(parent, group), common
    finally:
        group.Free()


def _rows_of_grids(cart: Any, origin: Common, remain_dims: Any) -> bytes:
    """The colors and keys that ranks would exchange to split a Cartesian grid by ``Sub``, computed from its extents."""
    dims, _, _ = NativeCartcomm.Get_topo(cart)
    table = np.zeros((MPI.Comm.Get_size(cart), 3), dtype=np.int32)
    for extent, coordinate, remains in zip(dims, np.indices(dims), remain_dims, strict=True):
        if not remains:
            table[:, 0] = table[:, 0] * extent + coordinate.ravel()
    table[:, 2] = origin.ranks_of(cart)
    return table.tobytes()
