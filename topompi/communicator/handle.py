"""The base of our communicators: the topology of their ranks, their state, and whether calls are checked."""

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
from ..dispatch.parts import Parts, attach, attached
from ..execution.native import NATIVE_KINDS, NativeIntracomm
from ..selection.choice import Choice
from ..selection.policy import Policy
from .discovery import find_topology
from .starting import settings_of

if TYPE_CHECKING:
    from ..topology import TopologyInterface
    from ..views.siblings import Siblings

__all__ = ["Handle", "pickle_by_name"]

# As MPI names them; the launcher puts one of ours in the place of MPI.COMM_WORLD.
PREDEFINED = {"COMM_WORLD": MPI.COMM_WORLD, "COMM_SELF": MPI.COMM_SELF, "COMM_NULL": MPI.COMM_NULL}

ALL = Calls()  # of handles that leave every call to the MPI library
ALL.all = True

_keyval_lock = Lock()


class Handle(NativeIntracomm):
    """A second handle of a communicator, with its topology and state; it makes no duplicate of the communicator.

    An object of a class derived from ours, or made by compiled code, may come without any of what is set here: the
    values of the class are those of a handle of which nothing is known.
    """

    # What the collectives look at first: a slot is the quickest to read, in C too.
    __slots__ = ("_calls",)
    # What runs calls like earlier ones; never anything where calls are checked or counted.
    _calls: Calls

    # The launcher's world; None without a launcher.
    launched: Handle | None = None

    # The state as this handle saw it last: an attribute of ours is read far quicker than one of MPI's.
    _held: Parts | None = None
    # In a communicator made from another one: the topology of the other one.
    _origin: Origin | None = None
    # Of the ``Split`` or ``Sub`` that made this one, where its siblings matter.
    _cut: Cut | None = None
    # What this one took over when it was made.
    _inherited: Bequest | None = None
    # What rank 0 said of its environment; None where it has not been asked.
    _policy: Policy | None = None
    # Seconds in a call after which the watchdog speaks; 0 where calls are not checked.
    _checks = 0
    _owns = False
    # Whether it is the launcher's world, or another handle of that: freeing leaves alone what is kept with it.
    _lasts = False

    # The first of mpi4py's own classes among the bases.
    _native: Any = NativeIntracomm

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        cls._native = next(
            base for base in cls.__mro__ if any(base is one for one in NATIVE_KINDS)
        )  # ours may be equal

    def __new__(
        cls,
        comm: MPI.Intracomm | None = None,
        topology: TopologyInterface | str | os.PathLike[str] | None = None,
        hosts: Sequence[str] | str | None = None,
    ) -> Handle:
        """Make a handle of a communicator.

        It is complete then, and there is no ``__init__``, as in mpi4py: a class of the user's may have any other
        arguments. Under the launcher, and for another handle of one of ours, nothing is communicated.

        :param comm: the communicator; collective over it.
        :param topology: a source (see ``topompi.topology.load``), or a ``TopologyInterface`` over the ranks of
            ``comm``, the same on all ranks; else what the communicator has already, else ``TOPOMPI_TOPOLOGY``, else the
            hosts' own levels. A new topology takes the place of the one that the communicator has.
        :param hosts: virtual placement: host of each rank, or a host list that is filled in blocks; else
            ``TOPOMPI_HOSTS``, else the hosts where the ranks run.
        :raises TopompiError: the same on all ranks, if the source cannot be read or hosts are not in it.
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
        """A handle of which nothing is known, made as mpi4py's own class makes one."""
        # Python makes objects of ours by the base that comes first, whose layout all of mpi4py's kinds share; that the
        # communicator is of the kind is for mpi4py's own class to say.
        native = cls._native
        self = NativeIntracomm.__new__(cls, comm if comm is None or type(comm) is native else native(comm))
        self._calls = Calls()
        return self

    def _share(self, comm: Any) -> None:
        """Take over what another handle of the communicator knows, if that is one of ours; local."""
        if not isinstance(comm, Handle):
            return
        self._checks, self._policy, self._lasts = comm._checks, comm._policy, comm._lasts
        self._origin, self._cut, self._inherited = comm._origin, comm._cut, comm._inherited
        if comm._held is not None and comm._held.usable:
            self._hold(comm._held)

    def _begin(self, topology: Any = None, hosts: Any = None) -> None:
        """Ask rank 0 for the settings, and find the topology; collective."""
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
        """Take over what a communicator leaves to this one, which is new; no communication."""
        self._inherited = bequest
        if bequest is None or not self._is_quick:
            return
        if bequest.only:
            self._calls = ALL
        elif (common := bequest.common) is not None:
            self._calls.passes = True
            self._calls.others = common.early if common.policy.native_calls else common.natives

    def _knows_natives(self) -> bool:
        """Whether this handle, new and without a state, has just got a table with calls to look into; local."""
        if not hasattr(self, "_calls"):  # a handle that another class's __new__ has made
            self._calls = Calls()
        if self._held is not None or self._origin is None or self._calls.others is not None or self._checks:
            return False
        common = self._origin.common_of(self, self._cut)
        self._inherit(common.bequest)
        return self._calls.all or (self._is_quick and len(common.natives) + len(common.early) > 0)

    def leave_to_library(self) -> None:
        """Leave every call on this handle of one rank to the MPI library, and those made from it; local."""
        self._policy = Policy()
        self._inherit(Bequest(None, self._policy.alone, {}, {}))

    @property
    def _is_quick(self) -> bool:
        """Whether calls may go by what the table knows: they are neither checked nor counted."""
        return not self._checks and not counters.enabled

    def _hold(self, state: Parts) -> None:
        self._held = state
        if getattr(self, "_calls", None) is not state.calls:
            self._calls = state.calls
        self._leave_all(state)

    def _leave_all(self, state: Parts) -> None:
        """Leave every call to the MPI library, until the state is freed, where nothing is to be chosen."""
        if state.usable and state.only and self._is_quick:
            state.calls.all = True

    @property
    def _state(self) -> Parts:
        """The state attached to this communicator, perhaps freed; made here, collectively, if there is none."""
        state = self._held
        if state is None or not state.usable:
            with _keyval_lock:  # no MPI call in here waits for another rank
                found = attached(self)
            state = self._attach(self._find(), self._inherited) if found is None else found
            self._hold(state)
        return state

    @property
    def _family(self) -> Origin | None:
        """From where communicators made from this one have their topology; None if none has been found yet."""
        held = self._held
        return self._origin or (None if held is None else held.origin)

    @property
    def _bequest(self) -> Bequest | None:
        """What a communicator takes over that is made from this one now; None if nothing is known yet."""
        held = self._held
        return self._inherited if held is None or not held.usable else held.bequest

    @property
    def _siblings(self) -> Siblings | None:
        """The communicators that the same ``Split`` or ``Sub`` made; None if there are none."""
        return None if self._cut is None else self._cut.siblings

    def _find(self) -> Common:
        """Where the ranks sit: their part of the topology they came from; found anew, collectively, if from none."""
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
        """The origin of a communicator that compiled code has made; None if some of its ranks are not here. Local."""
        family = self._family
        return family if family is not None and family.covers(comm) else None

    def _working(self) -> Parts:
        """The state, to run a collective with.

        :raises RuntimeError: if it has been freed; the same on all ranks, for freeing is collective.
        """
        state = self._state
        if not state.usable:
            raise RuntimeError("communicator already freed")
        return state

    @property
    def interface(self) -> TopologyInterface:
        """Where the ranks sit in the network.

        The name is not ``topology``, which in mpi4py is the kind of a Cartesian or graph topology. The first use on a
        communicator made from another one is collective: it computes the part of the other one's topology.
        """
        return self._state.interface

    def choice_of(self, method: str, nbytes: int) -> Choice | None:
        """What was chosen for calls of a size, and why; None while nothing is. Local.

        :param method: mpi4py's name of the call, such as ``Alltoall``.
        :param nbytes: its size in bytes, as the rules count it (docs/rules.md).
        """
        held = self._held
        return None if held is None else held.choice_of(method, nbytes)

    @property
    def sub_communicators(self) -> dict[str, MPI.Intracomm]:
        """The sub-communicators that this rank is in, by name, outermost first; collective at its first use.

        Each unites the leaders, the lowest ranks, of one level within a cluster of the level above; the last one
        unites the ranks of one innermost cluster. A rank that leads nothing is in the last one only. They belong to
        this communicator: do not free them.
        """
        state = self._state
        if not state.groups.divided:
            return {}
        names = [f"leaders {level.name}" for level in state.interface.levels] + ["ranks"]
        return {names[level - 1]: part for level, part in sorted(state.groups.levels("the user's").parts.items())}

    def free(self) -> None:
        """Free what topompi keeps with this communicator; collective. Its collectives then raise RuntimeError.

        A communicator that was made from one of ours is freed too, as by mpi4py's ``free``; one that the user wrapped
        is not, since the user owns it. ``MPI.COMM_WORLD``, where the launcher put it, stays as mpi4py's does.
        """
        if self == MPI.COMM_NULL or self is MPI.COMM_WORLD or self is MPI.COMM_SELF:
            return
        if self._lasts:
            super().free()  # of a predefined communicator: only this handle becomes null
            return
        if self._owns:
            self.Free()
            return
        state = attached(self)
        if state is not None:
            state.free()

    def Free(self) -> None:
        """Free the communicator and all that topompi keeps with it; collective."""
        self._release()
        super().Free()

    def Disconnect(self) -> None:
        """Wait for pending communication, then free the communicator and all that topompi keeps with it; collective."""
        self._release()
        super().Disconnect()

    def Revoke(self) -> None:
        """Revoke the communicator, and those that topompi keeps with it: no rank waits in these either."""
        super().Revoke()
        if (state := attached(self)) is not None:
            state.groups.revoke()

    def _release(self) -> None:
        # MPI refuses to free predefined ones; a state that only another handle holds it frees with the communicator.
        if self == MPI.COMM_NULL or (self._held is None if self._owns else self in PREDEFINED.values()):
            return
        state = attached(self)
        if state is not None:
            state.free()

    def __reduce__(self) -> str | tuple[Callable[..., Any], tuple[Any, ...]]:
        """Predefined communicators are pickled by name, others refuse, as mpi4py's do."""
        for name, predefined in PREDEFINED.items():
            if self == predefined:
                return name if self is getattr(MPI, name) else (_named, (type(self), name))
        raise ValueError(f"cannot serialize '{type(self).__module__}.{type(self).__qualname__}' instance")


def _named(kind: type[Handle], name: str) -> Handle:
    """A new handle of the predefined communicator of this name, as mpi4py makes one for all but its constants."""
    now: Any = getattr(MPI, name)
    handle: Handle = kind._bare(now)
    handle._share(now)
    return handle


def pickle_by_name() -> None:
    """Let mpi4py's own handles of predefined communicators be pickled where one of ours has the name."""
    copyreg.pickle(NativeIntracomm, _reduced)


def _reduced(comm: MPI.Intracomm) -> Any:
    """As mpi4py has it: what has a name in its module is pickled by it, another handle of that is made anew."""
    if isinstance(comm, Handle):  # its class may equal mpi4py's
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
    """The communicator that has this name in ``mpi4py.MPI`` now."""
    comm: MPI.Intracomm = getattr(MPI, name)
    return comm
