"""Contexts for the messages of plans, in which these meet neither the user's nor those of another communicator.

A context is a communicator of ours with the user's ranks, made by ``Split``: it has none of the user's attributes, so
no callback of theirs runs. MPICH has about 2,000 communicators in all. There those over the same ranks share one, and
each has a range of tags of its own. Where MPI can revoke communicators nothing is shared: that one is revoked must not
reach another.
"""

from __future__ import annotations

import os
from functools import cache
from threading import Lock, RLock
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from .native import NativeIntracomm

__all__ = ["TAGS", "Alone", "Channel", "Context", "alone", "context_of"]

TAGS = 1 << 15  # of each communicator; MPI 4.1, 9.1.2: MPI_TAG_UB is at least 32767


class Channel(NamedTuple):
    """A communicator, and the tag of the messages that belong together on it."""

    comm: MPI.Intracomm
    tag: int


class Context:
    """The tags of one communicator of the user's.

    :param pool: the communicator on which they are.
    :param first: the first one.
    """

    def __init__(self, pool: _Pool, first: int) -> None:
        self._pool, self._first = pool, first

    @property
    def comm(self) -> MPI.Intracomm:
        """The communicator."""
        return self._pool.comm

    def channel(self, number: int) -> Channel:
        """The channel of a number below ``TAGS``."""
        return Channel(self._pool.comm, self._first + number)

    def free(self) -> None:
        """Give the tags back; who does so last frees the communicator."""
        self._pool.leave()


class _Pool:
    """A communicator of ours, whose tags are given out once each.

    :param comm: the communicator.
    :param name: equal on all ranks, and of no other pool.
    :param key: where other communicators find it; None if they do not.
    """

    def __init__(self, comm: MPI.Intracomm, name: int = 0, key: bytes | None = None) -> None:
        self.comm, self.name, self.given = comm, name, 0
        self._key, self._users, self._lock = key, 1, Lock()
        if key is not None:
            _pools[key] = self

    def enter(self) -> bool:
        """Keep it from being freed; whether it still can be kept, and has tags to give."""
        with self._lock:
            here = self._users > 0 and TAGS * (self.given + 1) <= _most_tags()
            self._users += here
        return here

    def give(self) -> Context:
        """The next tags, to one who has entered."""
        self.given += 1
        return Context(self, TAGS * (self.given - 1))

    def leave(self) -> None:
        """Let go of it, and free the communicator after the last one."""
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last:
            if self._key is not None and _pools.get(self._key) is self:
                del _pools[self._key]
            self.comm.Free()


_pools: dict[bytes, _Pool] = {}  # by the ranks in ``MPI.COMM_WORLD``; what one rank holds, another may not
_asking = Lock()


def context_of(comm: MPI.Intracomm) -> Context:
    """A context for the messages of a communicator; collective.

    The ranks agree on the tags by one reduction, not on what each of them holds: threads may come here with several
    communicators at a time, in another order on each rank. The one that finds another thread here shares nothing.

    :param comm: the user's, of mpi4py's own class.
    Cost: one split; where contexts are shared, one allreduce of 40 bytes, and no split but for the first.
    """
    if not _shares():
        return _Pool(_copy_of(comm)).give()
    free = _asking.acquire(blocking=False)
    try:
        key = _ranks(comm) if free else None
        pool = None if key is None else _pools.get(key)
        if pool is not None and not pool.enter():
            pool = None
        agreed, name = _agreed(comm, pool)
        if pool is not None and not agreed:
            pool.leave()
        if pool is None or not agreed:
            pool = _Pool(_copy_of(comm), name, key)
        return pool.give()
    finally:
        if free:
            _asking.release()


def _agreed(comm: MPI.Intracomm, pool: _Pool | None) -> tuple[bool, int]:
    """Whether all ranks offer the same pool with the same tags to give, and a name for another one; collective."""
    name, given = (0, 0) if pool is None else (pool.name, pool.given)
    told = np.array([name, -name, given, -given, int.from_bytes(os.urandom(7)) + 1])
    comm.Allreduce(MPI.IN_PLACE, told, MPI.MAX)
    highest, minus_lowest, most, minus_least, new = told.tolist()
    return bool(highest) and (highest, most) == (-minus_lowest, -minus_least), new


def _copy_of(comm: MPI.Intracomm) -> MPI.Intracomm:
    """A communicator of the same ranks in the same order, without attributes; collective."""
    return NativeIntracomm(comm.Split(0, comm.Get_rank()))


def _ranks(comm: MPI.Intracomm) -> bytes:
    """The ranks in ``MPI.COMM_WORLD``, which are one key for communicators over the same ones; local."""
    group, world = comm.Get_group(), MPI.COMM_WORLD.Get_group()
    ranks = MPI.Group.Translate_ranks(group, None, world)[: comm.Get_size()]
    group.Free()
    world.Free()
    return np.array(ranks, dtype=np.int64).tobytes()


@cache
def _shares() -> bool:
    """Whether communicators are few, and MPI cannot revoke one."""
    tried = NativeIntracomm(MPI.COMM_SELF).Split()
    try:
        tried.Revoke()  # mpi4py lets everybody ask whether a communicator is revoked
    except NotImplementedError:
        return _most_tags() >= 2 * TAGS
    finally:
        tried.Free()
    return False


@cache
def _most_tags() -> int:
    most: Any = MPI.COMM_WORLD.Get_attr(MPI.TAG_UB)
    return int(most) + 1


class Alone(NativeIntracomm):
    """A communicator of one rank, for copies of data with gaps; threads may use it at the same time."""

    lock = RLock()  # a signal's handler may come in between

    def Sendrecv(self, *arguments: Any, **named: Any) -> None:
        """Copy a message to another one; no thread gets another's."""
        with self.lock:
            super().Sendrecv(*arguments, **named)


@cache
def alone() -> Alone:
    """The communicator of this rank only."""
    return Alone(NativeIntracomm(MPI.COMM_SELF).Split())
