"""The communicators and the calls on them from which Open MPI's component coll/han builds a collective call.

The facts are those of ``ompi/mca/coll/han`` and of ``ompi/mca/coll/libnbc``, version 5.0.11.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from .....schedules.nested import Place, inside, room
from .....schedules.network import Network
from .....schedules.phases import Phases
from .....schedules.registry import make
from .....schedules.schedule import INPUT, OUTPUT, ROOTED, SCRATCH, Schedule
from .....schedules.transfers import Rows
from ..base import CallShape, LibraryAlgorithm
from .tuned import COLLECTIVE, tuned

__all__ = ["SEGMENT", "Build", "HanCommunicators"]

Integers = NDArray[np.int64]
# Communicators: the ranks of those of equal size, shape (communicators, size); and the index of the root in each.
Among = tuple[list[Integers], int]

# Bytes: size of a segment (coll_han_bcast_segsize, coll_han_reduce_segsize, coll_han_allreduce_segsize).
SEGMENT = 64 << 10
_LEAST = 1 << 10  # least number of blocks of a whole segment, so that a block has at most 64 bytes
_MOST_SEGMENTS = 64  # most segments of a schedule, because more would hardly change the predicted cost
# Bytes to which coll/libnbc cuts messages of up to half a megabyte that it sends along a chain of ranks.
_FRAGMENT = 8 << 10


_ALONE = {"Bcast": "shaped_tree", "Reduce": "shaped_tree"}  # algorithms on a communicator of one rank, without messages


@dataclass(frozen=True)
class HanCommunicators:
    """The communicators of coll/han.

    :param low: the ranks of each host, ascending, one array per host: the low communicators.
    """

    low: list[Integers] = field(repr=False)

    @classmethod
    def of(cls, rank_host: Integers) -> HanCommunicators:
        """The hosts of a job, in the order of their first ranks."""
        _, first = np.unique(rank_host, return_index=True)
        return cls([np.flatnonzero(rank_host == rank_host[rank]) for rank in np.sort(first)])

    @property
    def balanced(self) -> bool:
        """Whether all hosts have the same number of ranks."""
        return len({len(ranks) for ranks in self.low}) == 1

    def place(self, rank: int) -> int:
        """Index of a rank among the ranks of its host."""
        return next(int(np.flatnonzero(ranks == rank)[0]) for ranks in self.low if rank in ranks)

    def up(self, place: int) -> Integers:
        """The ranks, ascending, that have index ``place`` on their hosts, at most one per host."""
        return np.sort([ranks[place] for ranks in self.low if place < len(ranks)])


class Build:
    """A builder of the schedule of one call by coll/han: its methods make the transfers of the inner calls.

    Each inner call (inside hosts, or between the hosts' leaders) has scratch blocks of its own.

    :param question: the call.
    :param network: the job's network.
    :param root: the root's rank; 0 in a call without a root. On each host the rank with the root's index is the leader.
    :param multiple: number of which the number of blocks of every segment must be a multiple.
    """

    def __init__(self, question: CallShape, network: Network, root: int, multiple: int = 1) -> None:
        self.question, self.network, self.root = question, network, root
        self.hosts = HanCommunicators.of(question.rank_host)
        self.place = self.hosts.place(root)
        self.leaders = self.hosts.up(self.place)
        self.size = question.ranks
        self.used = 0
        self.multiple = multiple
        self._made: dict[tuple[object, ...], Schedule] = {}

    def segments(self) -> list[tuple[int, int, int]]:
        """The first block, number of blocks and bytes of each segment; in very long messages several segments are one.

        Their bytes are those of a single segment even then, because coll/tuned chooses algorithms by that size.
        """
        nbytes, items = self.question.nbytes, self.question.nbytes // max(self.question.item, 1)
        # A whole segment has at least as many blocks as there are hosts, so that each host can get whole blocks. A
        # block must have at least one item of the datatype.
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
        """Reserve ``blocks`` blocks of the scratch buffer, and return the number of the first one."""
        self.used += blocks
        return self.used - blocks

    def tuned(self, among: Among, method: str, nbytes: int, blocks: int, send: Place, receive: Place) -> Rows:
        """The transfers of a blocking call by coll/tuned, made at once in several communicators.

        :param among: the communicators: ``low``, ``up`` or ``every``.
        :param method: mpi4py's name of the call.
        :param nbytes: size of the call in bytes, as ``CallShape`` counts it.
        :param blocks: number of blocks of a message that all ranks get; else number of blocks per rank.
        :param send: buffer and first block of the input.
        :param receive: buffer and first block of the output.
        """
        alike, place = among
        parts = []
        for ranks in alike:
            alone = np.zeros(ranks.shape[1], dtype=np.int64)
            inner = CallShape(method, nbytes, alone, self.question.commutative, self.question.item)
            made = tuned(inner) or LibraryAlgorithm(method.lower(), _ALONE[method], "self")
            schedule = self._kept(made.collective, made.algorithm, ranks[0], place, blocks, **made.parameters)
            parts.append(self.nested(schedule, ranks, send, receive))
        return np.concatenate(parts)

    def _kept(
        self, collective: str, algorithm: str, ranks: Integers, root: int, blocks: int, **parameters: object
    ) -> Schedule:
        """A cached schedule of a group of ranks.

        It depends only on the number of ranks, because none of the algorithms here uses the network.

        :param collective: the collective of the schedule.
        :param algorithm: name of the algorithm.
        :param ranks: the ranks of the group, of which only the number counts.
        :param root: index of the root in the group.
        :param blocks: number of blocks of one message.
        :param parameters: further arguments of the generator, by name.
        """
        key = (collective, algorithm, len(ranks), root, blocks, *sorted(parameters.items()))
        if key not in self._made:
            part = self.network.part(ranks)
            self._made[key] = make(collective, algorithm, part, root, blocks, **parameters)
        return self._made[key]

    def nested(self, schedule: Schedule, ranks: Integers, send: Place, receive: Place, unit: int = 1) -> Rows:
        """The transfers of a schedule run by some ranks, with scratch blocks of its own.

        :param schedule: the schedule of the group, or of each of several disjoint groups.
        :param ranks: ranks of the group's members, shape (members,), or (groups, members) for several groups.
        :param send: buffer and first block of the input.
        :param receive: buffer and first block of the output.
        :param unit: number of this call's blocks in one block of the given schedule.
        """
        begin = self.scratch(unit * room(schedule))
        return inside(schedule, ranks, {INPUT: send, OUTPUT: receive, SCRATCH: (SCRATCH, begin)}, unit)

    @property
    def low(self) -> Among:
        """The ranks of every host, with the leader of each host as its root."""
        return [np.stack(list(hosts)) for _, hosts in groupby(sorted(self.hosts.low, key=len), key=len)], self.place

    @property
    def up(self) -> Among:
        """The leaders of the hosts."""
        return [self.leaders[None]], int(np.flatnonzero(self.leaders == self.root)[0])

    @property
    def every(self) -> Among:
        """All ranks, with rank 0 as root, for calls that coll/han leaves to coll/tuned."""
        return [np.arange(self.size)[None]], 0

    def ibcast(self, blocks: int, place: Place) -> Rows:
        """The transfers of a broadcast among the leaders of the hosts by coll/libnbc.

        :param blocks: number of blocks of the message.
        :param place: buffer and first block of the message.
        """
        ranks = self._from_root()
        shape = "linear" if len(ranks) <= 4 else "doubling"
        schedule = self._kept("bcast", "shaped_tree", ranks, 0, blocks, shape=shape)
        return self.nested(schedule, ranks, place, place)

    def ireduce(self, nbytes: int, blocks: int, send: Place, receive: Place) -> Rows:
        """The transfers of a reduction among the leaders of the hosts by coll/libnbc.

        :param nbytes: size of the call in bytes, as ``CallShape`` counts it.
        :param blocks: number of blocks of the vector.
        :param send: buffer and first block of the input.
        :param receive: buffer and first block of the output.
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
        """The leaders, with the root and the first leader swapped."""
        ranks = self.leaders.copy()
        at = np.flatnonzero(ranks == self.root)
        ranks[at], ranks[0] = ranks[0], self.root
        return ranks

    def whole(self, schedule: Schedule, send: Place, receive: Place, unit: int = 1) -> Rows:
        """The transfers of a schedule run by all ranks.

        :param schedule: the schedule.
        :param send: buffer and first block of the input.
        :param receive: buffer and first block of the output.
        :param unit: number of this call's blocks in one block of the given schedule.
        """
        return self.nested(schedule, np.arange(self.size), send, receive, unit)

    def finished(self, phases: Phases, blocks: int) -> Schedule:
        """The call's whole schedule.

        :param phases: the phases of the schedule, each with the step in which it begins.
        :param blocks: number of blocks of one message.
        """
        collective = COLLECTIVE[self.question.method]
        root = self.root if collective in ROOTED else None
        return Schedule.from_phases(collective, self.size, "two levels", phases, root=root, blocks=blocks)

    def by_hosts(self) -> Integers:
        """All ranks, host by host, in the order in which their blocks lie after the leaders have gathered them."""
        hosts = {int(ranks[self.place]): ranks for ranks in self.hosts.low}
        return np.concatenate([hosts[int(leader)] for leader in self.leaders])
