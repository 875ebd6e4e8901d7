"""The sub-communicators of leaders: one rank per host, leaf switch and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi4py import MPI

from .native import NativeIntracomm

if TYPE_CHECKING:
    from ...schedules import Hierarchy

__all__ = ["Levels"]


class Levels:
    """One sub-communicator of leaders per level of the topology. Cost: one ``Split`` per level, collective.

    :param comm: the user's communicator; not freed here.
    :param hierarchy: the ranks, partitioned by each level of their topology.
    :ivar parts: sub-communicators of this rank, by level, for the levels in which the rank is a member.
    """

    def __init__(self, comm: MPI.Intracomm, hierarchy: Hierarchy) -> None:
        rank = comm.Get_rank()
        colors = {level: hierarchy.color(level, rank) for level in range(1, hierarchy.num_levels + 1)}
        split = {level: comm.Split(MPI.UNDEFINED if one < 0 else one, rank) for level, one in colors.items()}
        self.parts = {level: NativeIntracomm(part) for level, part in split.items() if part != MPI.COMM_NULL}

    def free(self) -> None:
        """Free the sub-communicators; collective."""
        for part in self.parts.values():
            part.Free()
