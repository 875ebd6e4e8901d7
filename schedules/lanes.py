"""Collectives on hosts with several ranks, in lanes: inside hosts, across them, inside again, segment by segment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .exchanges import checked_root
from .nested import Placed
from .network import Network
from .phases import Phase, Phases, sequence, taken
from .schedule import COPY, INPUT, OUTPUT, REDUCE, SCRATCH, Schedule
from .transfers import Rows, local_moves, transfers

__all__ = ["Across", "Lanes", "lanes_allreduce", "lanes_bcast", "lanes_reduce"]

Integers = NDArray[np.int64]
Pairs = Callable[[int, Integers], tuple[Integers, Integers, Integers]]


@dataclass(frozen=True)
class Across:
    """What hosts run in each lane, as if each were one rank.

    :param generate: the schedule on a network whose ranks are hosts, from a root and a number of blocks.
    :param pipeline: whether it sends its own blocks one after another. If not, the vector is divided into segments,
        which follow one another.
    """

    generate: Callable[[Network, int, int | None], Schedule]
    pipeline: bool


@dataclass(frozen=True, eq=False)
class Lanes:
    """Which rank of each host carries which lane: a part of the data for which it alone speaks with other hosts.

    There are as many lanes as the median host has ranks. On a host with fewer ranks a rank carries several lanes; on
    one with more, the ranks without a lane only take part inside.

    :param network: the job's network.
    """

    network: Network

    @cached_property
    def number(self) -> int:
        """Number of lanes."""
        sizes = np.bincount(self.network.rank_host)
        return int(np.sort(sizes)[(len(sizes) - 1) // 2])

    @cached_property
    def carrier(self) -> Integers:
        """The rank of each lane on each host, shape (lanes, hosts)."""
        lane = np.arange(self.number)
        columns = [ranks[lane * len(ranks) // self.number] for ranks in self.network.ranks_of_host]
        return np.stack(columns, axis=1).astype(np.int64)

    @cached_property
    def across(self) -> Network:
        """The network whose ranks are the hosts."""
        return self.network.part(self.carrier[0])

    def where(self, rank: int) -> tuple[int, int]:
        """The host of a rank, and the rank's place among those of its host."""
        host = int(self.network.rank_host[rank])
        return host, int(np.searchsorted(self.network.ranks_of_host[host], rank))

    def alike(self) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Hosts with equally many ranks: the hosts, their ranks, and ``first_of``.

        Their shapes are (hosts,), (hosts, ranks) and (ranks + 1,).
        """
        sizes = np.bincount(self.network.rank_host)
        for size in np.unique(sizes):
            hosts = np.flatnonzero(sizes == size)
            groups = np.stack([self.network.ranks_of_host[host] for host in hosts]).astype(np.int64)
            yield hosts, groups, self.first_of(int(size))

    def first_of(self, size: int) -> Integers:
        """The first lane of the i-th rank of a host with ``size`` ranks, and the number of lanes, shape (size + 1,)."""
        place = np.arange(self.number) * size // self.number
        return np.searchsorted(place, np.arange(size + 1))


@dataclass(frozen=True, eq=False)
class _Vector:
    """A vector of segments; a segment has one part per lane, and a part the blocks of the schedule across hosts.

    A segment's exchange across hosts begins one step after that of the segment before. Work inside a host on a block
    is done one step before the exchange first touches the block on this host, or one step after it last wrote it.

    :param lanes: of the job.
    :param across: what the hosts run for each lane of each segment.
    :param segments: number of segments.
    """

    lanes: Lanes
    across: Schedule
    segments: int

    @classmethod
    def of(cls, network: Network, across: Across, root: int, blocks: int | None) -> _Vector:
        """The vector of a call; parameters as `lanes_reduce`, ``root`` 0 if there is none."""
        lanes = Lanes(network)
        root = checked_root(network.num_ranks, root)
        made = across.generate(lanes.across, int(network.rank_host[root]), blocks if across.pipeline else None)
        return cls(lanes, made, 1 if across.pipeline or blocks is None else blocks)

    @property
    def span(self) -> int:
        """Blocks of a segment."""
        return self.lanes.number * self.across.blocks

    @property
    def blocks(self) -> int:
        """Blocks of the vector."""
        return self.segments * self.span

    def between(self, buffer: int) -> Phases:
        """The exchanges across hosts of all lanes of all segments, which are in a buffer."""
        lane, blocks = np.arange(self.lanes.number)[:, None], self.across.blocks
        parts = []
        for segment in range(self.segments):
            begin = segment * self.span + lane * blocks
            places = {INPUT: (buffer, begin), OUTPUT: (buffer, begin), SCRATCH: (SCRATCH, begin)}
            part = Placed.of(self.across, self.lanes.carrier, places, vectors=(blocks, self.blocks))
            parts.append((1 + segment, part))
        return tuple(parts)

    def own_parts(self, target: int) -> Rows:
        """Each rank moves its own lanes' parts of its input into a buffer."""
        tables = [np.empty((0, 9), dtype=np.int64)]
        for _, groups, first in self.lanes.alike():
            begin = np.arange(self.segments)[:, None, None] * self.span + first[:-1] * self.across.blocks
            count = np.diff(first) * self.across.blocks
            tables.append(local_moves(0, groups[None], (INPUT, begin), (target, begin), count))
        return np.concatenate(tables)

    def touched(self, host: int) -> tuple[Integers, Integers]:
        """The step in which a host's exchange first touches each block, else 0, and last writes it, else -1."""
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
        """The schedule of the phases."""
        size, name = self.lanes.network.num_ranks, f"lanes, {self.across.algorithm}"
        return Schedule.from_phases(collective, size, name, phases, root=root, blocks=self.blocks)


def _within(counts: Integers) -> Integers:
    """0, 1, 2, ... within each of several ranges."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


@dataclass(frozen=True, eq=False)
class _Inside(Phase):
    """What happens inside hosts, block by block.

    :param vector: of the call.
    :param make: from the number of a host's ranks and ``Lanes.first_of``, the senders and receivers of its transfers,
        as indices within the host, and their lanes.
    :param buffers: from which ranks send, and into which they receive.
    :param operation: ``COPY`` or ``REDUCE``.
    :param hosts: numbers of the hosts that take part.
    :param before: whether it happens before the exchange across hosts; else after it.
    """

    vector: _Vector = field(kw_only=True)
    make: Pairs = field(kw_only=True)
    buffers: tuple[int, int] = field(kw_only=True)
    operation: int = field(kw_only=True)
    hosts: Integers = field(kw_only=True)
    before: bool = field(kw_only=True)

    @classmethod
    def of(
        cls,
        vector: _Vector,
        make: Pairs,
        buffers: tuple[int, int],
        operation: int = COPY,
        *,
        hosts: ArrayLike | None = None,
        before: bool = False,
    ) -> _Inside:
        """A stage; parameters as the class, ``hosts`` by default all."""
        steps = vector.segments + vector.across.num_steps + 1
        chosen = np.asarray(np.arange(vector.lanes.network.num_hosts) if hosts is None else hosts, dtype=np.int64)
        return cls(steps, vector=vector, make=make, buffers=buffers, operation=operation, hosts=chosen, before=before)

    def rows(self) -> Rows:
        """The rows of all hosts."""
        tables = [self._of_host(host) for host in self.hosts.tolist()]
        return np.concatenate([np.empty((0, 9), dtype=np.int64), *tables])

    def of_rank(self, rank: int) -> Rows:
        """As ``rows``; cost: that of its host."""
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


def _to_owners(size: int, first: Integers) -> tuple[Integers, Integers, Integers]:
    """Each rank sends to every other rank the lanes that the receiver carries."""
    lane = np.arange(first[-1])
    owner = np.searchsorted(first, lane, "right") - 1
    sender, number = (axis.ravel() for axis in np.indices((size, len(lane))))
    other = sender != owner[number]
    return sender[other], owner[number][other], lane[number][other]


def _from_owners(size: int, first: Integers, but: int = -1) -> tuple[Integers, Integers, Integers]:
    """Each rank sends its own lanes to every other rank, except one that needs none."""
    receiver, owner, lane = _to_owners(size, first)
    needs = receiver != but
    return owner[needs], receiver[needs], lane[needs]


def _to_one(size: int, first: Integers, root: int) -> tuple[Integers, Integers, Integers]:
    """Each rank sends its lanes to the root, which moves its own."""
    lane = np.arange(first[-1])
    owner = np.searchsorted(first, lane, "right") - 1
    return owner, np.full(len(lane), root), lane


def _from_one(size: int, first: Integers, root: int) -> tuple[Integers, Integers, Integers]:
    """The root sends to every other rank the lanes that the receiver carries."""
    owner, receiver, lane = _to_one(size, first, root)
    away = owner != root
    return receiver[away], owner[away], lane[away]


def lanes_allreduce(network: Network, across: Across, *, blocks: int | None = None) -> Schedule:
    """Ranks add up parts inside their host, the hosts exchange them in all lanes, and a host's ranks share the sums.

    Träff and Hunold, arXiv:1910.13373: the decomposition of a collective into as many lanes as there are local ranks.
    We depart from it in two ways: segments follow one another at the distance of one step, so that all three stages
    work at once; and hosts may have different numbers of ranks, in any order.

    Messages: those of the exchange across hosts, and inside a host of r ranks 2 (r - 1) of each rank for each group of
    blocks that is due in one step.
    Bytes: twice (1 - 1/r) of the vector into each rank inside, and of a host's link what one rank a host would send.
    It wins for medium and long vectors with several ranks a host. For commutative operations.

    :param network: the job's network.
    :param across: what hosts run.
    :param blocks: number of segments, by default 1; if ``across`` is a pipeline, of its blocks, by default its own.
    """
    vector = _Vector.of(network, across, 0, blocks)
    phases = sequence(
        vector.own_parts(OUTPUT),
        (
            (0, _Inside.of(vector, _to_owners, (INPUT, OUTPUT), REDUCE, before=True)),
            *vector.between(OUTPUT),
            (0, _Inside.of(vector, _from_owners, (OUTPUT, OUTPUT))),
        ),
    )
    return vector.schedule("allreduce", phases)


def lanes_reduce(network: Network, across: Across, *, root: int = 0, blocks: int | None = None) -> Schedule:
    """As `lanes_allreduce`, but hosts reduce in each lane to the root's host, whose ranks hand their parts to the root.

    Messages: those of the reductions across hosts, and for each group of blocks that is due in one step r - 1 of each
    rank inside its host and r - 1 to the root.

    :param network: the job's network.
    :param across: what hosts run.
    :param root: the root's rank.
    :param blocks: as `lanes_allreduce`.
    """
    vector = _Vector.of(network, across, root, blocks)
    host, place = vector.lanes.where(root)
    phases = sequence(
        vector.own_parts(SCRATCH),
        (
            (0, _Inside.of(vector, _to_owners, (INPUT, SCRATCH), REDUCE, before=True)),
            *vector.between(SCRATCH),
            (0, _Inside.of(vector, partial(_to_one, root=place), (SCRATCH, OUTPUT), hosts=[host])),
        ),
    )
    return vector.schedule("reduce", phases, root)


def lanes_bcast(network: Network, across: Across, *, root: int = 0, blocks: int | None = None) -> Schedule:
    """The root scatters parts inside its host, the host broadcasts them in all lanes, and each host's ranks share them.

    As `lanes_allreduce`. Messages: those of the broadcasts across hosts, and for each group of blocks that is due in
    one step r - 1 from the root and r - 1 of each rank inside its host.

    :param network: the job's network.
    :param across: what hosts run.
    :param root: the root's rank.
    :param blocks: as `lanes_allreduce`.
    """
    vector = _Vector.of(network, across, root, blocks)
    host, place = vector.lanes.where(root)
    others = np.delete(np.arange(network.num_hosts), host)
    phases = sequence(
        local_moves(0, root, (INPUT, 0), (OUTPUT, 0), vector.blocks),
        (
            (0, _Inside.of(vector, partial(_from_one, root=place), (OUTPUT, OUTPUT), hosts=[host], before=True)),
            *vector.between(OUTPUT),
            (0, _Inside.of(vector, partial(_from_owners, but=place), (OUTPUT, OUTPUT), hosts=[host])),
            (0, _Inside.of(vector, _from_owners, (OUTPUT, OUTPUT), hosts=others)),
        ),
    )
    return vector.schedule("bcast", phases, root)
