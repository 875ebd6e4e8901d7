"""The sub-communicators of one communicator: made once, when they are first needed, and freed with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi4py import MPI

from .levels import Levels

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..schedules import Hierarchy

__all__ = ["Groups"]

# Duplicates of COMM_SELF that no communicator uses now: making one takes as long as making a communicator of all ranks.
_spare: list[MPI.Intracomm] = []

FIRST_TAG = 100  # those below are of calls that block, by number of the method
MOST_TAGS = 32767 - FIRST_TAG  # MPI 4.1, 9.1.2: MPI_TAG_UB is at least 32767


class Groups:
    """A communicator divided by levels, and the communicators that we make for it.

    These are splits and duplicates of the user's communicator, with contexts of their own, so that our messages
    never match the user's.

    :param comm: the user's communicator; not owned.
    :param hierarchy: the ranks, divided by levels.
    :ivar usable: whether it has not been freed.
    """

    def __init__(self, comm: MPI.Intracomm, hierarchy: Hierarchy) -> None:
        self.comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()
        self.hierarchy = hierarchy
        self.usable = True
        self._levels: dict[Hashable, Levels] = {}
        self._tags = 0
        self._alone: MPI.Intracomm | None = None
        self._messages: MPI.Intracomm | None = None

    @property
    def divided(self) -> bool:
        """Whether there is a level between the communicator and its ranks."""
        return self.hierarchy.num_levels > 1

    def levels(self, kind: Hashable) -> Levels:
        """The sub-communicators of leaders for calls of one kind; collective at their first use.

        What a call leaves behind that one rank refuses is met by none of another kind.
        """
        levels = self._levels.get(kind)
        if levels is None:
            self._check_usable()
            levels = self._levels[kind] = Levels(self.comm, self.hierarchy, self.alone)
        return levels

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

    def _check_usable(self) -> None:
        if not self.usable:
            raise RuntimeError("communicator already freed")

    def free(self) -> None:
        """Free all communicators but the user's; collective. Further use is refused, a second call does nothing."""
        if not self.usable:
            return
        self.usable = False
        if not MPI.Is_finalized():  # else MPI has freed them
            for levels in self._levels.values():
                levels.free()
            if self._messages is not None:
                self._messages.Free()
            if self._alone is not None:
                _spare.append(self._alone)  # what goes over it is complete when the call returns
        self._levels.clear()
        self._alone = self._messages = None
