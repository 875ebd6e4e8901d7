"""The sub-communicators of one communicator: made once, when they are first needed, and freed with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi4py import MPI

from .latest import Latest

if TYPE_CHECKING:
    from ..schedules import Hierarchy, RootedPlan

__all__ = ["Groups"]

# Duplicates of COMM_SELF that no communicator uses now: making one takes as long as making a communicator of all ranks.
_spare: list[MPI.Intracomm] = []

FIRST_TAG = 100  # those below are of calls that block, by number of the method
MOST_TAGS = 32767 - FIRST_TAG  # MPI 4.1, 9.1.2: MPI_TAG_UB is at least 32767
STAGES_HELD = 128  # of the latest roots and sizes; each holds O(p) numbers


class Groups:
    """A communicator divided by levels, and the communicators that we make for it.

    These are splits and duplicates of the user's communicator, with contexts of their own, so that our messages
    never match the user's.

    :param comm: the user's communicator; not owned.
    :param hierarchy: the ranks, divided by levels.
    :ivar usable: whether it has not been freed.
    :ivar stages: plans of leaders' collectives, for the latest roots and sizes.
    """

    def __init__(self, comm: MPI.Intracomm, hierarchy: Hierarchy) -> None:
        self.comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()
        self.hierarchy = hierarchy
        self.usable = True
        self.stages = Latest(STAGES_HELD)
        self._parts: dict[int, MPI.Intracomm] | None = None
        self._tags = 0
        self._alone: MPI.Intracomm | None = None
        self._messages: MPI.Intracomm | None = None

    @property
    def divided(self) -> bool:
        """Whether there is a level between the communicator and its ranks."""
        return self.hierarchy.num_levels > 1

    @property
    def parts(self) -> dict[int, MPI.Intracomm]:
        """Level -> this rank's sub-communicator there, for the levels where it is a member.

        Collective over the communicator at its first use: one split a level.
        """
        self._check_usable()
        if self._parts is None:
            levels = range(1, self.hierarchy.num_levels + 1)
            split = [self.comm.Split(self._color(level), self.rank) for level in levels]
            self._parts = {
                level: MPI.Intracomm(part) for level, part in zip(levels, split, strict=True) if part != MPI.COMM_NULL
            }
        return self._parts

    def _color(self, level: int) -> int:
        color = self.hierarchy.color(level, self.rank)
        return MPI.UNDEFINED if color < 0 else color

    @property
    def alone(self) -> MPI.Intracomm:
        """A communicator of this rank only, with a context of its own."""
        if self._alone is None:
            try:
                self._alone = _spare.pop()
            except IndexError:
                self._alone = MPI.Intracomm(MPI.COMM_SELF).Dup()
        return self._alone

    @property
    def messages(self) -> MPI.Intracomm:
        """A duplicate of the communicator for the messages of plans; collective at its first use."""
        if self._messages is None:
            self._check_usable()
            self._messages = self.comm.Dup()
        return self._messages

    def next_tag(self) -> int:
        """The tag of one more collective whose messages may be under way beside those of others.

        The same on all ranks, if each asks once in every call that makes such a collective.
        """
        self._tags = (self._tags + 1) % MOST_TAGS
        return FIRST_TAG + self._tags

    def plan(self, root: int) -> RootedPlan:
        """The stages that this rank has in a collective over leaders with the given root."""
        plan: RootedPlan = self.stages.made(root, lambda: self.hierarchy.plan(root, self.rank))
        return plan

    def _check_usable(self) -> None:
        if not self.usable:
            raise RuntimeError("communicator already freed")

    def free(self) -> None:
        """Free all communicators but the user's; collective. Further use is refused, a second call does nothing."""
        if not self.usable:
            return
        self.usable = False
        self.stages.clear()
        if not MPI.Is_finalized():  # else MPI has freed them
            for own in (*(self._parts or {}).values(), self._messages):
                if own is not None:
                    own.Free()
            if self._alone is not None:
                _spare.append(self._alone)  # what goes over it is complete when the call returns
        self._parts = self._alone = self._messages = None
