"""A communicator's levels, as calls of one kind use them: sub-communicators of leaders, and the stages there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi4py import MPI

from .lru import LRU
from .native import NativeIntracomm

if TYPE_CHECKING:
    from ..schedules import Hierarchy, RootedPlan

__all__ = ["Levels"]

STAGES_HELD = 128  # of the latest roots and sizes; each holds O(p) numbers


class Levels:
    """One sub-communicator a level for the calls of one kind; collective over the communicator: one split a level.

    :param comm: the user's communicator; not owned.
    :param hierarchy: the ranks, divided by levels.
    :param alone: a communicator of this rank only; not owned.
    :ivar parts: level -> this rank's sub-communicator there, for the levels where it is a member.
    :ivar stages: plans of the latest roots, and programs of the latest roots and sizes.
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
        """The stages that this rank has in a collective over leaders with the given root."""
        plan: RootedPlan = self.stages.made(root, lambda: self._hierarchy.plan(root, self.rank))
        return plan

    def free(self) -> None:
        """Free the sub-communicators; collective."""
        self.stages.clear()
        for part in self.parts.values():
            part.Free()
