"""The making, freeing and pickling of topompi's communicators."""

from __future__ import annotations

import copyreg
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from ..dispatch.state import attached, detach
from ..execution.native import NativeIntracomm
from .handle import Handle, bare, is_null, launched, lineage_of, state_seen
from .state import begin, share

if TYPE_CHECKING:
    from ...topology import TopologyInterface

__all__ = ["Lifetime", "pickle_by_name"]

# MPI's predefined communicators by name. They are read at import, because the launcher later replaces MPI.COMM_WORLD by
# topompi's handle.
PREDEFINED = {"COMM_WORLD": MPI.COMM_WORLD, "COMM_SELF": MPI.COMM_SELF, "COMM_NULL": MPI.COMM_NULL}


class Lifetime(Handle):
    """A communicator with the methods that make and free it."""

    __slots__ = ()

    def __new__(
        cls,
        comm: MPI.Intracomm | None = None,
        topology: TopologyInterface | str | os.PathLike[str] | None = None,
        hosts: Sequence[str] | str | None = None,
    ) -> Lifetime:
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
        self: Lifetime = bare(cls, comm)
        if is_null(self):
            return self
        if topology is None and hosts is None and (isinstance(comm, Handle) or launched() is not None):
            share(self, comm)
        else:
            begin(self, topology, hosts)
        return self

    def free(self) -> None:
        """Free topompi's state of this communicator; collective. Its collectives then raise RuntimeError.

        If the communicator was made from one of topompi's, it is freed itself, too, as by mpi4py's ``free``. If the
        user wrapped a communicator, it is not freed, because the user owns it. The launcher's ``MPI.COMM_WORLD`` stays
        usable, as mpi4py's does.
        """
        if is_null(self) or self is MPI.COMM_WORLD or self is MPI.COMM_SELF:
            return
        lineage = lineage_of(self)
        if lineage.lasts:
            super().free()  # for MPI.COMM_WORLD and COMM_SELF this only makes the handle null
        elif lineage.owned:
            Lifetime.Free(self)
        elif (state := attached(self)) is not None:
            state.free()

    def Free(self) -> None:
        """Free the communicator and all state that topompi keeps with it; collective."""
        _release(self)
        super().Free()

    def Disconnect(self) -> None:
        """Wait for pending communication, then free the communicator and topompi's state of it; collective."""
        _release(self)
        super().Disconnect()

    def Revoke(self) -> None:
        """Revoke the communicator and the communicators that topompi made for it, so that no rank waits in them."""
        super().Revoke()
        if (state := attached(self)) is not None:
            state.groups.revoke()

    def __reduce__(self) -> str | tuple[Callable[..., object], tuple[object, ...]]:
        """Pickle predefined communicators by name; refuse all others, as mpi4py does."""
        for name, predefined in PREDEFINED.items():
            if self == predefined:
                return name if self is getattr(MPI, name) else (_named, (type(self), name))
        raise ValueError(f"cannot serialize '{type(self).__module__}.{type(self).__qualname__}' instance")


def _release(comm: Handle) -> None:
    """Free topompi's state of a communicator that is about to be freed.

    MPI refuses to free predefined communicators. A state that only another handle has seen is freed by MPI's attribute
    callback, together with the communicator.
    """
    if is_null(comm) or (state_seen(comm) is None if lineage_of(comm).owned else comm in PREDEFINED.values()):
        return
    detach(comm)


def _named(kind: type[Handle], name: str) -> Handle:
    """A new handle of the predefined communicator of this name: the unpickled form of a user's handle."""
    now = getattr(MPI, name)
    handle: Handle = bare(kind, now)
    share(handle, now)
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
