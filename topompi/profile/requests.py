"""Persistent requests that are counted at each start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpi4py import MPI

__all__ = ["Prequest", "counted"]

_Native = MPI.Prequest  # the launcher puts ours in its place


class Prequest(MPI.Prequest):
    """A persistent request that is counted when it is started."""

    count: Callable[[], None]

    def Start(self) -> None:
        """Start the request, and count it."""
        super().Start()
        self.count()

    @classmethod
    def Startall(cls, requests: list[MPI.Prequest]) -> None:
        """Start requests, and count those that are counted."""
        _Native.Startall(requests)
        for request in requests:
            if isinstance(request, Prequest):
                request.count()


def counted(request: Any, count: Callable[[], None]) -> Any:
    """The same request, counted at each start."""
    if isinstance(request, _Native):
        ours = Prequest(request)
        ours.count = count
        return ours
    start = request.Start  # a plan of ours, which is no request of MPI

    def counted_start() -> None:
        start()
        count()

    request.Start = counted_start
    return request
