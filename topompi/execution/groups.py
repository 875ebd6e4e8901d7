"""The sub-communicators of one communicator: made once, when they are first needed, and freed with it."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from mpi4py import MPI

from .contexts import TAGS, Channel, Context, alone, context_of
from .levels import Levels
from .talks import Talks

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..schedules import Hierarchy

__all__ = ["Groups"]

TALKS, ROLL_CALL = 98, 99  # numbers of channels; those of calls that block have the number of the method
FIRST_NEW = 100  # the first number of collectives that may be under way beside others


class Groups:
    """A communicator divided by levels, and the communicators that we make for it.

    These are made by ``Split``, and have contexts of their own, so that our messages never match the user's, and
    none of the user's attributes.

    :param comm: the user's communicator; not owned.
    :param hierarchy: the ranks, divided by levels.
    :ivar usable: whether it has not been freed.
    :ivar talks: the words of ranks that decide together.
    """

    def __init__(self, comm: MPI.Intracomm, hierarchy: Hierarchy) -> None:
        self.comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()
        self.hierarchy = hierarchy
        self.usable = True
        self._levels: dict[Hashable, Levels] = {}
        self._contexts: list[Context] = []  # more than one after some ten thousands of new channels
        self._next = FIRST_NEW
        self.talks = Talks(self.rank, self.size, partial(self.channel, TALKS))

    @property
    def divided(self) -> bool:
        """Whether there is a level between the communicator and its ranks."""
        return self.hierarchy.num_levels > 1

    def has_levels(self, kind: Hashable) -> bool:
        """Whether the sub-communicators for calls of one kind are made."""
        return kind in self._levels

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
        return alone()

    @property
    def connected(self) -> bool:
        """Whether there is a context for messages of plans; the same on all ranks."""
        return bool(self._contexts)

    def connect(self) -> None:
        """Make a context for messages of plans, if there is none; collective then."""
        if not self._contexts:
            self._check_usable()
            self._contexts.append(context_of(self.comm))

    def channel(self, number: int) -> Channel:
        """Where the messages of a method's plans go; collective if there is no context yet.

        :param number: the method's number, ``CallSpec.number``.
        """
        self.connect()
        return self._contexts[0].channel(number)

    def new_channel(self) -> Channel:
        """Where the messages of one more collective go, which may be under way beside any others.

        The same on all ranks, if each asks once in every call that makes such a collective. No channel is given twice:
        collectives that were prepared long ago may still be started. Collective after each 32,668 of them.
        """
        self.connect()
        if self._next == TAGS:
            self._check_usable()
            self._contexts.append(context_of(self.comm))
            self._next = FIRST_NEW
        self._next += 1
        return self._contexts[-1].channel(self._next - 1)

    def revoke(self) -> None:
        """Revoke the communicators made here, so that no rank waits in them."""
        leading = (comm for levels in self._levels.values() for comm in levels.parts.values())
        for comm in (*(context.comm for context in self._contexts), *leading):
            with suppress(NotImplementedError):
                comm.Revoke()

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
            for context in self._contexts:
                context.free()
        self._levels.clear()
        self._contexts.clear()
