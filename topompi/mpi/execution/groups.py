"""The sub-communicators of one communicator: each is made at its first use and freed with the communicator."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

from .contexts import TAGS, Channel, Context, alone, context_of
from .native import NativeIntracomm
from .talks import Talks

if TYPE_CHECKING:
    from ...schedules import Hierarchy

__all__ = ["Groups"]

# Numbers of the channels for the ranks' joint decisions and for roll calls (checks that all ranks can read their
# arguments); the channel of a blocking call has the number of its method, from 1.
TALKS, ROLL_CALL = 98, 99
FIRST_NEW = 100  # number of the first channel that ``new_channel`` returns


class Groups:
    """A communicator, its ranks divided by levels, and the communicators that topompi makes from it.

    These communicators are made by ``Split``: their messages never match the user's, and they do not inherit the user's
    attributes.

    :param comm: the user's communicator; not freed here.
    :param hierarchy: the ranks, partitioned by each level of their topology, for example hosts and leaf switches.
    :ivar usable: False once the groups are freed.
    :ivar talks: the messages by which the ranks decide together.
    """

    def __init__(self, comm: MPI.Intracomm, hierarchy: Hierarchy) -> None:
        self.comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()
        self.hierarchy = hierarchy
        self.usable = True
        self._levels: LeaderLevels | None = None
        self._contexts: list[Context] = []  # one more after each 32,668 new channels, which use up the tags of one
        self._next = FIRST_NEW
        self.talks = Talks(self.rank, self.size, partial(self.channel, TALKS))

    @property
    def divided(self) -> bool:
        """Whether the topology has a level between the communicator and single ranks."""
        return self.hierarchy.num_levels > 1

    @property
    def levels(self) -> LeaderLevels:
        """The sub-communicators of leaders; collective at their first use."""
        if self._levels is None:
            self._check_usable()
            self._levels = LeaderLevels(self.comm, self.hierarchy)
        return self._levels

    @property
    def alone(self) -> MPI.Intracomm:
        """A communicator of this rank only."""
        return alone()

    @property
    def connected(self) -> bool:
        """Whether a communicator for messages of plans exists; the same on all ranks."""
        return bool(self._contexts)

    def connect(self) -> None:
        """Make a communicator for messages of plans; collective. A second call does nothing."""
        if not self._contexts:
            self._check_usable()
            self._contexts.append(context_of(self.comm))

    def channel(self, number: int) -> Channel:
        """The channel (communicator and tag) for messages of one purpose; collective at the first use of any channel.

        :param number: number of the purpose: ``CallSpec.number`` for a method's plans, or ``TALKS`` or ``ROLL_CALL``.
        """
        self.connect()
        return self._contexts[0].channel(number)

    def new_channel(self) -> Channel:
        """A new channel (communicator and tag), for a collective that may run at the same time as any others.

        All ranks get the same channel if each calls this once per persistent collective and per reduction of objects.
        No channel is returned twice, because persistent collectives may be started again at any time.

        Cost: O(1); after each 32,668 channels a new communicator is made, collectively.
        """
        self.connect()
        if self._next == TAGS:
            self._check_usable()
            self._contexts.append(context_of(self.comm))
            self._next = FIRST_NEW
        self._next += 1
        return self._contexts[-1].channel(self._next - 1)

    def held(self, place: int = -1) -> Context:
        """A holder of a communicator for messages of plans, which lasts until the holder is freed, too.

        :param place: place of the communicator: 0 for that of ``channel``, -1 for that of the latest new channel.
        """
        return self._contexts[place].held()

    @cached_property
    def threaded(self) -> bool:
        """Whether several threads of each rank may call MPI at once; collective at its first use."""
        alone = np.array([MPI.Query_thread() < MPI.THREAD_MULTIPLE], dtype=np.int64)
        return not self.talks.largest(alone)[0]

    def revoke(self) -> None:
        """Revoke the communicators made here, so that no rank waits in them for ever."""
        leading = () if self._levels is None else self._levels.parts.values()
        for comm in (*(context.comm for context in self._contexts), *leading):
            with suppress(NotImplementedError):
                comm.Revoke()

    def _check_usable(self) -> None:
        if not self.usable:
            raise RuntimeError("communicator already freed")

    def free(self) -> None:
        """Free all communicators but the user's; collective. Any later use raises; a second call does nothing."""
        if not self.usable:
            return
        self.usable = False
        if not MPI.Is_finalized():  # else MPI_Finalize has freed them
            if self._levels is not None:
                self._levels.free()
            for context in self._contexts:
                context.free()
        self._levels = None
        self._contexts.clear()


class LeaderLevels:
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
