"""The sub-communicators of leaders (one rank per host, leaf switch and so on), and the stages that run on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi4py import MPI

from .lru import LRU
from .native import NativeIntracomm

if TYPE_CHECKING:
    from ..schedules import Hierarchy, RootedPlan

__all__ = ["Levels"]

STAGES_HELD = 128  # maximum number of cached plans and programs; each has O(p) numbers on p ranks


class Levels:
    """One sub-communicator of leaders per level of the topology. Cost: one ``Split`` per level, collective.

    :param comm: the user's communicator; not freed here.
    :param hierarchy: the ranks, partitioned by each level of their topology.
    :param alone: a communicator of this rank only; not freed here.
    :ivar parts: sub-communicators of this rank, by level, for the levels in which the rank is a member.
    :ivar stages: cache of plans by root, and of programs (the calls of a plan's stages with the parts of the buffer
        that they use) by root and block size.
    """

    def __init__(self, comm: MPI.Intracomm, hierarchy: Hierarchy, alone: MPI.Intracomm) -> None:
        self.comm, self.rank, self.size, self.alone = comm, comm.Get_rank(), comm.Get_size(), alone
        self._hierarchy = hierarchy
        self.stages = LRU(STAGES_HELD)
        split = {level: comm.Split(self._color(level), self.rank) for level in range(1, hierarchy.num_levels + 1)}
        self.parts = {level: NativeIntracomm(part) for level, part in split.items() if part != MPI.COMM_NULL}

    def _color(self, level: int) -> int:
        color = self._hierarchy.color(level, self.rank)
        return MPI.UNDEFINED if color < 0 else color

    def plan(self, root: int) -> RootedPlan:
        """The plan of this rank in a collective over leaders with the given root: its stages, one per level; cached."""
        plan: RootedPlan = self.stages.made(root, lambda: self._hierarchy.plan(root, self.rank))
        return plan

    def free(self) -> None:
        """Free the sub-communicators; collective."""
        self.stages.clear()
        for part in self.parts.values():
            part.Free()
