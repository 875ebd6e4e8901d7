"""How calls run whose like has been chosen for, where the methods of a communicator find it at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpi4py import MPI
from numpy import ndarray

__all__ = ["SIZED_BY", "UNKNOWN", "Alike", "Known", "Run"]

Run = Callable[..., object]  # of a communicator and the arguments of the method
# Of a method, dictionaries in dictionaries: by the ``id`` of the operation and by the root, where it has them, then by
# the bytes of the message.
Alike = dict[Any, Any]
UNKNOWN: Alike = {}  # never written to

# Place among the arguments of the message whose bytes are the size of the call, as ``sizes.nbytes`` has it. Calls are
# looked up by the ``nbytes`` of whatever has it: of an array, a memoryview or an ``MPI.buffer`` they are its message's.
SIZED_BY = {
    "Bcast": 0,
    "Gather": 0,
    "Scatter": 1,
    "Allgather": 1,
    "Alltoall": 1,
    "Reduce": 0,
    "Allreduce": 1,
    "Reduce_scatter": 0,
    "Reduce_scatter_block": 0,
}
MOST = 1024  # of each kind of key: beyond, all are forgotten, and chosen for again


class Known:
    """How calls of one communicator run, method by method."""

    def __init__(self) -> None:
        self._methods: dict[str, Alike] = {}

    def add(
        self, method: str, arguments: tuple[Any, ...], root: int | None, op: MPI.Op | None, run: Run
    ) -> Alike | None:
        """Run calls like this one in this way from here on.

        :param op: of a reduction, one that lasts.
        :returns: how calls of the method run; None where the size of a call is not that of an array.
        """
        if method not in SIZED_BY or type(message := arguments[SIZED_BY[method]]) is not ndarray:
            return None
        runs = alike = self._methods.setdefault(method, {})
        for key in (*(() if op is None else (id(op),)), *(() if root is None else (root,))):
            runs = _room(runs).setdefault(key, {})
        _room(runs)[message.nbytes] = run
        return alike

    def clear(self) -> None:
        """Forget all; whoever holds how calls of a method run sees it."""
        for alike in self._methods.values():
            alike.clear()


def _room(runs: Alike) -> Alike:
    """The dictionary, emptied where it is full."""
    if len(runs) >= MOST:
        runs.clear()
    return runs
