"""Collective calls that go to the MPI library as they are: counted, and checked, where that is asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from ..dispatch.counters import counters
from . import agreement

__all__ = ["BUFFERS", "NEIGHBOURS", "OBJECTS", "pass_on"]

# Names of the arguments, for the checks. Non-blocking and persistent forms take those of the blocking ones.
OBJECTS = {
    "barrier": (),
    "bcast": ("obj", "root"),
    "gather": ("sendobj", "root"),
    "scatter": ("sendobj", "root"),
    "allgather": ("sendobj",),
    "alltoall": ("sendobj",),
    "reduce": ("sendobj", "op", "root"),
    "allreduce": ("sendobj", "op"),
    "scan": ("sendobj", "op"),
    "exscan": ("sendobj", "op"),
}
BUFFERS = {
    "Barrier": (),
    "Bcast": ("buf", "root"),
    "Gather": ("sendbuf", "recvbuf", "root"),
    "Gatherv": ("sendbuf", "recvbuf", "root"),
    "Scatter": ("sendbuf", "recvbuf", "root"),
    "Scatterv": ("sendbuf", "recvbuf", "root"),
    "Allgather": ("sendbuf", "recvbuf"),
    "Allgatherv": ("sendbuf", "recvbuf"),
    "Alltoall": ("sendbuf", "recvbuf"),
    "Alltoallv": ("sendbuf", "recvbuf"),
    "Alltoallw": ("sendbuf", "recvbuf"),
    "Reduce": ("sendbuf", "recvbuf", "op", "root"),
    "Allreduce": ("sendbuf", "recvbuf", "op"),
    "Reduce_scatter": ("sendbuf", "recvbuf", "recvcounts", "op"),
    "Reduce_scatter_block": ("sendbuf", "recvbuf", "op"),
    "Scan": ("sendbuf", "recvbuf", "op"),
    "Exscan": ("sendbuf", "recvbuf", "op"),
}
_neighbours = [f"eighbor_{kind}{form}" for kind in ("allgather", "alltoall") for form in ("", "v")]
_neighbours.append("eighbor_alltoallw")
NEIGHBOURS = {
    **{f"N{name}{end}": ("sendbuf", "recvbuf") for name in _neighbours for end in ("", "_init")},
    **{f"In{name}": ("sendbuf", "recvbuf") for name in _neighbours},
    "neighbor_allgather": ("sendobj",),
    "neighbor_alltoall": ("sendobj",),
}
DEFAULTS = {"root": 0, "op": MPI.SUM, "recvcounts": None}


def pass_on(kind: type, name: str, parameters: tuple[str, ...], checked: bool = True) -> None:
    """Give a class a method that calls the MPI library's, and can be counted and checked.

    :param name: of the method.
    :param parameters: names of its arguments, those that only some forms have left out.
    :param checked: whether all ranks can be asked to agree.
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

    setattr(kind, name, method)
