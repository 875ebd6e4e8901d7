"""Communicator methods that count the data they send, and then call the methods that they replace.

They replace the methods of topompi's classes only during a recording, so that a program that is not recorded has no
extra cost.
"""

from __future__ import annotations

from collections.abc import Callable

from ..communicator import Intracomm
from ..communicator.kinds import Topocomm
from ..execution.executor import Executor
from ..execution.specs import CALLS
from .collectives import collective, collective_later, of_objects
from .counted import Method
from .counting import TrafficCounters
from .messages import (
    EXCHANGES,
    OBJECT_SENDS,
    SENDS,
    GroupOf,
    exchanging_objects,
    sending,
    sending_later,
    sending_object,
)
from .neighbourhoods import neighbour_objects, neighbours, neighbours_later

__all__ = ["install", "remove"]

_replaced: list[tuple[type, str, object]] = []


def install(counters: TrafficCounters, group_of: GroupOf) -> None:
    """Replace methods of topompi's communicators by methods that count the data which they send.

    :param counters: the counters of the recording.
    :param group_of: function that returns the `Group` of a communicator, which translates its ranks into peers of the
        counters (ranks or hosts of the recorded communicator).
    """
    Executor.watched = True
    for name in SENDS:
        _put(Intracomm, name.capitalize(), sending, counters, group_of)
        _put(Intracomm, f"{name.capitalize()}_init", sending_later, counters, group_of)
    for name in OBJECT_SENDS:
        _put(Intracomm, name, sending_object, counters, group_of)
    for name in EXCHANGES:
        _put(Intracomm, name, sending, counters, group_of)
    _put(Intracomm, "sendrecv", exchanging_objects, counters, group_of)
    for name, spec in CALLS.items():
        for form in (name, f"I{name.lower()}"):
            _put(Intracomm, form, collective, counters, group_of, spec, form)
        _put(Intracomm, f"{name}_init", collective_later, counters, group_of, spec)
        _put(Intracomm, name.lower(), of_objects, counters, group_of, spec)
    for name in ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"):
        for form in (f"Neighbor_{name}", f"Ineighbor_{name}"):
            _put(Topocomm, form, neighbours, counters, group_of)
        _put(Topocomm, f"Neighbor_{name}_init", neighbours_later, counters, group_of)
    for name in ("allgather", "alltoall"):
        _put(Topocomm, f"neighbor_{name}", neighbour_objects, counters, group_of)


def remove() -> None:
    """Restore the methods that ``install`` replaced."""
    Executor.watched = False
    while _replaced:
        kind, name, before = _replaced.pop()
        if before is None:
            type.__delattr__(kind, name)
        else:
            type.__setattr__(kind, name, before)


def _put(kind: type, name: str, make: Callable[..., Method], counters: TrafficCounters, *more: object) -> None:
    before, native = vars(kind).get(name), getattr(kind, name, None)
    if native is not None:
        method = make(native, counters, *more)
        method.__name__, method.__doc__ = name, native.__doc__
        _replaced.append((kind, name, before))
        type.__setattr__(kind, name, method)  # under the launcher the class refuses what a program sets
