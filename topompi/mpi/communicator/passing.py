"""Collective calls that the MPI library always runs; topompi only counts or checks them if the user asks for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MemberDescriptorType

from ..dispatch.calls import DEFAULTS, passing
from ..dispatch.counters import counters
from ..execution.native import NativeIntracomm
from ..execution.specs import CALLS
from . import agreement
from .handle import Handle

__all__ = ["BUFFERS", "NEIGHBOURS", "OBJECTS", "pass_on"]


def _of_object(parameter: str) -> str:
    """A buffer parameter's name in the method for objects: ``obj`` for ``buf``, ``sendobj`` for ``sendbuf``."""
    return {"buf": "obj", "sendbuf": "sendobj"}.get(parameter, parameter)


# Parameter names by method, by which the checks find the messages. The non-blocking and persistent forms of a method
# have the same parameters as the blocking form.
BUFFERS = {name: spec.parameters for name, spec in CALLS.items()}
OBJECTS = {
    name.lower(): tuple(_of_object(one) for one in parameters if one != "recvbuf")
    for name, parameters in BUFFERS.items()
    if hasattr(NativeIntracomm, name.lower())
}
NEIGHBOURS = {
    "neighbor_allgather": ("sendobj",),
    "neighbor_alltoall": ("sendobj",),
}


# Reasons why the MPI library runs a call.
_REASONS = {
    "neighbours": "the MPI library's always: pickled objects have sizes that ranks do not know of each other",
    "non-blocking": "the MPI library's always: a schedule goes on only inside calls of ours",
    "combined": "objects are combined one by one in Python: mpi4py's own; arrays go by topompi",
    "pickled": "pickled objects have sizes that ranks do not know of each other: mpi4py's own; arrays go by topompi",
    "other": "the MPI library's always",
}


def _reason(kind: type, name: str) -> str:
    """The reason why the MPI library runs the calls of a class's method."""
    if name in NEIGHBOURS:
        return _REASONS["neighbours"]
    if not issubclass(kind, NativeIntracomm):
        return _REASONS["other"]
    if name in OBJECTS:
        return _REASONS["combined" if CALLS[name.capitalize()].reduces else "pickled"]
    return _REASONS["non-blocking" if name[0] == "I" else "other"]


def pass_on(
    kind: type,
    name: str,
    parameters: tuple[str, ...],
    checked: bool = True,
    slot: MemberDescriptorType | None = None,
    first: Callable[[object], None] = lambda comm: None,
) -> None:
    """Replace a method of a class by one that counts and checks the call before the MPI library runs it.

    :param kind: the class of topompi that inherits the method from mpi4py's class.
    :param name: name of the method, for example ``Ibcast``.
    :param parameters: names of the method's parameters in order, without ``info``, which only ``*_init`` methods have.
    :param checked: True if ``TOPOMPI_CHECK`` applies; False for intercommunicators, whose two groups pass different
        arguments.
    :param slot: the descriptor of the slot in which communicators of the class keep their table of calls; None if they
        have no table.
    :param first: function of the communicator that is called before the call.
    """
    call: Callable[..., object] = getattr(kind, name)
    reason = _reason(kind, name)

    @functools.wraps(call)
    def method(self: object, *args: object, **kwargs: object) -> object:
        if counters.enabled:
            counters.count(name, 0, "native", reason)
        first(self)
        if not (checked and isinstance(self, Handle)):  # self may be mpi4py's own communicator
            return call(self, *args, **kwargs)
        given = {**DEFAULTS, **dict(zip(parameters, args, strict=False)), **kwargs}
        root, op = (given.get(one) if one in parameters else None for one in ("root", "op"))
        with agreement.checked(self, name, tuple(map(given.get, parameters)), root, op):
            return call(self, *args, **kwargs)

    setattr(kind, name, method if slot is None else passing(method, call, slot))
