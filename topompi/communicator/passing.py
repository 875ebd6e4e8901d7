"""Collective calls that go to the MPI library as they are: counted, and checked, where that is asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from ..dispatch.calls import DEFAULTS, passing
from ..dispatch.counters import counters
from ..execution.specs import CALLS
from . import agreement

__all__ = ["BUFFERS", "NEIGHBOURS", "OBJECTS", "pass_on"]


def _of_object(parameter: str) -> str:
    """The name of a parameter where an object takes the place of a buffer."""
    return {"buf": "obj", "sendbuf": "sendobj"}.get(parameter, parameter)


# Names of the arguments, for the checks. Non-blocking and persistent forms take those of the blocking ones.
BUFFERS = {name: spec.parameters for name, spec in CALLS.items()}
OBJECTS = {
    name.lower(): tuple(_of_object(one) for one in parameters if one != "recvbuf")
    for name, parameters in BUFFERS.items()
    if hasattr(MPI.Intracomm, name.lower())
}
_neighbours = [f"eighbor_{kind}{form}" for kind in ("allgather", "alltoall") for form in ("", "v")]
_neighbours.append("eighbor_alltoallw")
NEIGHBOURS = {
    **{f"N{name}{end}": ("sendbuf", "recvbuf") for name in _neighbours for end in ("", "_init")},
    **{f"In{name}": ("sendbuf", "recvbuf") for name in _neighbours},
    "neighbor_allgather": ("sendobj",),
    "neighbor_alltoall": ("sendobj",),
}


def pass_on(kind: type, name: str, parameters: tuple[str, ...], checked: bool = True, slot: Any = None) -> None:
    """Give a class a method that calls the MPI library's, and can be counted and checked.

    :param kind: the class.
    :param name: of the method.
    :param parameters: names of its arguments, those that only some forms have left out.
    :param checked: whether all ranks can be asked to agree.
    :param slot: in which the class's communicators have their table of calls, if they have one.
    """
    call: Callable[..., Any] = getattr(kind, name)

    @functools.wraps(call)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if counters.enabled:
            counters.count(name, 0, "native", "not handled by topompi")
        if checked and self._checks:
            given = {**DEFAULTS, **dict(zip(parameters, args, strict=False)), **kwargs}
            root, op = (given.get(one) if one in parameters else None for one in ("root", "op"))
            agreement.check(self, name, tuple(map(given.get, parameters)), root, op)
        return call(self, *args, **kwargs)

    setattr(kind, name, method if slot is None else passing(method, call, slot))
