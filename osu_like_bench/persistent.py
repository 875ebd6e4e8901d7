"""Persistent collectives: requests are made once, and a timed call lasts from their start to their completion."""

from __future__ import annotations

from mpi4py import MPI

from .operations import Call, Operation

__all__ = ["persistent"]


class Persistent(Operation):
    """A persistent collective; ``bind`` makes its request, and a call is ``Start`` and ``Wait``."""

    def __init__(self, rank: int, ranks: int, nbytes: int) -> None:
        super().__init__(rank, ranks, nbytes)
        self._requests: list[MPI.Prequest] = []

    def bind(self, comm: MPI.Intracomm, root: int) -> Call:
        request = self.called(comm, f"{self.method}_init", root)()
        self._requests.append(request)

        def call() -> None:
            request.Start()
            request.Wait()

        return call

    def release(self) -> None:
        for request in self._requests:
            request.Free()
        self._requests.clear()


def persistent(kind: type[Operation]) -> type[Operation]:
    """Return the operation that measures the persistent counterpart of a collective (``Bcast_init`` for ``Bcast``)."""
    return type(f"Persistent{kind.__name__}", (Persistent, kind), {"title": f"Persistent {kind.title}"})
