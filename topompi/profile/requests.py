"""Persistent requests that call a counting function at each start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpi4py import MPI

__all__ = ["Prequest", "counted"]

_Native = MPI.Prequest  # kept, because the launcher replaces the name


class Prequest(MPI.Prequest):
    """A persistent request that calls its ``count`` at each start."""

    count: Callable[[], None]

    def Start(self) -> None:
        """Start the request, and count it."""
        super().Start()
        self.count()

    @classmethod
    def Startall(cls, requests: list[MPI.Prequest]) -> None:
        """Start the requests, and count those of this class."""
        _Native.Startall(requests)
        for request in requests:
            if isinstance(request, Prequest):
                request.count()


def counted(request: Any, count: Callable[[], None]) -> Any:
    """Make a persistent request call ``count`` at each start, and return it, perhaps as a new object."""
    if isinstance(request, _Native):
        ours = Prequest(request)
        ours.count = count
        return ours
    start = request.Start  # a plan of topompi, which is not an MPI request

    def counted_start() -> None:
        start()
        count()

    request.Start = counted_start
    return request
