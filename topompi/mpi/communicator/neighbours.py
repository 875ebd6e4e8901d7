"""The neighbourhood collectives, by the algorithm chosen for their graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from time import perf_counter
from typing import TYPE_CHECKING

from mpi4py import MPI

from ..dispatch.choosing import UNPLANNED
from ..dispatch.counters import counters
from ..execution.native import NativeTopocomm
from ..execution.specs import NEIGHBOUR_CALLS
from . import agreement
from .handle import Handle, calls_of, plain, state_seen
from .state import working

if TYPE_CHECKING:
    from ..dispatch.neighbours import Neighbours

__all__ = ["known_to", "take_neighbours"]


def take_neighbours(kind: type) -> None:
    """Replace the neighbourhood methods of a class by topompi's.

    :param kind: the class of communicators with a topology.
    """
    for name in NEIGHBOUR_CALLS:
        setattr(kind, name, _blocking(name))
        setattr(kind, f"{name}_init", _persistent(name))
        setattr(kind, f"I{name.lower()}", _non_blocking(name))


def _blocking(name: str) -> Callable[..., None]:
    native, shares = getattr(NativeTopocomm, name), NEIGHBOUR_CALLS[name].shares

    @functools.wraps(native)
    def method(self: MPI.Intracomm, sendbuf: object, recvbuf: object) -> None:
        known = known_to(self)
        if known is not None and known.again(self, name, shares, native, (sendbuf, recvbuf)):
            return
        if not isinstance(self, Handle) or _left(self):
            native(self, sendbuf, recvbuf)
            return
        with agreement.checked(self, name, (sendbuf, recvbuf)):
            begin = perf_counter()
            choice = _neighbours(self).run(name, (sendbuf, recvbuf), functools.partial(native, self, sendbuf, recvbuf))
        if counters.enabled:
            counters.count(name, 0, choice.algorithm, choice.reason, choice.predicted, perf_counter() - begin)

    return method


def _non_blocking(name: str) -> Callable[..., MPI.Request]:
    own = f"I{name.lower()}"
    native = getattr(NativeTopocomm, own)

    @functools.wraps(native)
    def method(self: MPI.Intracomm, sendbuf: object, recvbuf: object) -> MPI.Request:
        # Without plans nothing is asked here, because the state of a new communicator is made by all ranks together.
        known = known_to(self)
        ours = isinstance(self, Handle)
        with agreement.checked(self, own, (sendbuf, recvbuf)) if ours else nullcontext():
            request, choice = (None, UNPLANNED) if known is None else known.start(name, (sendbuf, recvbuf))
            if request is None:
                request = native(self, sendbuf, recvbuf)
        if counters.enabled:
            counters.count(own, 0, choice.algorithm, choice.reason, choice.predicted)
        done: MPI.Request = request
        return done

    return method


def _persistent(name: str) -> Callable[..., object]:
    native = getattr(NativeTopocomm, f"{name}_init")

    @functools.wraps(native)
    def method(self: MPI.Intracomm, sendbuf: object, recvbuf: object, info: MPI.Info = MPI.INFO_NULL) -> object:
        if not isinstance(self, Handle) or _left(self):
            return native(self, sendbuf, recvbuf, info)
        with agreement.checked(self, f"{name}_init", (sendbuf, recvbuf)):
            request, choice = _neighbours(self).prepare(name, (sendbuf, recvbuf))
        if counters.enabled:
            counters.count(f"{name}_init", 0, choice.algorithm, choice.reason, choice.predicted)
        return native(self, sendbuf, recvbuf, info) if request is None else request

    return method


def known_to(comm: object) -> Neighbours | None:
    """The neighbourhood collectives of a communicator; None if it has made none yet, or is one of mpi4py's."""
    state = state_seen(comm) if isinstance(comm, Handle) else None
    return None if state is None else state.neighbours


def _left(comm: Handle) -> bool:
    """Whether the MPI library runs every call on a communicator."""
    if not calls_of(comm).all:
        return False
    return MPI.Comm.Get_size(comm) == 1 or not working(comm).common.policy.neighbours


def _neighbours(comm: Handle) -> Neighbours:
    """The neighbourhood collectives of a communicator, in its state."""
    state = working(comm)
    if state.neighbours is None:
        from ..dispatch.neighbours import Neighbours  # imports the cost model, and most programs have no neighbours

        state.neighbours = Neighbours(plain(comm), state)
    made: Neighbours = state.neighbours
    return made
