"""The persistent collectives: planned once, started often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpi4py import MPI

from ..dispatch.counters import counters
from . import agreement
from .collectives import Collectives, choose

__all__ = ["Persistent"]

_Native = MPI.Intracomm


class Persistent(Collectives):
    """The persistent collectives that a plan can run; where none is chosen, the request is the MPI library's."""

    def Bcast_init(self, buf: Any, root: int = 0, info: MPI.Info = MPI.INFO_NULL) -> MPI.Prequest:
        """Persistent ``Bcast``."""
        return self._prepare("Bcast", (buf, root), info, root)

    def Gather_init(self, sendbuf: Any, recvbuf: Any, root: int = 0, info: MPI.Info = MPI.INFO_NULL) -> MPI.Prequest:
        """Persistent ``Gather``."""
        return self._prepare("Gather", (sendbuf, recvbuf, root), info, root)

    def Gatherv_init(self, sendbuf: Any, recvbuf: Any, root: int = 0, info: MPI.Info = MPI.INFO_NULL) -> MPI.Prequest:
        """Persistent ``Gatherv``."""
        return self._prepare("Gatherv", (sendbuf, recvbuf, root), info, root)

    def Scatter_init(self, sendbuf: Any, recvbuf: Any, root: int = 0, info: MPI.Info = MPI.INFO_NULL) -> MPI.Prequest:
        """Persistent ``Scatter``."""
        return self._prepare("Scatter", (sendbuf, recvbuf, root), info, root)

    def Scatterv_init(self, sendbuf: Any, recvbuf: Any, root: int = 0, info: MPI.Info = MPI.INFO_NULL) -> MPI.Prequest:
        """Persistent ``Scatterv``."""
        return self._prepare("Scatterv", (sendbuf, recvbuf, root), info, root)

    def Allgather_init(self, sendbuf: Any, recvbuf: Any, info: MPI.Info = MPI.INFO_NULL) -> MPI.Prequest:
        """Persistent ``Allgather``."""
        return self._prepare("Allgather", (sendbuf, recvbuf), info)

    def Allgatherv_init(self, sendbuf: Any, recvbuf: Any, info: MPI.Info = MPI.INFO_NULL) -> MPI.Prequest:
        """Persistent ``Allgatherv``."""
        return self._prepare("Allgatherv", (sendbuf, recvbuf), info)

    def Alltoall_init(self, sendbuf: Any, recvbuf: Any, info: MPI.Info = MPI.INFO_NULL) -> MPI.Prequest:
        """Persistent ``Alltoall``."""
        return self._prepare("Alltoall", (sendbuf, recvbuf), info)

    def Alltoallv_init(self, sendbuf: Any, recvbuf: Any, info: MPI.Info = MPI.INFO_NULL) -> MPI.Prequest:
        """Persistent ``Alltoallv``."""
        return self._prepare("Alltoallv", (sendbuf, recvbuf), info)

    def Alltoallw_init(self, sendbuf: Any, recvbuf: Any, info: MPI.Info = MPI.INFO_NULL) -> MPI.Prequest:
        """Persistent ``Alltoallw``."""
        return self._prepare("Alltoallw", (sendbuf, recvbuf), info)

    def Reduce_init(
        self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, root: int = 0, info: MPI.Info = MPI.INFO_NULL
    ) -> MPI.Prequest:
        """Persistent ``Reduce``."""
        return self._prepare("Reduce", (sendbuf, recvbuf, op, root), info, root, op)

    def Allreduce_init(
        self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, info: MPI.Info = MPI.INFO_NULL
    ) -> MPI.Prequest:
        """Persistent ``Allreduce``."""
        return self._prepare("Allreduce", (sendbuf, recvbuf, op), info, None, op)

    def Reduce_scatter_init(
        self,
        sendbuf: Any,
        recvbuf: Any,
        recvcounts: Sequence[int] | None = None,
        op: MPI.Op = MPI.SUM,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> MPI.Prequest:
        """Persistent ``Reduce_scatter``."""
        return self._prepare("Reduce_scatter", (sendbuf, recvbuf, recvcounts, op), info, None, op)

    def Reduce_scatter_block_init(
        self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, info: MPI.Info = MPI.INFO_NULL
    ) -> MPI.Prequest:
        """Persistent ``Reduce_scatter_block``."""
        return self._prepare("Reduce_scatter_block", (sendbuf, recvbuf, op), info, None, op)

    def _prepare(
        self,
        method: str,
        arguments: tuple[Any, ...],
        info: MPI.Info,
        root: int | None = None,
        op: MPI.Op | None = None,
    ) -> MPI.Prequest:
        """A request that runs a collective at each start: a plan's where one is chosen, else the MPI library's."""
        name = f"{method}_init"
        levels = self._working()
        if self._checks:
            agreement.check(levels.comm, name, arguments, root, op)
        choice, size = choose(levels, method, arguments, root, op, measurable=False)
        algorithm = "native" if choice.algorithm == "levels" else choice.algorithm
        if counters.enabled:
            counters.count(name, size, algorithm, choice.reason, choice.predicted)
        if algorithm == "native":
            native: MPI.Prequest = getattr(_Native, name)(levels.comm, *arguments, info)
            return native
        from ..execution import running as planned  # as late as in ``collectives``

        prepared: Any = planned.prepare(levels, method, algorithm, arguments)
        request: MPI.Prequest = prepared  # it has the methods of a request, if not its type
        return request
