"""The stages of collectives in lanes: exchanges between hosts, and transfers inside hosts before and after them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exchanges import checked_root
from ..nested import NestedPhase
from ..network import Network
from ..phases import Phase, Phases, taken
from ..schedule import COPY, INPUT, OUTPUT, SCRATCH, Schedule
from ..transfers import Rows, local_moves, transfers
from .carriers import LaneCarriers

__all__ = ["AcrossHosts", "DividedVector", "InsideHosts", "from_one", "from_owners", "to_one", "to_owners"]

Integers = NDArray[np.int64]
Pairs = Callable[[int, Integers], tuple[Integers, Integers, Integers]]


@dataclass(frozen=True)
class AcrossHosts:
    """The algorithm that hosts run in each lane (a part of the data that one rank per host carries).

    :param generate: function that takes a network whose ranks are the hosts, a root host and a number of blocks (None
        for the algorithm's default), and returns the schedule.
    :param pipeline: whether the algorithm sends its own blocks one after another. Otherwise the vector is divided into
        segments, each of which runs the whole algorithm one step after the segment before it.
    """

    generate: Callable[[Network, int, int | None], Schedule]
    pipeline: bool


@dataclass(frozen=True, eq=False)
class DividedVector:
    """A call's vector and its division: into segments, these into a part per lane, and these into blocks.

    A segment's exchange across hosts begins one step after that of the segment before. Transfers inside a host that
    prepare a block happen one step before the exchange first reads or writes this block on this host; transfers that
    distribute its result happen one step after the exchange last wrote it.

    :param lanes: the lanes of the job.
    :param across: schedule that the hosts run for each lane of each segment; it determines the blocks of a part.
    :param segments: number of segments.
    """

    lanes: LaneCarriers
    across: Schedule
    segments: int

    @classmethod
    def of(cls, network: Network, across: AcrossHosts, root: int, blocks: int | None) -> DividedVector:
        """Divide the vector of a call.

        :param network: the job's network.
        :param across: algorithm that the hosts run in each lane.
        :param root: the root's rank; 0 if there is none.
        :param blocks: if ``across.pipeline``, number of blocks of the algorithm across hosts, by default as many as the
            algorithm chooses; else number of segments, by default 1.
        """
        lanes = LaneCarriers(network)
        root = checked_root(network.num_ranks, root)
        made = across.generate(lanes.across, int(network.rank_host[root]), blocks if across.pipeline else None)
        return cls(lanes, made, 1 if across.pipeline or blocks is None else blocks)

    @property
    def span(self) -> int:
        """Number of blocks of a segment."""
        return self.lanes.number * self.across.blocks

    @property
    def blocks(self) -> int:
        """Number of blocks of the vector."""
        return self.segments * self.span

    def between(self, buffer: int) -> Phases:
        """The exchanges across hosts, a phase per segment, in which all lanes run ``across`` at once.

        :param buffer: number of the buffer that has the vector on each rank, and receives the result.
        """
        lane, blocks = np.arange(self.lanes.number)[:, None], self.across.blocks
        parts = []
        for segment in range(self.segments):
            begin = segment * self.span + lane * blocks
            places = {INPUT: (buffer, begin), OUTPUT: (buffer, begin), SCRATCH: (SCRATCH, begin)}
            part = NestedPhase.of(self.across, self.lanes.carrier, places, vectors=(blocks, self.blocks))
            parts.append((1 + segment, part))
        return tuple(parts)

    def own_parts(self, target: int) -> Rows:
        """The local moves by which each rank copies the parts of the lanes that it carries from its input to a buffer.

        The result is schedule rows, one per move, shape (rows, 9).

        :param target: number of the buffer that receives the parts.
        """
        tables = [np.empty((0, 9), dtype=np.int64)]
        for _, groups, first in self.lanes.alike():
            begin = np.arange(self.segments)[:, None, None] * self.span + first[:-1] * self.across.blocks
            count = np.diff(first) * self.across.blocks
            tables.append(local_moves(0, groups[None], (INPUT, begin), (target, begin), count))
        return np.concatenate(tables)

    def touched(self, host: int) -> tuple[Integers, Integers]:
        """The steps in which a host's exchange first reads or writes, and last writes, each block of a part.

        Each has shape (blocks of a part,). Blocks that are never touched have 0, blocks that are never written -1.
        """
        rows, blocks = self.across.rows_of(host), self.across.blocks
        void = (rows[:, 1] == rows[:, 2]) & (rows[:, 4] % blocks == rows[:, 6] % blocks) & (rows[:, 8] == COPY)
        rows = rows[~void]
        first, last = np.full(blocks, self.across.num_steps), np.full(blocks, -1)
        for rank, block in ((1, 4), (2, 6)):
            here = rows[rows[:, rank] == host]
            at = np.repeat(here[:, block] % blocks, here[:, 7]) + _within(here[:, 7])
            np.minimum.at(first, at, np.repeat(here[:, 0], here[:, 7]))
            if rank == 2:
                np.maximum.at(last, at, np.repeat(here[:, 0], here[:, 7]))
        return np.where(first == self.across.num_steps, 0, first), last

    def schedule(self, collective: str, phases: Phases, root: int | None = None) -> Schedule:
        """Make the schedule of the given phases, with this vector's numbers of ranks and blocks.

        :param collective: bcast, reduce or allreduce.
        :param phases: phases of all stages, each with the step in which it begins.
        :param root: the root's rank; None if there is none.
        """
        size, name = self.lanes.network.num_ranks, f"lanes, {self.across.algorithm}"
        return Schedule.from_phases(collective, size, name, phases, root=root, blocks=self.blocks)


def _within(counts: Integers) -> Integers:
    """The numbers 0, 1, 2, ... of each of several ranges, concatenated.

    :param counts: length of each range.
    """
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


@dataclass(frozen=True, eq=False)
class InsideHosts(Phase):
    """A stage of transfers inside hosts; each block is sent one step before or after the exchange across hosts uses it.

    :param vector: the vector of the call.
    :param make: function that takes the number of a host's ranks and ``LaneCarriers.first_of`` of it, and returns
        sender and receiver, as indices within the host, and lane of each transfer.
    :param buffers: buffer from which ranks send, and buffer into which they receive.
    :param operation: ``COPY`` or ``REDUCE``.
    :param hosts: numbers of the hosts that take part.
    :param before: whether the stage precedes the exchange across hosts; else it follows it.
    """

    vector: DividedVector = field(kw_only=True)
    make: Pairs = field(kw_only=True)
    buffers: tuple[int, int] = field(kw_only=True)
    operation: int = field(kw_only=True)
    hosts: Integers = field(kw_only=True)
    before: bool = field(kw_only=True)

    @classmethod
    def of(
        cls,
        vector: DividedVector,
        make: Pairs,
        buffers: tuple[int, int],
        operation: int = COPY,
        *,
        hosts: ArrayLike | None = None,
        before: bool = False,
    ) -> InsideHosts:
        """Make a stage with segments + steps of the exchange + 1 steps, which have room for all segments.

        :param vector: the vector of the call.
        :param make: function that returns sender, receiver and lane of each transfer, see `Inside`.
        :param buffers: buffer from which ranks send, and buffer into which they receive.
        :param operation: ``COPY`` or ``REDUCE``.
        :param hosts: numbers of the hosts that take part; by default all.
        :param before: whether the stage precedes the exchange across hosts; else it follows it.
        """
        steps = vector.segments + vector.across.num_steps + 1
        chosen = np.asarray(np.arange(vector.lanes.network.num_hosts) if hosts is None else hosts, dtype=np.int64)
        return cls(steps, vector=vector, make=make, buffers=buffers, operation=operation, hosts=chosen, before=before)

    def rows(self) -> Rows:
        """The schedule rows (one per transfer) of all hosts."""
        tables = [self._of_host(host) for host in self.hosts.tolist()]
        return np.concatenate([np.empty((0, 9), dtype=np.int64), *tables])

    def of_rank(self, rank: int) -> Rows:
        """The schedule rows that a rank takes part in. Cost: the rows of its host are made."""
        host = int(self.vector.lanes.network.rank_host[rank])
        return taken(self._of_host(host), rank) if host in self.hosts else np.empty((0, 9), dtype=np.int64)

    def _of_host(self, host: int) -> Rows:
        vector, ranks = self.vector, self.vector.lanes.network.ranks_of_host[host]
        first, last = vector.touched(host)
        when = first if self.before else np.maximum(last, first - 1) + 2
        sender, receiver, lane = self.make(len(ranks), vector.lanes.first_of(len(ranks)))
        begin = np.flatnonzero(np.diff(when, prepend=-1))
        count = np.diff(np.append(begin, len(when)))
        segment = np.arange(vector.segments)[:, None, None]
        at = segment * vector.span + lane[:, None] * vector.across.blocks + begin
        source, target = self.buffers
        ends = ranks[sender][:, None], ranks[receiver][:, None]
        return transfers(segment + when[begin], *ends, (source, at), (target, at), count, self.operation)


def to_owners(size: int, first: Integers) -> tuple[Integers, Integers, Integers]:
    """The transfers by which each rank of a host sends to every other rank the lanes that the receiver carries.

    The result has sender and receiver, as indices within the host, and lane of each transfer, three arrays.

    :param size: number of the host's ranks.
    :param first: first lane of each rank and the number of lanes, as ``LaneCarriers.first_of``.
    """
    lane = np.arange(first[-1])
    owner = np.searchsorted(first, lane, "right") - 1
    sender, number = (axis.ravel() for axis in np.indices((size, len(lane))))
    other = sender != owner[number]
    return sender[other], owner[number][other], lane[number][other]


def from_owners(size: int, first: Integers, but: int = -1) -> tuple[Integers, Integers, Integers]:
    """The transfers by which each rank of a host sends its own lanes to every other rank.

    The result has sender and receiver, as indices within the host, and lane of each transfer, three arrays.

    :param size: number of the host's ranks.
    :param first: first lane of each rank and the number of lanes, as ``LaneCarriers.first_of``.
    :param but: index of a rank that receives nothing, -1 if all receive.
    """
    receiver, owner, lane = to_owners(size, first)
    needs = receiver != but
    return owner[needs], receiver[needs], lane[needs]


def to_one(size: int, first: Integers, root: int) -> tuple[Integers, Integers, Integers]:
    """The transfers by which each rank of a host sends its lanes to the root; the root moves its own locally.

    The result has sender and receiver, as indices within the host, and lane of each transfer, three arrays.

    :param size: number of the host's ranks.
    :param first: first lane of each rank and the number of lanes, as ``LaneCarriers.first_of``.
    :param root: index of the root within the host.
    """
    lane = np.arange(first[-1])
    owner = np.searchsorted(first, lane, "right") - 1
    return owner, np.full(len(lane), root), lane


def from_one(size: int, first: Integers, root: int) -> tuple[Integers, Integers, Integers]:
    """The transfers by which the root sends to every other rank of its host the lanes that the receiver carries.

    The result has sender and receiver, as indices within the host, and lane of each transfer, three arrays.

    :param size: number of the host's ranks.
    :param first: first lane of each rank and the number of lanes, as ``LaneCarriers.first_of``.
    :param root: index of the root within the host.
    """
    owner, receiver, lane = to_one(size, first, root)
    away = owner != root
    return receiver[away], owner[away], lane[away]
