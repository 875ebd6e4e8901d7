"""Communicators for topompi's messages, which match neither the user's messages nor another communicator's.

Each has the ranks of a user's communicator and is made by ``Split``: it inherits no attributes, so that no callback of
the user runs. MPICH allows about 2,000 communicators; there, the user's communicators over the same ranks share one,
each with a range of tags of its own. If the MPI library can revoke communicators, they share none, because revoking
one must not affect another.
"""

from __future__ import annotations

import os
from functools import cache
from threading import Lock, RLock
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from .native import NativeIntracomm

__all__ = ["TAGS", "Alone", "Channel", "Context", "alone", "context_of", "most_tags"]

TAGS = 1 << 15  # number of tags of each user communicator; every library has as many (MPI 4.1, 9.1.2: MPI_TAG_UB)


class Channel(NamedTuple):
    """A communicator and a tag, for the messages of one method's blocking calls, or of one other collective."""

    comm: MPI.Intracomm
    tag: int


class Context:
    """A range of tags on a communicator of topompi, for the messages of one communicator of the user.

    :param pool: the communicator of topompi, which several ranges may share.
    :param first: first tag of the range.
    """

    def __init__(self, pool: _Pool, first: int) -> None:
        self._pool, self._first = pool, first

    @property
    def comm(self) -> MPI.Intracomm:
        """The communicator of topompi on which the tags are valid."""
        return self._pool.comm

    def channel(self, number: int) -> Channel:
        """The channel (communicator and tag) with a number from 0 to ``TAGS`` - 1 in this range."""
        return Channel(self._pool.comm, self._first + number)

    def held(self) -> Context:
        """The same range of tags, which its holder frees: the communicator lasts until both are freed."""
        self._pool.stay()
        return Context(self._pool, self._first)

    def free(self) -> None:
        """Give the range of tags back; if it was the last one in use, free the communicator of topompi."""
        self._pool.leave()


class _Pool:
    """A communicator of topompi whose tags are given out in ranges, each once.

    :param comm: the communicator.
    :param name: number of the pool, equal on all ranks, by which they find whether they offer the same pool.
    :param key: key in ``_pools`` under which communicators over the same ranks find the pool; None if it is not shared.
    """

    def __init__(self, comm: MPI.Intracomm, name: int = 0, key: bytes | None = None) -> None:
        self.comm, self.name, self.given = comm, name, 0
        self._key, self._users, self._lock = key, 1, Lock()
        if key is not None:
            _pools[key] = self

    def enter(self) -> bool:
        """Count one more range as in use, so that the communicator is not freed; True if that is possible.

        The result is False, and nothing is counted, if the communicator is freed already or has no tags left.
        """
        with self._lock:
            here = self._users > 0 and TAGS * (self.given + 1) <= most_tags()
            self._users += here
        return here

    def give(self) -> Context:
        """The next range of tags, which the constructor or ``enter`` has counted as in use."""
        self.given += 1
        return Context(self, TAGS * (self.given - 1))

    def stay(self) -> None:
        """Count a range that is in use once more."""
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        """Count one range less as in use, and free the communicator if none is left."""
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last:
            if self._key is not None and _pools.get(self._key) is self:
                del _pools[self._key]
            self.comm.Free()


_pools: dict[bytes, _Pool] = {}  # by ranks in ``MPI.COMM_WORLD``; different ranks may hold different pools
_asking = Lock()


def context_of(comm: MPI.Intracomm) -> Context:
    """A context for the messages of a communicator; collective.

    The ranks find by one reduction whether all offer the same communicator of topompi with the same free tags. A rank
    cannot decide this alone, because several threads may call this at once, in different orders on different ranks. A
    thread that finds another thread in this function gets a new communicator.

    :param comm: the user's communicator, as an instance of mpi4py's own class.

    Cost: one split. If communicators are shared, one allreduce of 40 bytes, and one split only if a new one is made.
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
    """Whether all ranks offer the same pool with the same tags, and a random name for a new pool; collective."""
    name, given = (0, 0) if pool is None else (pool.name, pool.given)
    told = np.array([name, -name, given, -given, int.from_bytes(os.urandom(7)) + 1])
    comm.Allreduce(MPI.IN_PLACE, told, MPI.MAX)
    highest, minus_lowest, most, minus_least, new = told.tolist()
    return bool(highest) and (highest, most) == (-minus_lowest, -minus_least), new


def _copy_of(comm: MPI.Intracomm) -> MPI.Intracomm:
    """A communicator of the same ranks in the same order, without attributes; collective."""
    return NativeIntracomm(comm.Split(0, comm.Get_rank()))


def _ranks(comm: MPI.Intracomm) -> bytes:
    """The ranks' numbers in ``MPI.COMM_WORLD``, as bytes: a key for communicators over the same ranks. Local."""
    group, world = comm.Get_group(), MPI.COMM_WORLD.Get_group()
    ranks = MPI.Group.Translate_ranks(group, None, world)[: comm.Get_size()]
    group.Free()
    world.Free()
    return np.array(ranks, dtype=np.int64).tobytes()


@cache
def _shares() -> bool:
    """Whether user communicators share topompi's: True if the MPI library has many tags and cannot revoke any."""
    tried = NativeIntracomm(MPI.COMM_SELF).Split()
    try:
        tried.Revoke()  # raises an error if the library cannot revoke; ``Is_revoked`` never does
    except NotImplementedError:
        return most_tags() >= 2 * TAGS
    finally:
        tried.Free()
    return False


@cache
def most_tags() -> int:
    """Number of tags that the MPI library has."""
    most: Any = MPI.COMM_WORLD.Get_attr(MPI.TAG_UB)
    return int(most) + 1


class Alone(NativeIntracomm):
    """A communicator of this rank only, for copies of data with gaps; several threads may use it at once."""

    lock = RLock()  # reentrant, because a signal handler may interrupt a copy and make another

    def Sendrecv(self, *arguments: Any, **named: Any) -> None:
        """Send a message to this rank itself, under a lock, so that no thread receives another thread's message."""
        with self.lock:
            super().Sendrecv(*arguments, **named)


@cache
def alone() -> Alone:
    """The communicator of this rank only."""
    return Alone(NativeIntracomm(MPI.COMM_SELF).Split())
