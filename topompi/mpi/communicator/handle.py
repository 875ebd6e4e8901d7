"""The base class of topompi's communicators, and the state that a handle of a communicator keeps.

Programs derive classes from communicators and may use any name for their own attributes. Therefore topompi's classes
add two slots with a prefix to mpi4py's names, and nothing else; all else that topompi does is in functions.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from ..dispatch.calls import Calls
from ..dispatch.counters import counters
from ..dispatch.origin import Cut, Origin
from ..execution.native import NATIVE_KINDS, NativeIntracomm

if TYPE_CHECKING:
    from ...views.siblings import Siblings
    from ..dispatch.common import Bequest
    from ..dispatch.parts import Parts
    from ..selection.policy import Policy

__all__ = ["CALLS_SLOT", "Handle", "Kept", "bare", "calls_of", "is_null", "kept_of", "launched", "native_of", "plain"]


@dataclass(slots=True)
class Kept:
    """The state that topompi keeps with one handle of a communicator.

    :ivar held: the state attached to the communicator, as this handle last saw it. It is kept here, too, because
        reading it here is far faster than reading an MPI attribute.
    :ivar origin: the topology of the communicator from which this one was made; None if it was made from none of
        topompi's.
    :ivar cut: the result of the ``Split`` or ``Sub`` that made this communicator, if choices may depend on its
        siblings.
    :ivar inherited: the state taken over from the parent when this communicator was made.
    :ivar policy: rank 0's settings; None if rank 0 has not been asked.
    :ivar checks: seconds in a call after which the watchdog prints a line; 0 if calls are not checked.
    :ivar owns: True if ``free`` frees the communicator, because the user did not bring it.
    :ivar lasts: True for handles of MPI.COMM_WORLD and MPI.COMM_SELF under the launcher: freeing them keeps the shared
        state.
    :ivar report: the report on the search for the order of the ranks, if they were re-ordered.
    :ivar group: the communicator's ranks as a recording counts them; None outside a recording.
    :ivar graph: number of the communicator's graph in a recording; None before it has counted neighbourhood calls.
    """

    held: Parts | None = None
    origin: Origin | None = None
    cut: Cut | None = None
    inherited: Bequest | None = None
    policy: Policy | None = None
    checks: int = 0
    owns: bool = False
    lasts: bool = False
    report: Any = None  # not typed, as the next one, because their rooms stand on this one
    group: Any = None
    graph: int | None = None

    @property
    def is_quick(self) -> bool:
        """Whether calls may run straight from the table of calls, because they are neither checked nor counted."""
        return not self.checks and not counters.enabled

    @property
    def family(self) -> Origin | None:
        """The topology from which communicators made from this one take theirs; None if it is not found yet."""
        return self.origin or (None if self.held is None else self.held.origin)

    @property
    def bequest(self) -> Bequest | None:
        """The state that a communicator made from this one takes over; None if nothing is known yet."""
        return self.inherited if self.held is None or not self.held.usable else self.held.bequest

    @property
    def siblings(self) -> Siblings | None:
        """The communicators that the same ``Split`` or ``Sub`` made; None if there are none."""
        return None if self.cut is None else self.cut.siblings


class Handle(NativeIntracomm):
    """A second handle (mpi4py object) of a communicator, with topology and state. The communicator is not duplicated.

    An object made by compiled code, or of a class with another base first, may exist without ``__new__`` having run.
    Its slots are filled at their first use.
    """

    # The table of calls has a slot of its own, because every collective reads it first.
    __slots__ = ("_topompi_calls", "_topompi_kept")


CALLS_SLOT: Any = vars(Handle)["_topompi_calls"]


def calls_of(comm: Handle) -> Calls:
    """The table of a handle's calls, made at its first use; it stays empty if calls are checked or counted."""
    try:
        found: Calls = CALLS_SLOT.__get__(comm)
    except AttributeError:
        found = Calls()
        CALLS_SLOT.__set__(comm, found)
    return found


def kept_of(comm: Any) -> Kept:
    """The state kept with a communicator of topompi, made at its first use.

    A user's class may define ``__getattr__`` or ``__setattr__``, which are not called.
    """
    try:
        kept: Kept = object.__getattribute__(comm, "_topompi_kept")
    except AttributeError:
        kept = Kept()
        object.__setattr__(comm, "_topompi_kept", kept)
    return kept


def launched() -> Handle | None:
    """Topompi's communicator that the launcher has put in place of MPI.COMM_WORLD; None if no launcher runs."""
    world: Any = MPI.COMM_WORLD
    return world if isinstance(world, Handle) else None


def is_null(comm: MPI.Comm) -> bool:
    """Whether a communicator is MPI.COMM_NULL, whatever a user's class takes as equal."""
    return bool(MPI.Comm.__eq__(comm, MPI.COMM_NULL))


@functools.cache
def native_of(kind: Any) -> Any:
    """The first of mpi4py's own classes among the bases of a class."""
    return next(  # ``is``, because topompi's classes may compare equal to mpi4py's
        base for base in kind.__mro__ if any(base is one for one in NATIVE_KINDS)
    )


def plain(comm: Any) -> Any:
    """A second handle of a communicator, of mpi4py's own class, whose methods no user's class has replaced."""
    kind: Any = type(comm)
    return native_of(kind)(comm)


def bare(kind: Any, comm: MPI.Comm | None) -> Any:
    """A handle without topology and state, made in the way of mpi4py's own class.

    :param kind: class of the handle.
    :param comm: the communicator.
    """
    # Python makes the object by its first base, whose layout all kinds of mpi4py share. mpi4py's own class for the
    # kind is called first, because it checks that the communicator is of that kind.
    native = native_of(kind)
    first = NativeIntracomm if issubclass(kind, Handle) else native
    return first.__new__(kind, comm if comm is None or type(comm) is native else native(comm))
