"""An exchange of uneven blocks by carriers inside hosts: which rank hands what to whom in three stages, without MPI.

A parcel is what one rank hands to another: the sizes of the blocks in it, and their bytes, one block after the other.
Ranks hand parcels to the carriers of their host, carriers exchange one parcel for each pair of hosts, and hand out what
arrived. How many blocks a parcel has follows from the hosts of the ranks, so its sizes can be read before its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...schedules.alltoall.aggregation import Hosts

__all__ = ["REFUSED", "Parcel", "Parcels", "Route"]

Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

REFUSED = -1  # in place of the size of a block, of a rank that finds something wrong with its own call
LONG = 256  # bytes of a block from which a slice is copied faster than its bytes by index


class Parcel(NamedTuple):
    """Blocks that one rank hands to another.

    :param sizes: bytes of each block, shape (blocks,); ``REFUSED`` of a rank that refuses the call, which sends none.
    :param data: the blocks, one after the other.
    """

    sizes: Integers
    data: Bytes

    @classmethod
    def refused(cls, number: int) -> Parcel:
        """The parcel of a rank that sends nothing because it refuses the call.

        :param number: of blocks that it would have.
        """
        return cls(np.full(number, REFUSED), np.empty(0, dtype=np.uint8))

    @classmethod
    def of(cls, parcels: list[Parcel]) -> Parcel:
        """The blocks of several parcels."""
        sizes, data = zip(*parcels, strict=True)
        return cls(np.concatenate(sizes), np.concatenate(data))

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def lengths(self) -> Integers:
        """Bytes that each block has here, shape (blocks,)."""
        return np.maximum(self.sizes, 0)

    def blocks(self, order: ArrayLike) -> Parcel:
        """Some of the blocks, in a given order.

        :param order: numbers of the blocks.
        """
        chosen, lengths = np.asarray(order, dtype=np.int64), self.lengths
        begin, many = (np.cumsum(lengths) - lengths)[chosen], lengths[chosen]
        total = int(many.sum())
        if total <= LONG * len(chosen):
            within = np.arange(total) - np.repeat(np.cumsum(many) - many, many)
            return Parcel(self.sizes[chosen], self.data[np.repeat(begin, many) + within])
        pieces = [self.data[first:end] for first, end in zip(begin.tolist(), (begin + many).tolist(), strict=True)]
        return Parcel(self.sizes[chosen], np.concatenate(pieces))

    def cut(self, numbers: list[int]) -> list[Parcel]:
        """Parcels of consecutive blocks, as many as given for each."""
        ends = np.cumsum([0, *numbers])
        bounds = np.append(0, np.cumsum(self.lengths))[ends].tolist()
        return [
            Parcel(self.sizes[ends[at] : ends[at + 1]], self.data[bounds[at] : bounds[at + 1]])
            for at in range(len(numbers))
        ]


Parcels = Mapping[int, Parcel]  # by the rank that sends or receives it


class Route:
    """What one rank hands to whom in an exchange by carriers.

    Hosts at distance k, modulo n, are served by carrier k - 1 modulo the ranks of a host, as in `alltoall_node_aware`.

    :param rank_host: host of each rank, shape (p,), any numbers.
    :param rank: the rank.
    :ivar order: ranks in the order in which the rank packs its blocks for them, shape (p,).
    :ivar arrival: ranks in the order in which their blocks are when they have arrived, shape (p,).
    """

    def __init__(self, rank_host: ArrayLike, rank: int) -> None:
        given = np.asarray(rank_host)
        self._hosts = hosts = Hosts(given, len(given), direct=True)
        self.rank, here = rank, int(hosts.of_rank[rank])
        self._host, self._near = here, self._ranks(here)
        others = np.delete(np.arange(hosts.number), here)
        out, into = hosts.places(here, others)[0], hosts.places(others, here)[1]
        me = int(hosts.local[rank])
        self._to, self._from = others[out == me].tolist(), others[into == me].tolist()
        # The ranks whose blocks each carrier of this host takes, the carrier's own behind them; and whose it brings.
        self._taken = [[*self._all(others[out == place]), near] for place, near in enumerate(self._near)]
        self._brought = [self._all(others[into == place]) for place in range(len(self._near))]
        self.order = np.array([one for some in self._taken for one in some])
        self.arrival = np.array([*self._near, *(one for some in self._brought for one in some)])

    def _ranks(self, host: int) -> list[int]:
        begin = self._hosts.begin[host]
        some: list[int] = self._hosts.members[begin : begin + self._hosts.ranks[host]].tolist()
        return some

    def _all(self, hosts: Integers) -> list[int]:
        return [rank for host in hosts.tolist() for rank in self._ranks(host)]

    # First stage: blocks to the carriers of the own host

    def handed(self, own: Parcel) -> Parcels:
        """The parcels for the carriers of the own host.

        :param own: the rank's blocks for all ranks, in the order of ``order``.
        """
        return dict(zip(self._near, own.cut(list(map(len, self._taken))), strict=True))

    @cached_property
    def to_collect(self) -> dict[int, int]:
        """How many blocks the rank gets from each rank of its host as a carrier."""
        number = len(self._taken[self._near.index(self.rank)])
        return dict.fromkeys(self._near, number)

    # Second stage: one parcel for each pair of hosts, its blocks by receiver, then by sender

    def collected(self, parcels: Parcels) -> tuple[Parcel, Parcels]:
        """The blocks for the rank itself, and the parcels for carriers of other hosts.

        :param parcels: by the rank of the own host from which they came.
        """
        both, many = Parcel.of([parcels[rank] for rank in self._near]), len(self._near)
        by_receiver = np.arange(len(both)).reshape(many, -1).T
        numbers = [many * len(self._ranks(host)) for host in self._to]
        carriers = [self._carrier(host, self._hosts.places(self._host, host)[1]) for host in self._to]
        sent = both.blocks(by_receiver[:-1].ravel()).cut(numbers)
        return both.blocks(by_receiver[-1]), dict(zip(carriers, sent, strict=True))

    @cached_property
    def to_exchange(self) -> dict[int, int]:
        """How many blocks the rank gets from each carrier of another host."""
        many = len(self._near)
        carriers = [self._carrier(host, self._hosts.places(host, self._host)[0]) for host in self._from]
        return {rank: many * len(self._ranks(host)) for rank, host in zip(carriers, self._from, strict=True)}

    def _carrier(self, host: int, place: ArrayLike) -> int:
        return self._ranks(host)[int(np.asarray(place))]

    # Third stage: blocks to their receivers

    def exchanged(self, parcels: Parcels) -> Parcels:
        """The parcels for the ranks of the own host.

        :param parcels: by the carrier from which they came.
        """
        many = len(self._near)
        if not self._from:
            return {}
        came = [parcels[rank].cut([len(parcels[rank]) // many] * many) for rank in self.to_exchange]
        return {rank: Parcel.of([one[place] for one in came]) for place, rank in enumerate(self._near)}

    @cached_property
    def to_hand_out(self) -> dict[int, int]:
        """How many blocks the rank gets from each carrier of its host."""
        numbers = map(len, self._brought)
        return {rank: number for rank, number in zip(self._near, numbers, strict=True) if number}

    def arrived(self, direct: Parcel, parcels: Parcels) -> Parcel:
        """The blocks of all ranks, in the order of ``arrival``.

        :param direct: those of the own host's ranks.
        :param parcels: by the carrier of the own host from which they came.
        """
        return Parcel.of([direct, *(parcels[rank] for rank in self.to_hand_out)])
