"""The base class of topompi's communicators, and the four values that a handle of a communicator keeps.

Programs derive classes from communicators and may use any name for their own attributes. Therefore topompi's classes
add four slots with a prefix to mpi4py's names, and nothing else; all else that topompi does is in functions.
"""

from __future__ import annotations

import functools
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from ..dispatch.calls import Calls
from ..dispatch.state import Lineage
from ..execution.native import NATIVE_KINDS, NativeIntracomm

if TYPE_CHECKING:
    from ..dispatch.common import Common
    from ..dispatch.state import State

__all__ = [
    "CALLS_SLOT",
    "Handle",
    "bare",
    "calls_of",
    "is_null",
    "keep",
    "kept",
    "launched",
    "lineage_of",
    "native_of",
    "origin_of",
    "plain",
    "state_seen",
]


class Handle(NativeIntracomm):
    """A second handle (mpi4py object) of a communicator, with topology and state. The communicator is not duplicated.

    An object made by compiled code, or of a class with another base first, may exist without ``__new__`` having run.
    Therefore each slot is filled at its first use:

    - ``_topompi_calls``: the table of calls, which every collective reads first;
    - ``_topompi_lineage``: how the communicator came to be, and what it passes on;
    - ``_topompi_state``: what is made by the first collective call, as this handle last saw it. It is attached to the
      communicator, too, but reading an MPI attribute takes far longer;
    - ``_topompi_recorded``: the communicator as a recording (room ``profile``) counts it.
    """

    __slots__ = ("_topompi_calls", "_topompi_lineage", "_topompi_recorded", "_topompi_state")

    _topompi_calls: Calls
    _topompi_lineage: Lineage
    _topompi_state: State
    _topompi_recorded: object  # not typed, because its room stands on this one


CALLS_SLOT: MemberDescriptorType = vars(Handle)["_topompi_calls"]


def calls_of(comm: Handle) -> Calls:
    """The table of a handle's calls, made at its first use; it stays empty if calls are checked or counted."""
    try:
        found: Calls = CALLS_SLOT.__get__(comm)
    except AttributeError:
        found = Calls()
        CALLS_SLOT.__set__(comm, found)
    return found


def kept(comm: object, slot: str) -> Any:
    """The value of a slot of a communicator of topompi; None if it is not filled.

    A user's class may define ``__getattr__``, which is not called.
    """
    try:
        return object.__getattribute__(comm, slot)
    except AttributeError:
        return None


def keep(comm: object, slot: str, value: object) -> None:
    """Fill a slot of a communicator of topompi; a ``__setattr__`` of a user's class is not called.

    :param comm: the communicator.
    :param slot: name of the slot, one of ``Handle``'s.
    :param value: the value.
    """
    object.__setattr__(comm, slot, value)


def lineage_of(comm: object) -> Lineage:
    """The lineage of a communicator of topompi, empty if it was made by compiled code."""
    found: Lineage | None = kept(comm, "_topompi_lineage")
    if found is None:
        found = Lineage()
        keep(comm, "_topompi_lineage", found)
    return found


def state_seen(comm: object) -> State | None:
    """The state of a communicator of topompi, as this handle last saw it: it may be freed; None if it saw none."""
    state: State | None = kept(comm, "_topompi_state")
    return state


def origin_of(comm: object) -> Common | None:
    """The topology from which communicators made from this one take theirs; None if it is not found yet."""
    state = state_seen(comm)
    return lineage_of(comm).origin or (None if state is None else state.origin)


def launched() -> Handle | None:
    """Topompi's communicator that the launcher has put in place of MPI.COMM_WORLD; None if no launcher runs."""
    world = MPI.COMM_WORLD
    return world if isinstance(world, Handle) else None


def is_null(comm: MPI.Comm) -> bool:
    """Whether a communicator is MPI.COMM_NULL, whatever a user's class takes as equal."""
    return bool(MPI.Comm.__eq__(comm, MPI.COMM_NULL))


@functools.cache
def native_of(kind: type) -> Any:
    """The first of mpi4py's own classes among the bases of a class."""
    return next(  # ``is``, because topompi's classes may compare equal to mpi4py's
        base for base in kind.__mro__ if any(base is one for one in NATIVE_KINDS)
    )


def plain(comm: MPI.Comm) -> Any:
    """A second handle of a communicator, of mpi4py's own class, whose methods no user's class has replaced."""
    kind: type = type(comm)
    return native_of(kind)(comm)


def bare(kind: type, comm: MPI.Comm | None) -> Any:
    """A handle without topology and state, made in the way of mpi4py's own class.

    :param kind: class of the handle.
    :param comm: the communicator.
    """
    # Python makes the object by its first base, whose layout all kinds of mpi4py share. mpi4py's own class for the
    # kind is called first, because it checks that the communicator is of that kind.
    native = native_of(kind)
    first = NativeIntracomm if issubclass(kind, Handle) else native
    return first.__new__(kind, comm if comm is None or type(comm) is native else native(comm))
