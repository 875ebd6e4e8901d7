"""Persistent requests that call a counting function at each start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpi4py import MPI

__all__ = ["Prequest", "counted"]

_Native = MPI.Prequest  # mpi4py's own class, because the launcher replaces ``MPI.Prequest`` by the class below


class Prequest(MPI.Prequest):
    """A persistent request that calls its attribute ``count`` after each start."""

    count: Callable[[], None]

    def Start(self) -> None:
        """Start the request, and call ``count``."""
        super().Start()
        self.count()

    @classmethod
    def Startall(cls, requests: list[MPI.Prequest]) -> None:
        """Start all requests, then call ``count()`` of each request that has this attribute."""
        _Native.Startall(requests)
        for request in requests:
            getattr(request, "count", _nothing)()


def _nothing() -> None:
    pass


def counted(request: Any, count: Callable[[], None]) -> Any:
    """Return a persistent request that calls ``count`` at each start.

    A request of topompi is changed in place; one of mpi4py is replaced by a new `Prequest`.
    """
    if type(request) is _Native:
        ours = Prequest(request)
        ours.count = count
        return ours
    start = request.Start

    def counted_start() -> None:
        start()
        count()

    request.Start, request.count = counted_start, count
    return request
