"""The drop-in communicator."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from mpi4py import MPI

from . import hierarchical
from .job import find_topology
from .levels import Levels, attach, attached
from .topology import TopologyInterface

__all__ = ["Intracomm"]

_Native = MPI.Intracomm


class Intracomm(MPI.Intracomm):
    """An intracommunicator whose rooted collectives follow the network.

    ``Bcast``, ``Gather``, ``Gatherv``, ``Scatter`` and ``Scatterv`` run over the leaders of the job's levels (switch
    clusters, hosts, packages), each stage by the MPI library's own collective; all else is the MPI library's. Their
    contract is mpi4py's. Where no level says anything (one host, or one rank a host on one leaf) the calls are native.

    The object is a second handle of the communicator it wraps: no duplicate is made. The topology is found once a
    communicator and kept with it as an MPI attribute; it is freed with it, or by ``free``.

    :param comm: the communicator; collective over it.
    :param topology: a source (see ``topompi.topology.load``), or a ``TopologyInterface`` over the ranks of ``comm``,
        alike on all ranks; else what the communicator has already, else ``TOPOMPI_TOPOLOGY``, else the hosts' own
        levels. A new topology takes the place of the one that the communicator has.
    :param hosts: virtual placement: host of each rank, or a host list that is filled in blocks; else
        ``TOPOMPI_HOSTS``, else the hosts where the ranks run.
    :raises TopompiError: the same on all ranks, if the source cannot be read or hosts are not in it.
    """

    def __new__(
        cls,
        comm: MPI.Intracomm | None = None,
        topology: TopologyInterface | str | os.PathLike[str] | None = None,
        hosts: Sequence[str] | str | None = None,
    ) -> Intracomm:
        return super().__new__(cls, comm)

    def __init__(
        self,
        comm: MPI.Intracomm | None = None,
        topology: TopologyInterface | str | os.PathLike[str] | None = None,
        hosts: Sequence[str] | str | None = None,
    ) -> None:
        if self == MPI.COMM_NULL:
            return
        if isinstance(topology, TopologyInterface):
            if topology.num_ranks != self.Get_size():
                raise ValueError(f"expecting a topology over {self.Get_size()} ranks, got {topology.num_ranks}")
            attach(self, Levels(MPI.Intracomm(self), topology))
        elif topology is not None or hosts is not None or attached(self) is None:
            attach(self, Levels(MPI.Intracomm(self), find_topology(self, topology, hosts)))
        self._held = attached(self)

    # The levels as this handle saw them last: an attribute of ours is read far quicker than one of MPI's.
    _held: Levels | None = None

    @property
    def _levels(self) -> Levels:
        """The levels kept with this communicator; found now, collectively, where it came from a native call."""
        levels = self._held
        if levels is None or not levels.usable:
            levels = attached(self)
            if levels is None:
                levels = Levels(MPI.Intracomm(self), find_topology(self))
                attach(self, levels)
            self._held = levels
        return levels

    @property
    def network(self) -> TopologyInterface:
        """Where the ranks sit in the network. (``topology`` is mpi4py's: the kind of a Cartesian or graph topology.)"""
        return self._levels.interface

    @property
    def sub_communicators(self) -> dict[str, MPI.Intracomm]:
        """This rank's sub-communicators, outermost first, named by what they unite; collective at its first use.

        Each unites the leaders, the lowest ranks, of one level within a cluster of the level above; the last one
        unites the ranks of one innermost cluster. A rank that leads nothing is in the last one only. They belong to
        this communicator: do not free them.
        """
        levels = self._levels
        if not levels.divides:
            return {}
        names = [f"leaders {level.name}" for level in levels.interface.levels] + ["ranks"]
        return {names[level - 1]: part for level, part in sorted(levels.parts.items())}

    def free(self) -> None:
        """Free the sub-communicators kept with this communicator; collective. The collectives above then refuse."""
        levels = attached(self)
        if levels is not None:
            levels.free()

    def Free(self) -> None:
        """Free the communicator and all that topompi keeps with it; collective."""
        self.free()
        super().Free()

    def _divided(self, root: int) -> Levels | None:
        """The levels to run a rooted collective over, None where it is the MPI library's to run or to refuse."""
        levels = self._held
        if levels is None or not levels.usable:
            levels = self._levels
            if not levels.usable:
                raise RuntimeError("communicator already freed")
        return levels if levels.divides and 0 <= root < levels.size else None

    # What is not divided goes to _Native by name: it is called a tenth of a microsecond sooner than through super().

    def Bcast(self, buf: Any, root: int = 0) -> None:
        """Broadcast a message from one rank to all others, along the network's levels."""
        levels = self._divided(root)
        if levels is None:
            _Native.Bcast(self, buf, root)
        else:
            hierarchical.bcast(levels, buf, root)

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Gather blocks of one size at one rank, along the network's levels."""
        levels = self._divided(root)
        if levels is None:
            _Native.Gather(self, sendbuf, recvbuf, root)
        else:
            hierarchical.gather(levels, sendbuf, recvbuf, root)

    def Gatherv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Gather blocks of any sizes at one rank, along the network's levels."""
        levels = self._divided(root)
        if levels is None:
            _Native.Gatherv(self, sendbuf, recvbuf, root)
        else:
            hierarchical.gatherv(levels, sendbuf, recvbuf, root)

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Scatter blocks of one size from one rank, along the network's levels."""
        levels = self._divided(root)
        if levels is None:
            _Native.Scatter(self, sendbuf, recvbuf, root)
        else:
            hierarchical.scatter(levels, sendbuf, recvbuf, root)

    def Scatterv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Scatter blocks of any sizes from one rank, along the network's levels."""
        levels = self._divided(root)
        if levels is None:
            _Native.Scatterv(self, sendbuf, recvbuf, root)
        else:
            hierarchical.scatterv(levels, sendbuf, recvbuf, root)
