"""The cost of counting a call, measured on the present machine."""

from __future__ import annotations

import time
from statistics import median
from types import SimpleNamespace

import numpy as np

from ..execution.specs import CALLS
from .collectives import collective
from .counted import Method
from .counting import CountedRanks, Recorded, TrafficCounters
from .messages import sending

__all__ = ["call_seconds"]


class _Communicator:
    """A stand-in for a communicator, with the attributes that counting methods use."""

    def __init__(self, group: CountedRanks) -> None:
        self._topompi_recorded = Recorded(group)
        self._topompi_state = SimpleNamespace(executor=SimpleNamespace(ran=None))


def call_seconds(calls: int, rounds: int) -> dict[str, float]:
    """Median processor seconds that counting adds to one call, by name of the call (``Send``, ``Bcast``, ``Alltoall``).

    :param calls: number of calls that are timed together.
    :param rounds: number of repetitions.

    Cost: about 2 us per call and round.
    """
    counters, message = TrafficCounters(8, np.arange(8)), np.zeros(1)
    group = counters.group(0, np.arange(8))
    comm = _Communicator(group)

    def group_of(_: _Communicator) -> CountedRanks:
        return group

    forms = {
        "Send": (sending(_nothing, counters, group_of), (comm, message, 1, 0)),
        "Bcast": (collective(_nothing, counters, group_of, CALLS["Bcast"]), (comm, message, 0)),
        "Alltoall": (collective(_nothing, counters, group_of, CALLS["Alltoall"]), (comm, message, message)),
    }
    return {
        name: median(_seconds(call, given, calls) - _seconds(_nothing, given, calls) for _ in range(rounds))
        for name, (call, given) in forms.items()
    }


def _nothing(*_: object) -> None:
    """A method without effect, in place of the MPI library's."""


def _seconds(call: Method, arguments: tuple[object, ...], calls: int) -> float:
    begin = time.process_time()
    for _ in range(calls):
        call(*arguments)
    return (time.process_time() - begin) / calls
