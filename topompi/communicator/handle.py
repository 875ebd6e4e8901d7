"""The base class of topompi's communicators, with their topology, their state, and the checks of their calls."""

from __future__ import annotations

import copyreg
import os
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from ..dispatch.calls import Calls
from ..dispatch.common import Bequest, Common
from ..dispatch.counters import counters
from ..dispatch.origin import Cut, Origin
from ..dispatch.parts import Parts, attach, attached, detach
from ..execution.executor import FORMER, ORDER
from ..execution.native import NATIVE_KINDS, NativeIntracomm
from ..selection.choice import Choice
from ..selection.policy import Policy
from .discovery import find_topology
from .starting import settings_of

if TYPE_CHECKING:
    from typing import Self

    from ..topology import TopologyInterface
    from ..views.siblings import Siblings

__all__ = ["Handle", "pickle_by_name"]

# MPI's predefined communicators by name. They are read at import, because the launcher later replaces MPI.COMM_WORLD by
# topompi's handle.
PREDEFINED = {"COMM_WORLD": MPI.COMM_WORLD, "COMM_SELF": MPI.COMM_SELF, "COMM_NULL": MPI.COMM_NULL}

ALL = Calls()  # table of calls for all communicators whose every call the MPI library runs
ALL.all = True

_keyval_lock = Lock()


class Handle(NativeIntracomm):
    """A second handle (mpi4py object) of a communicator, with topology and state. The communicator is not duplicated.

    An object of a derived class, or one made by compiled code, may exist without ``__new__`` having run. The class
    attributes hold the values for that case, in which nothing is known yet.
    """

    # The table of calls is in a slot, the attribute that is read fastest, because every collective reads it first.
    __slots__ = ("_calls",)
    # Table of calls; it stays empty if calls are checked or counted.
    _calls: Calls

    # topompi's communicator that the launcher has put in place of MPI.COMM_WORLD; None if no launcher runs.
    launched: Handle | None = None

    # The state attached to the communicator, as this handle last saw it. It is kept here, too, because reading an
    # attribute in Python is far faster than reading an MPI attribute.
    _held: Parts | None = None
    # The topology of the communicator from which this one was made; None if it was made from none of topompi's.
    _origin: Origin | None = None
    # The result of the ``Split`` or ``Sub`` that made this communicator, if choices may depend on its siblings.
    _cut: Cut | None = None
    # The state taken over from the parent when this communicator was made.
    _inherited: Bequest | None = None
    # Rank 0's settings; None if rank 0 has not been asked.
    _policy: Policy | None = None
    # Seconds in a call after which the watchdog prints a line; 0 if calls are not checked.
    _checks = 0
    _owns = False
    # True for handles of MPI.COMM_WORLD and MPI.COMM_SELF under the launcher: freeing them keeps the shared state.
    _lasts = False

    # The first of mpi4py's own classes among the bases.
    _native: Any = NativeIntracomm

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        cls._native = next(
            base for base in cls.__mro__ if any(base is one for one in NATIVE_KINDS)
        )  # ``is``, because topompi's classes may compare equal to mpi4py's

    def __new__(
        cls,
        comm: MPI.Intracomm | None = None,
        topology: TopologyInterface | str | os.PathLike[str] | None = None,
        hosts: Sequence[str] | str | None = None,
    ) -> Handle:
        """Make a handle of a communicator.

        There is no ``__init__``, as in mpi4py, because a user's derived class may have other arguments. The call is
        collective; under the launcher, or if ``comm`` is one of topompi's, it sends no messages.

        :param comm: the communicator.
        :param topology: a source (see ``topompi.topology.load``), or a ``TopologyInterface`` over the ranks of
            ``comm``, the same on all ranks; it replaces a topology that the communicator has. If it is None, the
            communicator keeps the topology that it has; if it has none, ``TOPOMPI_TOPOLOGY`` is used; if that is not
            set, the levels inside the hosts.
        :param hosts: virtual placement: the host of each rank, or a shorter list of hosts, among which consecutive
            ranks are divided as evenly as possible. If it is None, ``TOPOMPI_HOSTS`` is used; if that is not set, the
            hosts on which the ranks run.
        :raises TopompiError: if the source cannot be read or does not have a host; the same on all ranks.
        """
        self: Handle = cls._bare(comm)
        if self == MPI.COMM_NULL:
            return self
        if topology is None and hosts is None and (isinstance(comm, Handle) or Handle.launched is not None):
            self._share(comm)
        else:
            self._begin(topology, hosts)
        return self

    @classmethod
    def _bare(cls, comm: MPI.Comm | None) -> Any:
        """A handle without topology and state, made in the way of mpi4py's own class."""
        # Python makes the object by its first base, whose layout all kinds of mpi4py share. mpi4py's own class for the
        # kind is called first, because it checks that the communicator is of that kind.
        native = cls._native
        self = NativeIntracomm.__new__(cls, comm if comm is None or type(comm) is native else native(comm))
        self._calls = Calls()
        return self

    def _share(self, comm: Any) -> None:
        """Take over settings, topology and state from another handle of the same communicator. Local.

        :param comm: the other handle; if it is of mpi4py's class, there is nothing to take over.
        """
        if not isinstance(comm, Handle):
            return
        self._checks, self._policy, self._lasts = comm._checks, comm._policy, comm._lasts
        self._origin, self._cut, self._inherited = comm._origin, comm._cut, comm._inherited
        if comm._held is not None and comm._held.usable:
            self._hold(comm._held)

    def _begin(self, topology: Any = None, hosts: Any = None) -> None:
        """Get the settings from rank 0, and find the topology; collective."""
        self._checks, self._policy = settings_of(NativeIntracomm(self))
        if topology is not None and not isinstance(topology, str | os.PathLike):
            if topology.num_ranks != self.Get_size():
                raise ValueError(f"expecting a topology over {self.Get_size()} ranks, got {topology.num_ranks}")
            self._attach(Common(topology, self._policy))
        elif topology is not None or hosts is not None:
            self._attach(Common(find_topology(self, topology, hosts), self._policy))
        self._hold(self._state)
        if counters.enabled and MPI.COMM_WORLD.Get_rank() == 0:
            what = "collective calls, median times (calls between two ranks: the MPI library's, not counted)"
            counters.report_at_exit(f"topompi: {self.interface.describe()}; rank 0's {what}")

    def _attach(self, common: Common, bequest: Bequest | None = None) -> Parts:
        native_calls = 0 if self._origin is None else common.policy.native_calls
        calls = self._calls if self._held is None and self._calls is not ALL else None
        state = Parts(NativeIntracomm(self), common, bequest, native_calls, calls, quick=self._is_quick)
        attach(self, state)
        return state

    def _inherit(self, bequest: Bequest | None) -> None:
        """Take over a parent's state in a new communicator. Local: no communication."""
        self._inherited = bequest
        if bequest is None or not self._is_quick:
            return
        if bequest.only:
            self._calls = ALL
        elif (common := bequest.common) is not None:
            self._calls.passes = True
            self._calls.others = common.early if common.policy.native_calls else common.natives

    def _knows_natives(self) -> bool:
        """Give a new handle, if it lacks one, the table of calls that communicators over its ranks share. Local.

        The table has calls that the MPI library runs. The result is True if the handle got a table with entries.
        """
        if not hasattr(self, "_calls"):  # made by another class's __new__
            self._calls = Calls()
        if self._held is not None or self._origin is None or self._calls.others is not None or self._checks:
            return False
        common = self._origin.common_of(self, self._cut)
        self._inherit(common.bequest)
        return self._calls.all or (self._is_quick and len(common.natives) + len(common.early) > 0)

    def leave_to_library(self) -> None:
        """Let the MPI library run every call on this communicator of one rank and on communicators made from it."""
        self._policy = Policy()
        self._inherit(Bequest(None, self._policy.alone, {}, {}))

    @property
    def _is_quick(self) -> bool:
        """Whether calls may run straight from the table of calls, because they are neither checked nor counted."""
        return not self._checks and not counters.enabled

    def _hold(self, state: Parts) -> None:
        self._held = state
        if getattr(self, "_calls", None) is not state.calls:
            self._calls = state.calls
        self._leave_all(state)

    def _leave_all(self, state: Parts) -> None:
        """Leave every call to the MPI library until the state is freed, if the choice is the same for all calls."""
        if state.usable and state.only and self._is_quick:
            state.calls.all = True

    @property
    def _state(self) -> Parts:
        """The state attached to this communicator, which may be freed; made here, collectively, if there is none."""
        state = self._held
        if state is None or not state.usable:
            with _keyval_lock:  # cannot deadlock, because no MPI call in here waits for another rank
                found = attached(self)
            state = self._attach(self._find(), self._inherited) if found is None else found
            self._hold(state)
        return state

    @property
    def _family(self) -> Origin | None:
        """The topology from which communicators made from this one take theirs; None if it is not found yet."""
        held = self._held
        return self._origin or (None if held is None else held.origin)

    @property
    def _bequest(self) -> Bequest | None:
        """The state that a communicator made from this one takes over; None if nothing is known yet."""
        held = self._held
        return self._inherited if held is None or not held.usable else held.bequest

    @property
    def _asks_for_requests(self) -> bool:
        """Whether plans may run persistent or non-blocking calls on communicators of this one's settings."""
        held, origin = self._held, self._origin
        policy = self._policy if origin is None else origin.policy
        policy = policy if held is None else held.common.policy
        return policy is not None and policy.asks_for_requests

    @property
    def _siblings(self) -> Siblings | None:
        """The communicators that the same ``Split`` or ``Sub`` made; None if there are none."""
        return None if self._cut is None else self._cut.siblings

    def _find(self) -> Common:
        """The state that all communicators over these ranks share.

        It is taken or computed from the parent's state. If there is no parent, the ranks find the topology
        collectively.
        """
        if self._inherited is not None and self._inherited.common is not None:
            return self._inherited.common
        if self._origin is None and (world := Handle.launched) is not None and world is not self:
            self._origin = world._origin_of(self)
        if self._origin is not None:
            return self._origin.common_of(self, self._cut)
        if self._policy is None:
            self._checks, self._policy = settings_of(NativeIntracomm(self))
        return Common(find_topology(self), self._policy)

    def _origin_of(self, comm: Any) -> Origin | None:
        """The topology from which a communicator made by compiled code takes its own. Local.

        The result is None if this communicator's topology is not found yet, or lacks a rank of ``comm``.
        """
        family = self._family
        return family if family is not None and family.covers(comm) else None

    def _working(self) -> Parts:
        """The state attached to this communicator, checked before a collective call.

        :raises RuntimeError: if the state is freed; the same on all ranks, because freeing is collective.
        """
        state = self._state
        if not state.usable:
            raise RuntimeError("communicator already freed")
        return state

    @property
    def interface(self) -> TopologyInterface:
        """The placement of the ranks on the network.

        It is not called ``topology``, because that is mpi4py's name for the kind of a Cartesian or graph topology. The
        first use may be collective, because it makes the communicator's state.
        """
        return self._state.interface

    def refreshed(self) -> Self:
        """A communicator of the same ranks that follows the routes of today; collective.

        It is this communicator if its topology did not come from a topology service, or if the service still has the
        same routes. Else it is a duplicate with the new routes and rates, and nothing that was made from the old ones;
        only the search for the order of rings begins with the former one. This communicator, its persistent
        requests and its children keep the old routes, and the caller frees whichever he needs no longer.

        :raises ServiceError: if the service does not answer in time; the same on all ranks.
        :raises HostError: if the service's fabric no longer has one of the hosts; the same on all ranks.
        Cost: one short question of rank 0 to the service, and log2(p) messages; if routes have changed, also a view of
        the job's part of the fabric, and one more broadcast.
        """
        state = self._working()
        if state.interface.served is None:
            return self
        new = state.groups.talks.from_rank_0(lambda: _changed(state.interface))
        if new is None:
            return self
        made: Self = type(self)._bare(self._native(self).Dup())
        made._owns = True
        made._begin(new)
        if state.executor.has_order:
            made._state.executor.shared[FORMER] = state.executor.shared[ORDER]
        return made

    def choice_of(self, method: str, nbytes: int) -> Choice | None:
        """The algorithm chosen for calls of a size, and the reason; None if none is chosen yet. No communication.

        :param method: mpi4py's name of the call, for example ``Alltoall``.
        :param nbytes: size of the call in bytes, as rules count it (docs/rules.md).
        """
        held = self._held
        return None if held is None else held.choice_of(method, nbytes)

    @property
    def sub_communicators(self) -> dict[str, MPI.Intracomm]:
        """The sub-communicators that this rank is in, by name, outermost first; collective at its first use.

        Level by level (for example leaf switches, then hosts), the lowest rank of each cluster is its leader. One
        sub-communicator has the leaders of all clusters of the outermost level, the next one the leaders of the
        clusters inside one of these, and so on; the last one has all ranks of one innermost cluster. A rank that is no
        leader is in the last one only. They belong to this communicator: do not free them.
        """
        state = self._state
        if not state.groups.divided:
            return {}
        names = [f"leaders {level.name}" for level in state.interface.levels] + ["ranks"]
        return {names[level - 1]: part for level, part in sorted(state.groups.levels("the user's").parts.items())}

    def free(self) -> None:
        """Free topompi's state of this communicator; collective. Its collectives then raise RuntimeError.

        If the communicator was made from one of topompi's, it is freed itself, too, as by mpi4py's ``free``. If the
        user wrapped a communicator, it is not freed, because the user owns it. The launcher's ``MPI.COMM_WORLD`` stays
        usable, as mpi4py's does.
        """
        if self == MPI.COMM_NULL or self is MPI.COMM_WORLD or self is MPI.COMM_SELF:
            return
        if self._lasts:
            super().free()  # for MPI.COMM_WORLD and COMM_SELF this only makes the handle null
            return
        if self._owns:
            self.Free()
            return
        state = attached(self)
        if state is not None:
            state.free()

    def Free(self) -> None:
        """Free the communicator and all state that topompi keeps with it; collective."""
        self._release()
        super().Free()

    def Disconnect(self) -> None:
        """Wait for pending communication, then free the communicator and topompi's state of it; collective."""
        self._release()
        super().Disconnect()

    def Revoke(self) -> None:
        """Revoke the communicator and the communicators that topompi made for it, so that no rank waits in them."""
        super().Revoke()
        if (state := attached(self)) is not None:
            state.groups.revoke()

    def _release(self) -> None:
        # MPI refuses to free predefined communicators. A state that only another handle has seen is freed by MPI's
        # attribute callback, together with the communicator.
        if self == MPI.COMM_NULL or (self._held is None if self._owns else self in PREDEFINED.values()):
            return
        detach(self)

    def __reduce__(self) -> str | tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle predefined communicators by name; refuse all others, as mpi4py does."""
        for name, predefined in PREDEFINED.items():
            if self == predefined:
                return name if self is getattr(MPI, name) else (_named, (type(self), name))
        raise ValueError(f"cannot serialize '{type(self).__module__}.{type(self).__qualname__}' instance")


def _changed(view: TopologyInterface) -> TopologyInterface | None:
    """The view of the same ranks with the service's present routes; None if they have not changed."""
    from ..topology import reread  # imported here, because only rank 0 needs the readers of sources

    return None if view.served is None or view.served.is_current() else reread(view)


def _named(kind: type[Handle], name: str) -> Handle:
    """A new handle of the predefined communicator of this name: the unpickled form of a user's handle."""
    now: Any = getattr(MPI, name)
    handle: Handle = kind._bare(now)
    handle._share(now)
    return handle


def pickle_by_name() -> None:
    """Make mpi4py's objects of ``COMM_WORLD`` and ``COMM_SELF`` picklable after topompi's objects took their names."""
    copyreg.pickle(NativeIntracomm, _reduced)


def _reduced(comm: MPI.Intracomm) -> Any:
    """The function and arguments that make a handle when it is unpickled, as ``__reduce__`` returns them.

    For a predefined communicator these look up its name. For any other one, mpi4py's ``__reduce__`` decides.
    """
    if isinstance(comm, Handle):  # its class may compare equal to mpi4py's
        return comm.__reduce__()
    for name, predefined in PREDEFINED.items():
        if comm is predefined:
            return _by_name, (name,)
        if comm == predefined:
            return _plain, (name,)
    return comm.__reduce__()


def _plain(name: str) -> MPI.Intracomm:
    """A new handle, of mpi4py's class, of a predefined communicator."""
    return NativeIntracomm(getattr(MPI, name))


def _by_name(name: str) -> MPI.Intracomm:
    """The communicator to which this name in ``mpi4py.MPI`` refers now."""
    comm: MPI.Intracomm = getattr(MPI, name)
    return comm
