"""Alltoall with one message for each pair of hosts, sent by carriers, ranks that collect the blocks of their host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exchanges import starts
from ..phases import Phase, sequence, taken
from ..schedule import INPUT, OUTPUT, SCRATCH, Schedule
from ..transfers import Rows, transfers

__all__ = ["HostCarriers", "alltoall_node_aware"]

Integers = NDArray[np.int64]


def alltoall_node_aware(rank_host: ArrayLike, *, carriers: int | None = None, blocks: int = 1) -> Schedule:
    """An alltoall with one message from each host to each other host; some ranks of a host, the carriers, send them.

    The three-step exchange of Bienz, Gropp and Olson 2019 for sparse messages, here for alltoall. Ranks first send
    their blocks to the carriers of their own host, carriers of different hosts then exchange, and finally each carrier
    sends the arrived blocks to the ranks of its host. With n hosts numbered in the order of their first ranks, a host
    with c carriers sends to the host k places after it, and receives from the host k places before it (both modulo n),
    through its carrier (k - 1) modulo c. A carrier thus sends as much as it receives if hosts are equally large. Blocks
    between ranks of the same host go directly, together with the blocks for the carriers.

    Messages: n (n - 1) between hosts; inside a host of m ranks with c carriers m (m - 1), then c (m - 1). Bytes: each
    block crosses from host to host once, and is sent inside a host up to twice. It is fast for small and medium blocks,
    for which m^2 messages between two hosts would cost more start-ups than the copies inside hosts cost time.

    :param rank_host: host of each rank, shape (p,), any numbers; hosts may have different numbers of ranks.
    :param carriers: largest number of carriers of a host; by default all ranks are carriers.
    :param blocks: number of blocks that each rank sends to each rank.
    :raises ValueError: if ``carriers`` is below 1.
    """
    host = np.asarray(rank_host)
    return _aggregated(
        HostCarriers(host, len(host) if carriers is None else carriers, direct=True), "node-aware", blocks
    )


class _Dealt(NamedTuple):
    """The division of the traffic between one host of m ranks and all n hosts among the first host's carriers.

    A carrier that serves a host sends to it, or receives from it, for all ranks of the carrier's own host.

    :param carrier: index, among the m ranks, of the carrier that serves each host, shape (n,); -1 for the host itself
        if blocks between its own ranks go directly.
    :param before: number of ranks on those hosts with lower numbers that the same carrier serves, shape (n,).
    :param ranks: number of ranks on all hosts that each of the m ranks serves, shape (m,); 0 for no carrier.
    :param own: number of ranks, among those in ``ranks``, on hosts with lower numbers than the first host, shape (m,).
    """

    carrier: Integers
    before: Integers
    ranks: Integers
    own: Integers


class HostCarriers:
    """The ranks and carriers of each host; hosts are numbered in the order of their lowest ranks.

    :param rank_host: host of each rank, shape (p,), any numbers.
    :param carriers: largest number of carriers of a host.
    :param direct: whether blocks between ranks of one host go directly, in the first message between these ranks, and
        not through a carrier.
    :ivar size: number of ranks, p.
    :ivar number: number of hosts, n.
    """

    def __init__(self, rank_host: NDArray[np.integer], carriers: int, *, direct: bool) -> None:
        if carriers < 1:
            raise ValueError(f"expecting at least one carrier, got {carriers}")
        _, first, host = np.unique(rank_host, return_index=True, return_inverse=True)
        self.direct = direct
        self.of_rank: Integers = np.argsort(np.argsort(first))[host]
        self.members = np.argsort(self.of_rank, kind="stable")
        self.ranks = np.bincount(self.of_rank)
        self.begin: Integers = np.cumsum(self.ranks) - self.ranks
        self.local = np.empty_like(self.members)
        self.local[self.members] = np.arange(len(host)) - self.begin[self.of_rank[self.members]]
        self.carriers = np.minimum(self.ranks, carriers)
        self.size, self.number = len(self.members), len(self.ranks)

    @property
    def in_blocks(self) -> bool:
        """Whether the ranks of each host are consecutive, host after host."""
        return bool((np.diff(self.of_rank) >= 0).all())

    def out(self, host: int) -> _Dealt:
        """The division of a host's outgoing blocks: carrier (k - 1) mod c of c serves the host k places after it."""
        return self._dealt(host, np.arange(self.number) - host)

    def into(self, host: int) -> _Dealt:
        """The division of a host's incoming blocks: carrier (k - 1) mod c of c serves the host k places before it."""
        return self._dealt(host, host - np.arange(self.number))

    def places(self, here: ArrayLike, there: ArrayLike) -> tuple[Integers, Integers]:
        """The indices, within their hosts, of the carrier that sends from one host to another and of its receiver.

        :param here: numbers of the sending hosts.
        :param there: numbers of the receiving hosts, each different from its sending host; broadcast with ``here``.
        """
        one, other = np.asarray(here), np.asarray(there)
        turn = (other - one) % self.number - 1
        return turn % self.carriers[one], turn % self.carriers[other]

    def _dealt(self, host: int, distance: Integers) -> _Dealt:
        carrier = (distance % self.number - 1) % self.carriers[host]
        if self.direct:
            carrier[host] = -1
        order = np.argsort(carrier, kind="stable")
        total = np.cumsum(self.ranks[order]) - self.ranks[order]
        first = np.searchsorted(carrier[order], np.arange(-1, self.ranks[host]))
        before = np.empty_like(carrier)
        before[order] = total - total[first[carrier[order] + 1]]
        ranks, own = np.zeros(self.ranks[host], dtype=np.int64), np.zeros(self.ranks[host], dtype=np.int64)
        others = np.flatnonzero(carrier >= 0)
        np.add.at(ranks, carrier[others], self.ranks[others])
        np.add.at(own, carrier[others[others < host]], self.ranks[others[others < host]])
        return _Dealt(carrier, before, ranks, own)

    @cached_property
    def most(self) -> int:
        """The largest number of pairs of ranks whose blocks any rank stores at a time."""
        held = [
            self.ranks[host] * (int(side.ranks.max()) + self.direct)
            for host in range(self.number)
            for side in (self.out(host), self.into(host))
        ]
        return int(max(self.size, *held))


@dataclass(frozen=True, eq=False)
class _AtHosts(Phase):
    """A phase of messages or local moves inside hosts.

    :param hosts: the ranks of each host.
    :param make: function that takes a host, and indices of ranks within it, and returns the rows of the messages that
        these ranks send, or of their local moves.
    """

    hosts: HostCarriers = field(kw_only=True)
    make: Callable[[int, Integers], Rows] = field(kw_only=True)

    def rows(self) -> Rows:
        """The rows of all ranks, grouped by host."""
        hosts = self.hosts
        return np.concatenate([self.make(host, np.arange(hosts.ranks[host])) for host in range(hosts.number)])

    def of_rank(self, rank: int) -> Rows:
        """The rows that a rank takes part in, in the order of ``rows``.

        Cost: the rows of the rank's host are made, or those of the rank alone if all are local moves.
        """
        host = int(self.hosts.of_rank[rank])
        places = self.hosts.local[[rank]] if self.local else np.arange(self.hosts.ranks[host])
        return taken(self.make(host, places), rank)


@dataclass(frozen=True, eq=False)
class _BetweenHosts(Phase):
    """A phase with one message for each ordered pair of hosts.

    :param hosts: the ranks of each host.
    :param make: function that takes the sending and the receiving host of each message, and returns the messages'
        schedule rows.
    """

    hosts: HostCarriers = field(kw_only=True)
    make: Callable[[Integers, Integers], Rows] = field(kw_only=True)

    def rows(self) -> Rows:
        """The rows of all messages, sorted by sending host, then by receiving host."""
        here, there = np.indices((self.hosts.number, self.hosts.number))
        return self.make(here.ravel(), there.ravel())

    def of_rank(self, rank: int) -> Rows:
        """The rows that a rank takes part in. Cost: the rows of the hosts that the rank serves are made."""
        hosts, host = self.hosts, int(self.hosts.of_rank[rank])
        sides = hosts.into(host), hosts.out(host)
        here, there = (np.flatnonzero(side.carrier == hosts.local[rank]) for side in sides)
        key = np.concatenate((here * hosts.number + host, host * hosts.number + there, [host * (hosts.number + 1)]))
        return taken(self.make(*np.divmod(np.unique(key), hosts.number)), rank)


def _aggregated(hosts: HostCarriers, algorithm: str, blocks: int) -> Schedule:
    """An alltoall in which the blocks from rank s to rank d pass a carrier of s's host and a carrier of d's host.

    Before each message, local moves bring its blocks side by side. Phases without effect are left out: if each host has
    one rank, if there is one host, or if no blocks need sorting because the ranks of each host are consecutive.
    """
    if (hosts.ranks == 1).all():
        kinds = [_exchange]
    elif hosts.number == 1:
        kinds = [_collect] if hosts.direct else [_collect, _turn_out, _hand_out]
    else:
        kinds = [_collect, _turn_out, _exchange, _turn_in, _hand_out]
        if hosts.direct or not hosts.in_blocks:
            kinds = [_pack, *kinds, _unpack]
    # Two areas of scratch take turns, so that no phase writes what it reads.
    areas = [(SCRATCH, hosts.most * (number % 2)) for number in range(1, len(kinds))]
    ways = zip(kinds, [(INPUT, 0), *areas], [*areas, (OUTPUT, 0)], strict=True)
    phases = sequence(*(kind(hosts, _Way(here, there, blocks)) for kind, here, there in ways))
    return Schedule.from_phases("alltoall", hosts.size, algorithm, phases, blocks=blocks)


class _Way(NamedTuple):
    """The buffers between which a phase moves blocks.

    :ivar here: buffer that the phase reads, and the first block of it that the phase may read.
    :ivar there: buffer that the phase writes, and the first block of it that the phase may write.
    :ivar blocks: number of blocks that each rank sends to each rank, the unit of the methods' positions and lengths.
    """

    here: tuple[int, int]
    there: tuple[int, int]
    blocks: int

    def rows(
        self, step: ArrayLike, ranks: tuple[Integers, Integers], here: Integers, there: Integers, count: Integers
    ) -> Rows:
        """The schedule rows of transfers between pairs of ranks.

        :param step: step of each transfer.
        :param ranks: sending ranks and receiving ranks.
        :param here: position in the buffer at which each transfer begins to read, in units of ``blocks`` blocks.
        :param there: position in the buffer at which each transfer begins to write, in this unit.
        :param count: length of each transfer, in this unit.
        """
        source, destination = (self.here[0], self.here[1] + here), (self.there[0], self.there[1] + there)
        rows = transfers(step, *ranks, source, destination, count)
        rows[:, [4, 6, 7]] *= self.blocks
        return rows

    def runs(self, rank: Integers, here: Integers, there: Integers, count: Integers) -> Rows:
        """The schedule rows of local moves; moves of a rank become one if they read and write adjacent blocks.

        :param rank: rank of each move; moves must be sorted by rank, then by ``here``.
        :param here: position at which each move begins to read, in units of ``blocks`` blocks.
        :param there: position at which each move begins to write, in this unit.
        :param count: length of each move, in this unit.
        """
        follows = (rank[1:] == rank[:-1]) & (np.diff(here) == count[:-1]) & (np.diff(there) == count[:-1])
        first = np.flatnonzero(np.append(True, ~follows))
        ranks = rank[first], rank[first]
        return self.rows(0, ranks, here[first], there[first], np.add.reduceat(count, first))


# The blocks from rank s of host h to rank d of host g, before each phase. The columns are the rank that has them (out:
# the carrier of h that sends to g; into: the carrier of g that receives from h), the keys by which its blocks are
# sorted, and the phase that moves them next:
#
#     s     input, by d                            _pack
#     s     by carrier of h, then d                _collect
#     out   by s, then d                           _turn_out
#     out   by g, d, s                             _exchange
#     into  by h, d, s                             _turn_in
#     into  by d, h, s                             _hand_out
#     d     by carrier of g, then h, s             _unpack
#     d     output, by s
#
# To sort by d is to sort by d's host, then by d's index in this host. Blocks between ranks of one host (g = h) that go
# directly, without a carrier, are sorted as if rank d were the carrier.


def _pack(hosts: HostCarriers, way: _Way) -> Phase:
    """The phase in which each rank sorts its blocks by the carrier that serves their destination's host."""

    def make(host: int, places: Integers) -> Rows:
        side, there = hosts.out(host), hosts.of_rank
        carrier = np.where(side.carrier[there] < 0, hosts.local, side.carrier[there])
        before = np.where(
            side.carrier[there] < 0, side.own[carrier * (there == host)], side.before[there] + hosts.local
        )
        before += hosts.direct & (there > host)
        begin = starts(side.ranks + hosts.direct)
        rank = np.repeat(hosts.members[hosts.begin[host] + places], hosts.size)
        source, target = (np.tile(at, len(places)) for at in (np.arange(hosts.size), begin[carrier] + before))
        return way.runs(rank, source, target, np.ones_like(rank))

    return _AtHosts(1, hosts=hosts, make=make, local=True)


def _collect(hosts: HostCarriers, way: _Way) -> Phase:
    """The phase in which each rank sends each carrier of its host the blocks for the hosts that the carrier serves."""

    def make(host: int, places: Integers) -> Rows:
        count = hosts.out(host).ranks + hosts.direct
        s, carrier = places[:, None], np.arange(hosts.ranks[host])
        ranks = hosts.members[hosts.begin[host] + s], hosts.members[hosts.begin[host] + carrier]
        return way.rows((carrier - s) % hosts.ranks[host], ranks, starts(count)[:-1], s * count, count)

    return _AtHosts(int(hosts.ranks.max()), hosts=hosts, make=make)


def _turn_out(hosts: HostCarriers, way: _Way) -> Phase:
    """The phase in which each carrier sorts the blocks that leave its host by destination."""

    def make(host: int, places: Integers) -> Rows:
        here, tables = hosts.ranks[host], []
        for carrier, held in zip(places, (hosts.out(host).ranks + hosts.direct)[places].tolist(), strict=True):
            if held:
                s, d = (axis.ravel() for axis in np.indices((here, held)))
                rank = np.full_like(s, hosts.members[hosts.begin[host] + carrier])
                tables.append(way.runs(rank, s * held + d, d * here + s, np.ones_like(s)))
        return np.concatenate([np.empty((0, 9), dtype=np.int64), *tables])

    return _AtHosts(1, hosts=hosts, make=make, local=True)


def _exchange(hosts: HostCarriers, way: _Way) -> Phase:
    """The phase with a message for each pair of hosts, between the carriers that serve each other's hosts."""

    def make(here: Integers, there: Integers) -> Rows:
        tables = []
        remote = here != there if hosts.direct else np.full(len(here), True)
        h, g = here[remote], there[remote]
        out, begin = _dealt_to(hosts.out, h, g)
        into, end = _dealt_to(hosts.into, g, h)
        ranks = hosts.members[hosts.begin[h] + out], hosts.members[hosts.begin[g] + into]
        begin, end = begin + (hosts.direct & (g > h)), end + (hosts.direct & (h > g))
        turn = np.maximum((g - h) % hosts.number - 1, 0) // hosts.carriers.max()
        tables.append(
            way.rows(turn, ranks, begin * hosts.ranks[h], end * hosts.ranks[g], hosts.ranks[h] * hosts.ranks[g])
        )
        for host in here[~remote].tolist():
            many, first = hosts.ranks[host], hosts.begin[host]
            rank = hosts.members[first : first + many]
            begin, end = hosts.out(host).own * many, hosts.into(host).own * many
            tables.append(way.rows(0, (rank, rank), begin, end, np.full(many, many)))
        return np.concatenate(tables)

    steps = max(hosts.number - 2, 0) // int(hosts.carriers.max()) + 1
    return _BetweenHosts(steps, hosts=hosts, make=make)


def _dealt_to(side: Callable[[int], _Dealt], hosts: Integers, others: Integers) -> tuple[Integers, Integers]:
    """The carrier of each pair's first host that serves the second one, and the ranks that it serves before it.

    The result has two arrays of shape (pairs,): entries of `_Dealt.carrier` and `_Dealt.before`.

    :param side: `Hosts.out` or `Hosts.into`.
    :param hosts: first host of each pair, shape (pairs,).
    :param others: second host of each pair, shape (pairs,).
    """
    carrier, before = np.empty_like(hosts), np.empty_like(hosts)
    order = np.argsort(hosts, kind="stable")
    values, first = np.unique(hosts[order], return_index=True)
    for host, rows in zip(values.tolist(), np.split(order, first)[1:], strict=True):
        division = side(host)
        carrier[rows], before[rows] = division.carrier[others[rows]], division.before[others[rows]]
    return carrier, before


def _turn_in(hosts: HostCarriers, way: _Way) -> Phase:
    """The phase in which each carrier sorts the blocks that enter its host by destination."""

    def make(host: int, places: Integers) -> Rows:
        side, here, tables = hosts.into(host), hosts.ranks[host], []
        d = np.arange(here)
        for carrier in places.tolist():
            served = np.flatnonzero(side.carrier == carrier)[:, None]
            behind = hosts.direct & (served > host)
            source = (side.before[served] + behind) * here + d * hosts.ranks[served]
            begin = d * side.ranks[carrier] + (hosts.direct & (d > carrier)) * here
            target = begin + side.before[served] + (behind & (d == carrier)) * here
            count = np.broadcast_to(hosts.ranks[served], source.shape)
            own = slice(carrier, carrier + hosts.direct)  # this rank if blocks inside a host go directly, else empty
            columns = [
                np.append(one, extra)
                for one, extra in (
                    (source, side.own[own] * here),
                    (target, (begin + side.own[carrier])[own]),
                    (count, [here][: own.stop - own.start]),
                )
            ]
            order = np.argsort(columns[0])
            rank = np.full(len(order), hosts.members[hosts.begin[host] + carrier])
            if len(order):
                tables.append(way.runs(rank, *(column[order] for column in columns)))
        return np.concatenate([np.empty((0, 9), dtype=np.int64), *tables])

    return _AtHosts(1, hosts=hosts, make=make, local=True)


def _hand_out(hosts: HostCarriers, way: _Way) -> Phase:
    """The phase in which each carrier sends each rank of its host the blocks that arrived for this rank."""

    def make(host: int, places: Integers) -> Rows:
        side, many = hosts.into(host), hosts.ranks[host]
        carrier, d = places[:, None], np.arange(many)
        ranks = hosts.members[hosts.begin[host] + carrier], hosts.members[hosts.begin[host] + d]
        begin = d * side.ranks[carrier] + (hosts.direct & (d > carrier)) * many
        end = starts(side.ranks)[carrier] + (hosts.direct & (d < carrier)) * many
        count = side.ranks[carrier] + (hosts.direct & (d == carrier)) * many
        return way.rows((d - carrier) % many, ranks, begin, end, count)

    return _AtHosts(int(hosts.ranks.max()), hosts=hosts, make=make)


def _unpack(hosts: HostCarriers, way: _Way) -> Phase:
    """The phase in which each rank sorts the blocks that it received by source."""

    def make(host: int, places: Integers) -> Rows:
        side, many, tables = hosts.into(host), hosts.ranks[host], []
        there = hosts.of_rank
        for d in places.tolist():
            carrier = np.where(side.carrier[there] < 0, d, side.carrier[there])
            before = np.where(side.carrier[there] < 0, side.own[d], side.before[there]) + hosts.local
            before += (hosts.direct & (carrier == d) & (there > host)) * many
            source = starts(side.ranks)[carrier] + (hosts.direct & (d < carrier)) * many + before
            order = np.argsort(source)
            rank = np.full(hosts.size, hosts.members[hosts.begin[host] + d])
            tables.append(way.runs(rank, source[order], order, np.ones_like(order)))
        return np.concatenate(tables)

    return _AtHosts(1, hosts=hosts, make=make, local=True)
