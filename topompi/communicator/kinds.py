"""The classes of our communicators, one for each of mpi4py's."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

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
from .handle import Handle
from .passing import BUFFERS, NEIGHBOURS, OBJECTS, pass_on
from .remap.methods import Reordering
from .standin import StandIn, pickle_by_place

__all__ = ["KINDS", "Cartcomm", "Distgraphcomm", "Graphcomm", "Intercomm", "Intracomm"]


class Intracomm(Reordering, Collectives, metaclass=StandIn):
    """An intracommunicator whose collectives follow the network.

    A buffer collective runs natively, over the leaders of the job's levels (switch clusters, hosts, packages), or as a
    schedule made for the network, whichever is chosen for its size (see ``topompi.selection``); the MPI library's own
    is always a candidate. ``bcast`` follows the choice for its object's bytes once pickled. Other calls with objects
    but scans, non-blocking and neighbourhood collectives are the MPI library's. The contract of each is mpi4py's. Where
    there is nothing to choose (one host without inner levels, one rank) the methods are the MPI library's themselves.

    The object is a second handle of the communicator it wraps: no duplicate is made. The topology is found once for
    each communicator and kept with it as an MPI attribute; it is freed with it, or by ``free``. Communicators made
    from this one are of our classes too, and have their ranks' part of its topology.

    Its arguments are those of ``__new__``.
    """


class Topocomm(Intracomm, NativeTopocomm):
    """What communicators with a Cartesian or graph topology have in common."""


class Cartcomm(Topocomm, NativeCartcomm):
    """A communicator with a Cartesian topology, see ``Intracomm``."""


class Graphcomm(Topocomm, NativeGraphcomm):
    """A communicator with a graph topology, see ``Intracomm``."""


class Distgraphcomm(Topocomm, NativeDistgraphcomm):
    """A communicator with a distributed graph topology, see ``Intracomm``."""


class Intercomm(NativeIntercomm, metaclass=StandIn):
    """An intercommunicator: its collectives are the MPI library's, and ``Merge`` makes an ``Intracomm``."""

    _checks = 0  # what ``Merge`` makes inherits it; calls here are not checked: the two groups say other things
    _family = _cut = _bequest = None
    _owns = True

    @classmethod
    def _bare(cls, comm: MPI.Comm | None) -> Any:
        return cls.__new__(cls, comm)

    def Merge(self, high: bool = False) -> Intracomm:
        """One communicator of both groups; its topology is found at its first use."""
        merged: Any = NativeIntracomm(super().Merge(high))
        ours: Intracomm = adopt(merged, self)
        return ours


# In the order in which a communicator's class is looked for.
KINDS: dict[str, StandIn] = {
    # Not Comm: compiled code asks for it, as dolfinx does, by the bases of a class alone.
    kind.__name__: kind
    for kind in (Cartcomm, Graphcomm, Distgraphcomm, Topocomm, Intracomm, Intercomm)
}


def _complete() -> None:
    """Add the methods that are made from tables to the classes."""
    handled, slot = vars(Collectives), vars(Handle)["_calls"]
    forms = {
        **OBJECTS,
        **{f"I{name.lower()}": parameters for name, parameters in BUFFERS.items()},
        **BUFFERS,
        **{f"{name}_init": parameters for name, parameters in BUFFERS.items()},
    }
    for name, parameters in forms.items():
        if name not in handled:
            pass_on(Intracomm, name, parameters, slot=slot)
        if hasattr(NativeIntercomm, name):
            pass_on(Intercomm, name, parameters, checked=False)
    for name, parameters in NEIGHBOURS.items():
        pass_on(Topocomm, name, parameters, slot=slot)
    for name, everyone in CHILDREN.items():
        make_ours(Intracomm, name, everyone)
    make_ours(Cartcomm, "Sub", True)
    for kind in (Intracomm, Intercomm):
        for name, owned in FOUND.items():
            if hasattr(kind, name):
                give_ours(kind, name, owned)
    for name, ours in KINDS.items():
        ours.__module__ = MPI.__name__  # by which petsc4py and others know a communicator of mpi4py's
        if ours is not Topocomm:
            register(getattr(MPI, name), ours)
    pickle_by_place(KINDS)


_complete()
