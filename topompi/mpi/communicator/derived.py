"""Communicators made from one of topompi's, which get topompi's classes and their ranks' part of its topology."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from operator import index
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ..dispatch.counters import counters
from ..dispatch.state import Lineage
from ..execution.native import NativeCartcomm, NativeIntracomm
from . import agreement
from .handle import Handle, bare, is_null, keep, kept, lineage_of, origin_of, state_seen
from .standin import is_derived
from .state import set_lineage

if TYPE_CHECKING:
    from ..dispatch.common import Common

__all__ = ["CHILDREN", "FOUND", "adopt", "give_ours", "make_ours", "register"]

# For each method that makes a communicator: True if all ranks of the parent call the method.
CHILDREN = {
    "Dup": True,
    "Dup_with_info": True,
    "Clone": True,
    "Idup": True,
    "Idup_with_info": True,
    "Create": True,
    "Create_group": False,
    "Split": True,
    "Split_type": True,
    "Create_cart": True,
    "Create_graph": True,
    "Create_dist_graph": True,
    "Create_dist_graph_adjacent": True,
    "Create_intercomm": True,
    "Shrink": False,
    "Spawn": False,
    "Spawn_multiple": False,
    "Accept": False,
    "Connect": False,
}

# For each class method that returns a communicator: True if the caller must free the communicator.
FOUND = {
    "f2py": False,
    "fromhandle": False,
    "fromint": False,
    "Get_parent": False,
    "Join": True,
    "Create_from_group": True,
    "Create_from_groups": True,
}

PARTING = ("Split", "Sub")  # their new communicators are likely to run the same collectives at the same time
SAME_RANKS = ("Dup", "Dup_with_info", "Clone", "Idup", "Idup_with_info")

ROW = Struct("3i")  # in a split: a rank's color, key, and number in the topology
Call = Callable[..., Any]

_kinds: list[tuple[type, type]] = []


def register(native: type, ours: type) -> None:
    """Register topompi's class for a class of mpi4py.

    If the class of a communicator is derived from several registered classes, the one registered first counts.

    :param native: mpi4py's class.
    :param ours: topompi's class, which replaces it.
    """
    _kinds.append((native, ours))


def adopt(comm: MPI.Comm, parent: MPI.Comm, same: bool = False, common: Common | None = None) -> Any:
    """Turn a communicator made by a call on ``parent`` into one of topompi, with its ranks' part of the topology.

    The ranks do not communicate. The part of the topology is computed at its first use.

    :param comm: the new communicator, of mpi4py's class or topompi's.
    :param parent: the communicator of topompi on which it was made.
    :param same: True if ``comm`` has the parent's ranks in the parent's order.
    :param common: the state shared by communicators over the ranks of ``comm``; None if it is to be looked for.
    :returns: the communicator of topompi; ``comm`` itself if topompi has no class of its kind.
    """
    child: Any = comm if isinstance(comm, Handle) else _ours(comm)
    if child is None:
        return comm
    if is_null(child) or kept(child, "_topompi_lineage") is not None:  # the latter if its ranks were re-ordered
        return child
    if not isinstance(child, Handle):
        keep(child, "_topompi_lineage", Lineage(origin_of(parent), policy=lineage_of(parent).policy, owned=True))
        return child
    lineage = _passed_on(parent, same)
    if common is not None:
        lineage.common = common
    elif lineage.origin is not None and not same and isinstance(parent, Handle):
        lineage.common = lineage.origin.over(child)
    set_lineage(child, lineage)
    return child


def _passed_on(parent: MPI.Comm, same: bool) -> Lineage:
    """The lineage of a communicator made on ``parent``; without ``common``, unless it has the same ranks.

    All ranks take over equal values, because making a communicator is a collective call of the parent, which comes
    between the same two other collective calls on every rank.
    """
    theirs, state = lineage_of(parent), state_seen(parent)
    made = Lineage(origin_of(parent), policy=theirs.policy, owned=True)
    live = state if state is not None and state.usable else None
    common = theirs.common if live is None else live.common
    if not same:  # what the parent has chosen for all calls on its own ranks need not be valid on some of them
        made.only = common.only if common is not None and common.begun else theirs.only
    elif live is None:
        made.common, made.only, made.chosen, made.shared = common, theirs.only, theirs.chosen, theirs.shared
    else:
        made.common, made.only = common, live.only
        made.chosen, made.shared = live.chosen.copy(), live.executor.shared.copy()
    return made


def _ours(comm: MPI.Comm) -> Any:
    """The communicator as an object of one of topompi's classes; None if no class fits.

    If the given object is of mpi4py's class, the result is a second object for the same communicator.
    """
    given: type = type(comm)
    kind = _kind_of(given)
    if kind is None:
        return None
    return comm if is_derived(given, kind) else bare(kind, comm)


@functools.cache
def _kind_of(given: type) -> type | None:
    """The class of topompi for a class of mpi4py or topompi; None if none fits. All are registered at import."""
    return next((ours for native, ours in _kinds if issubclass(given, native)), None)


def give_ours(kind: type, name: str, owned: bool) -> None:
    """Replace a class method that returns a communicator, so that it returns one of topompi's classes.

    :param kind: the class of topompi that inherits the method from mpi4py's class.
    :param name: name of the method, for example ``fromhandle``.
    :param owned: True if the caller must free the communicator.
    """
    native = next(base.__dict__[name] for base in kind.__mro__ if name in base.__dict__)

    @functools.wraps(native.__func__)
    def method(cls: type, *args: Any, **kwargs: Any) -> Any:
        comm = native.__get__(None, cls)(*args, **kwargs)
        ours = _ours(comm)
        if ours is None:
            return comm
        lineage_of(ours).owned = owned
        return ours

    setattr(kind, name, classmethod(method))


def make_ours(kind: type[Handle], name: str, everyone: bool) -> None:
    """Replace a method that makes a communicator, so that it returns a communicator of topompi.

    :param kind: the class of topompi that inherits the method from mpi4py's class.
    :param name: name of the method, for example ``Split``.
    :param everyone: True if all ranks of the communicator call the method, so that the calls can be compared.
    """
    call: Callable[..., Any] = getattr(kind, name)
    parts, same = name in PARTING, name in SAME_RANKS

    @functools.wraps(call)
    def method(self: MPI.Intracomm, *args: object, **kwargs: object) -> object:
        if not isinstance(self, Handle):  # mpi4py's own communicator, on which topompi's method was called
            return call(self, *args, **kwargs)
        if counters.enabled and name == "Create_intercomm":
            counters.count(name, 0, "native", "the MPI library's always")
        with agreement.checked(self, name, ()) if everyone else nullcontext():
            made, common = _divide(self, name, call, args, kwargs) if parts else (call(self, *args, **kwargs), None)
        child = adopt(made[0] if isinstance(made, tuple) else made, self, same, common)
        return (child, *made[1:]) if isinstance(made, tuple) else child

    setattr(kind, name, method)


def _divide(
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
