"""The classes of topompi's communicators, one for each class of mpi4py."""

from __future__ import annotations

from types import FunctionType

from mpi4py import MPI

from ..dispatch.state import attached
from ..execution.native import (
    NativeCartcomm,
    NativeDistgraphcomm,
    NativeGraphcomm,
    NativeIntercomm,
    NativeIntracomm,
    NativeTopocomm,
)
from .collectives import Collectives
from .derived import CHILDREN, FOUND, adopt, give_ours, make_ours, register
from .handle import CALLS_SLOT, Handle, bare, native_of
from .lifetime import Lifetime
from .neighbours import take_neighbours
from .passing import BUFFERS, NEIGHBOURS, OBJECTS, pass_on
from .remap.methods import Reordering
from .standin import StandIn, pickle_by_place
from .state import meet_once

__all__ = ["KINDS", "Cartcomm", "Distgraphcomm", "Graphcomm", "Intercomm", "Intracomm", "handle_of"]


class Intracomm(Reordering, Collectives, metaclass=StandIn):
    """An intracommunicator whose collectives run by algorithms chosen for the network.

    A collective on buffers runs by the MPI library's algorithm, over leaders (one rank per leaf switch, host, package
    and so on), or by a schedule made for the network; the room ``selection`` chooses one of these for the call's size.
    Blocking neighbourhood collectives send small blocks of a host together, if that is predicted to pay; non-blocking
    and persistent ones do so if ``TOPOMPI_NEIGHBOURS`` says so. A schedule runs a persistent collective if a rule says
    so.
    ``bcast`` of an object runs by the algorithm chosen for the size of the pickled object; ``scan`` and ``exscan`` of
    objects run by an algorithm chosen without knowing the size. The MPI library runs all other calls with objects, and
    all other non-blocking collectives. Each call behaves as mpi4py documents it. If there is nothing to choose
    (one host without inner levels, one rank), the MPI library runs every call.

    The object is a second mpi4py object for the communicator that it wraps, which is not duplicated. The topology is
    found once per communicator, kept with it as an MPI attribute, and freed with it, or by ``free``. Communicators made
    from this one are of topompi's classes, too, with their ranks' part of its topology. For the arguments see
    ``__new__``.
    """

    __slots__ = ()


class Topocomm(Intracomm, NativeTopocomm):
    """The common base of communicators with a Cartesian or graph topology."""

    __slots__ = ()


class Cartcomm(Topocomm, NativeCartcomm):
    """A communicator with a Cartesian topology, see ``Intracomm``."""

    __slots__ = ()


class Graphcomm(Topocomm, NativeGraphcomm):
    """A communicator with a graph topology, see ``Intracomm``."""

    __slots__ = ()


class Distgraphcomm(Topocomm, NativeDistgraphcomm):
    """A communicator with a distributed graph topology, see ``Intracomm``."""

    __slots__ = ()


class Intercomm(NativeIntercomm, metaclass=StandIn):
    """An intercommunicator: the MPI library runs its collectives, and ``Merge`` makes an ``Intracomm``."""

    __slots__ = ("_topompi_lineage",)

    def Merge(self, high: bool = False) -> Intracomm:
        """A communicator of both groups; its topology is found at its first use."""
        merged = NativeIntracomm(super().Merge(high))
        ours: Intracomm = adopt(merged, self)
        return ours


def handle_of(comm: MPI.Intracomm) -> Handle:
    """A communicator as one of topompi's classes; collective if topompi has no state of the communicator yet.

    :param comm: a communicator, of mpi4py's class or topompi's.
    """
    if isinstance(comm, Handle):
        return comm
    handle: Handle = Intracomm(comm) if attached(comm) is None else bare(Intracomm, comm)
    return handle


# topompi's classes by mpi4py's name, in the order in which the class for a communicator is looked up.
KINDS: dict[str, StandIn] = {
    # MPI.Comm is not replaced. Compiled code, for example of dolfinx, looks up the class of this name, and accepts an
    # object only if the class is among the bases of the object's type. A class that replaces Comm is not.
    kind.__name__: kind
    for kind in (Cartcomm, Graphcomm, Distgraphcomm, Topocomm, Intracomm, Intercomm)
}


def _sign(*kinds: type) -> None:
    """Give the methods of classes the annotations of mpi4py's, so that their signatures are equal."""
    for kind in kinds:
        native = native_of(kind)
        for name, method in vars(kind).items():
            if isinstance(method, FunctionType) and name != "__new__":
                method.__annotations__ = getattr(native, name).__annotations__


def _complete() -> None:
    """Add the methods that are generated from tables to the classes."""
    handled, slot = vars(Collectives), CALLS_SLOT
    forms = {
        **OBJECTS,
        **{f"I{name.lower()}": parameters for name, parameters in BUFFERS.items()},
        **BUFFERS,
        **{f"{name}_init": parameters for name, parameters in BUFFERS.items()},
    }
    for name, parameters in forms.items():
        if name in ("reduce", "allreduce"):
            pass_on(Intracomm, name, parameters, first=meet_once)
        elif name not in handled:
            pass_on(Intracomm, name, parameters, slot=slot)
        if hasattr(NativeIntercomm, name):
            pass_on(Intercomm, name, parameters, checked=False)
    for name, parameters in NEIGHBOURS.items():
        pass_on(Topocomm, name, parameters, slot=slot)
    take_neighbours(Topocomm)
    for name, everyone in CHILDREN.items():
        make_ours(Intracomm, name, everyone)
    make_ours(Cartcomm, "Sub", True)
    for kind in (Intracomm, Intercomm):
        for name, owned in FOUND.items():
            if hasattr(kind, name):
                give_ours(kind, name, owned)
    _sign(Reordering, Collectives, Lifetime, Intracomm, Cartcomm, Topocomm, Intercomm)
    for name, ours in KINDS.items():
        ours.__module__ = MPI.__name__  # petsc4py and others recognise mpi4py's classes by their module
        if ours is not Topocomm:
            register(getattr(MPI, name), ours)
    pickle_by_place(KINDS)


_complete()
