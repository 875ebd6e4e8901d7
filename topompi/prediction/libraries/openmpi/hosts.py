"""Hosts as Open MPI's component coll/han sees them, and the parts of which it makes a call.

The facts are those of ``ompi/mca/coll/han`` and of ``ompi/mca/coll/libnbc``, version 5.0.11.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....schedules.nested import Place, inside, room
from ....schedules.network import Network
from ....schedules.phases import Phases
from ....schedules.registry import make
from ....schedules.schedule import INPUT, OUTPUT, ROOTED, SCRATCH, Schedule
from ....schedules.transfers import Rows
from ..base import Decision, Question
from .tuned import COLLECTIVE, tuned

__all__ = ["SEGMENT", "Build", "Hosts"]

Integers = NDArray[np.int64]

SEGMENT = 64 << 10  # bytes: coll_han_bcast_segsize, coll_han_reduce_segsize, coll_han_allreduce_segsize
_LEAST = 1 << 10  # blocks of a segment: of 64 bytes
_MOST_SEGMENTS = 64  # what they cost shows in no more
_FRAGMENT = 8 << 10  # bytes of coll/libnbc's chains up to half a megabyte


_ALONE = {"Bcast": "shaped_tree", "Reduce": "shaped_tree"}  # what a communicator of one rank runs


@dataclass(frozen=True)
class Hosts:
    """The communicators of coll/han.

    :param low: the ranks of each host, ascending.
    """

    low: list[Integers] = field(repr=False)

    @classmethod
    def of(cls, rank_host: Integers) -> Hosts:
        """The hosts in the order of their first ranks."""
        _, first = np.unique(rank_host, return_index=True)
        return cls([np.flatnonzero(rank_host == rank_host[rank]) for rank in np.sort(first)])

    @property
    def balanced(self) -> bool:
        """Whether each host has equally many ranks."""
        return len({len(ranks) for ranks in self.low}) == 1

    def place(self, rank: int) -> int:
        """A rank's place among those of its host."""
        return next(int(np.flatnonzero(ranks == rank)[0]) for ranks in self.low if rank in ranks)

    def up(self, place: int) -> Integers:
        """The ranks of a place on all hosts that have one, ascending."""
        return np.sort([ranks[place] for ranks in self.low if place < len(ranks)])


class Build:
    """The parts of one call's schedule, made as they are asked for, each with room of its own in the scratch.

    :param question: the call.
    :param network: of the job.
    :param root: the root's rank, or 0.
    :param multiple: of what the blocks of a segment are to be.
    """

    def __init__(self, question: Question, network: Network, root: int, multiple: int = 1) -> None:
        self.question, self.network, self.root = question, network, root
        self.hosts = Hosts.of(question.rank_host)
        self.place = self.hosts.place(root)
        self.leaders = self.hosts.up(self.place)
        self.size = question.ranks
        self.used = 0
        self.multiple = multiple
        self._made: dict[tuple[object, ...], Schedule] = {}

    def segments(self) -> list[tuple[int, int, int]]:
        """First block, blocks and bytes of each segment; of the longest messages several together are one."""
        nbytes, items = self.question.nbytes, self.question.nbytes // max(self.question.item, 1)
        # Of a whole segment, such that parts, also of a shorter one, are whole blocks, and none is less than an item.
        blocks = max(_LEAST, 2 << len(self.leaders).bit_length() - 1)
        if nbytes <= SEGMENT:
            return [(0, self.multiple * max(1, min(blocks, items // self.multiple)), nbytes)]
        length = SEGMENT * -(-nbytes // (SEGMENT * _MOST_SEGMENTS))
        sizes = [min(length, nbytes - begin) for begin in range(0, nbytes, length)]
        return [
            (self.multiple * blocks * at, self.multiple * -(-blocks * size // length), min(size, SEGMENT))
            for at, size in enumerate(sizes)
        ]

    def scratch(self, blocks: int) -> int:
        """The first of so many blocks of the scratch that nothing else uses."""
        self.used += blocks
        return self.used - blocks

    def tuned(
        self, method: str, ranks: Integers, place: int, nbytes: int, blocks: int, send: Place, receive: Place
    ) -> Rows:
        """A blocking call in each of some communicators.

        :param method: mpi4py's name of the call.
        :param ranks: of the communicators, shape (communicators, size).
        :param place: the root's in each of them.
        :param nbytes: as the decision counts them.
        :param blocks: of one message, or of one rank's share.
        :param send: where the input lies; likewise ``receive`` for the output.
        """
        alone = np.zeros(ranks.shape[1], dtype=np.int64)
        inner = Question(method, nbytes, alone, self.question.commutative, self.question.item)
        made = tuned(inner) or Decision(method.lower(), _ALONE[method], "self")
        schedule = self._kept(made.collective, made.algorithm, ranks[0], place, blocks, **made.parameters)
        return self.nested(schedule, ranks, send, receive)

    def _kept(
        self, collective: str, algorithm: str, ranks: Integers, root: int, blocks: int, **parameters: Any
    ) -> Schedule:
        """A group's schedule, which depends on nothing but the number of its ranks: none looks at the network."""
        key = (collective, algorithm, len(ranks), root, blocks, *sorted(parameters.items()))
        if key not in self._made:
            part = self.network.part(ranks)
            self._made[key] = make(collective, algorithm, part, root, blocks, **parameters)
        return self._made[key]

    def nested(self, schedule: Schedule, ranks: Integers, send: Place, receive: Place, unit: int = 1) -> Rows:
        """A schedule of some ranks, its scratch apart from all others.

        :param schedule: of the group, or of each of several groups without a rank in common.
        :param ranks: of its members, as ``nested.inside`` takes them.
        :param send: where the input lies; likewise ``receive`` for the output.
        :param unit: blocks there for each of its own.
        """
        begin = self.scratch(unit * room(schedule))
        return inside(schedule, ranks, {INPUT: send, OUTPUT: receive, SCRATCH: (SCRATCH, begin)}, unit)

    def low(self, method: str, nbytes: int, blocks: int, send: Place, receive: Place) -> Rows:
        """A blocking call on every host, whose roots are those that take part between hosts.

        :param method: mpi4py's name of the call.
        :param nbytes: as the decision counts them.
        :param blocks: of one message, or of one rank's share.
        :param send: where the input lies; likewise ``receive`` for the output.
        """
        alike = [np.stack(list(hosts)) for _, hosts in groupby(sorted(self.hosts.low, key=len), key=len)]
        parts = (self.tuned(method, hosts, self.place, nbytes, blocks, send, receive) for hosts in alike)
        return np.concatenate(list(parts))

    def up(self, method: str, nbytes: int, blocks: int, send: Place, receive: Place) -> Rows:
        """A blocking call between the hosts.

        :param method: mpi4py's name of the call.
        :param nbytes: as the decision counts them.
        :param blocks: of one message, or of one rank's share.
        :param send: where the input lies; likewise ``receive`` for the output.
        """
        place = int(np.flatnonzero(self.leaders == self.root)[0])
        return self.tuned(method, self.leaders[None], place, nbytes, blocks, send, receive)

    def ibcast(self, blocks: int, place: Place) -> Rows:
        """A broadcast between hosts by coll/libnbc."""
        ranks = self._from_root()
        shape = "linear" if len(ranks) <= 4 else "doubling"
        schedule = self._kept("bcast", "shaped_tree", ranks, 0, blocks, shape=shape)
        return self.nested(schedule, ranks, place, place)

    def ireduce(self, nbytes: int, blocks: int, send: Place, receive: Place) -> Rows:
        """A reduction between hosts by coll/libnbc.

        :param nbytes: as the decision counts them.
        :param blocks: of one message, or of one rank's share.
        :param send: where the input lies; likewise ``receive`` for the output.
        """
        size, ranks = len(self.leaders), self._from_root()
        items = nbytes // max(self.question.item, 1)
        if size > 2 and items >= 1 << size.bit_length() - 1:
            at = int(np.flatnonzero(self.leaders == self.root)[0])
            schedule = self._kept("reduce", "halves", self.leaders, at, blocks)
            return self.nested(schedule, self.leaders, send, receive)
        if size > 4 or nbytes < SEGMENT:
            schedule = self._kept("reduce", "shaped_tree", ranks, 0, blocks, shape="binomial")
            return self.nested(schedule, ranks, send, receive)
        parts = nbytes // _FRAGMENT
        schedule = self._kept("reduce", "chain", ranks, 0, parts, order=range(size))
        return self.nested(schedule, ranks, send, receive, blocks // parts)

    def _from_root(self) -> Integers:
        """The leaders, the root and the first having changed places."""
        ranks = self.leaders.copy()
        at = np.flatnonzero(ranks == self.root)
        ranks[at], ranks[0] = ranks[0], self.root
        return ranks

    def every(self, method: str, nbytes: int, blocks: int, send: Place, receive: Place) -> Rows:
        """A blocking call from or to rank 0 among all ranks, left to coll/tuned.

        :param method: mpi4py's name of the call.
        :param nbytes: as the decision counts them.
        :param blocks: of one message, or of one rank's share.
        :param send: where the input lies; likewise ``receive`` for the output.
        """
        return self.tuned(method, np.arange(self.size)[None], 0, nbytes, blocks, send, receive)

    def whole(self, schedule: Schedule, send: Place, receive: Place, unit: int = 1) -> Rows:
        """A schedule of all ranks as a part.

        :param schedule: of all ranks.
        :param send: where the input lies; likewise ``receive`` for the output.
        :param unit: blocks there for each of its own.
        """
        return self.nested(schedule, np.arange(self.size), send, receive, unit)

    def finished(self, phases: Phases, blocks: int) -> Schedule:
        """The schedule of these phases."""
        collective = COLLECTIVE[self.question.method]
        root = self.root if collective in ROOTED else None
        return Schedule.from_phases(collective, self.size, "two levels", phases, root=root, blocks=blocks)

    def by_hosts(self) -> Integers:
        """The ranks of one host after the other, as they are gathered between hosts."""
        hosts = {int(ranks[self.place]): ranks for ranks in self.hosts.low}
        return np.concatenate([hosts[int(leader)] for leader in self.leaders])
