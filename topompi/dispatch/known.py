"""How calls run whose like has been chosen for, where the methods of a communicator find it at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpi4py import MPI
from numpy import ndarray

from ..execution.methods import SIZED_BY
from .direct import Calls, number

__all__ = ["UNKNOWN", "Alike", "Known", "Run"]

Run = Callable[..., object]  # of a communicator and the arguments of the method
# Of a method, dictionaries in dictionaries: by the ``id`` of the operation and by the root, where it has them, then by
# the bytes of the message.
Alike = dict[Any, Any]
UNKNOWN: Alike = {}  # never written to

MOST = 1024  # of each kind of key: beyond, all are forgotten, and chosen for again


class Known:
    """How calls of one communicator run, method by method.

    :ivar left: those that are left to the MPI library.
    """

    def __init__(self) -> None:
        self._methods: dict[str, Alike] = {}
        self.left = Calls()

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
        if run is getattr(MPI.Intracomm, method):
            self.left.add(number(method), root or 0, op, message.nbytes)
        return alike

    def clear(self) -> None:
        """Forget all; whoever holds how calls of a method run sees it."""
        self.left.clear()
        for alike in self._methods.values():
            alike.clear()


def _room(runs: Alike) -> Alike:
    """The dictionary, emptied where it is full."""
    if len(runs) >= MOST:
        runs.clear()
    return runs
