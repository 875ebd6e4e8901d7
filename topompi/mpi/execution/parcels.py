"""The parcels of an alltoallv by carriers (ranks that send between hosts for their host), computed without MPI.

A parcel is the blocks that one rank sends to another in one stage: first their sizes, then their bytes, block after
block. In the first stage ranks send parcels to the carriers of their host; in the second stage carriers exchange one
parcel for each pair of hosts; in the third stage carriers send the arrived blocks to the ranks of their host. Each rank
can compute the number of blocks in each parcel from the hosts of all ranks, so that it can tell sizes from bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...schedules.alltoall.aggregation import HostCarriers

__all__ = ["REFUSED", "Parcel", "Parcels", "Route"]

Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

REFUSED = -1  # sent in place of a block's size by a rank that has an error in its own arguments
LONG = 256  # bytes; blocks above this mean size are copied one by one, because indexing every byte takes longer then


class Parcel(NamedTuple):
    """Blocks that one rank sends to another in one stage.

    :param sizes: bytes of each block, shape (blocks,); ``REFUSED`` for a block that is not sent, because the rank from
        which it comes has an error in its arguments.
    :param data: bytes of the blocks, block after block, shape (bytes,).
    """

    sizes: Integers
    data: Bytes

    @classmethod
    def refused(cls, number: int) -> Parcel:
        """The parcel of a rank that sends no data, because it has an error in its arguments.

        :param number: number of blocks that the parcel would have without the error.
        """
        return cls(np.full(number, REFUSED), np.empty(0, dtype=np.uint8))

    @classmethod
    def of(cls, parcels: list[Parcel]) -> Parcel:
        """One parcel with the blocks of several, in their order."""
        sizes, data = zip(*parcels, strict=True)
        return cls(np.concatenate(sizes), np.concatenate(data))

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def lengths(self) -> Integers:
        """Bytes of each block in ``data``, shape (blocks,); 0 for a refused block."""
        return np.maximum(self.sizes, 0)

    def blocks(self, order: ArrayLike) -> Parcel:
        """A parcel with some of the blocks.

        :param order: numbers of these blocks in this parcel, in the order in which the new one has them.
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
        """Cut the parcel into several parcels of consecutive blocks.

        :param numbers: number of blocks in each of the new parcels.
        """
        ends = np.cumsum([0, *numbers])
        bounds = np.append(0, np.cumsum(self.lengths))[ends].tolist()
        return [
            Parcel(self.sizes[ends[at] : ends[at + 1]], self.data[bounds[at] : bounds[at + 1]])
            for at in range(len(numbers))
        ]


Parcels = Mapping[int, Parcel]  # the parcels of one stage, by the rank that sends or receives each


class Route:
    """The parcels that one rank sends and receives in each stage of an alltoallv by carriers.

    All m ranks of a host are carriers. With n hosts numbered in the order of their lowest ranks, the host k places
    after a host (modulo n) gets its blocks from carrier (k - 1) modulo m of that host, as in ``alltoall_node_aware``;
    its own carrier with number (k - 1), modulo the number of its ranks, receives them.

    :param rank_host: host of each rank, shape (p,), any numbers.
    :param rank: the rank.
    :ivar order: all ranks, sorted as this rank's blocks for them must be sorted for the first stage, shape (p,).
    :ivar arrival: all ranks, sorted as their blocks for this rank are after the last stage, shape (p,).
    """

    def __init__(self, rank_host: ArrayLike, rank: int) -> None:
        given = np.asarray(rank_host)
        self._hosts = hosts = HostCarriers(given, len(given), direct=True)
        self.rank, here = rank, int(hosts.of_rank[rank])
        self._host, self._near = here, self._ranks(here)
        others = np.delete(np.arange(hosts.number), here)
        out, into = hosts.places(here, others)[0], hosts.places(others, here)[1]
        me = int(hosts.local[rank])
        self._to, self._from = others[out == me].tolist(), others[into == me].tolist()
        # For each carrier of this host: the ranks for which it takes this rank's blocks, the carrier itself last; and
        # the ranks whose blocks it brings to this rank.
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

    # First stage: each rank sends its blocks to the carriers of its host.

    def handed(self, own: Parcel) -> Parcels:
        """The parcels that this rank sends in the first stage, by carrier of its host.

        :param own: this rank's blocks for all ranks, sorted as ``order``.
        """
        return dict(zip(self._near, own.cut(list(map(len, self._taken))), strict=True))

    @cached_property
    def to_collect(self) -> dict[int, int]:
        """Number of blocks that this rank, as a carrier, receives in the first stage, by sending rank."""
        number = len(self._taken[self._near.index(self.rank)])
        return dict.fromkeys(self._near, number)

    # Second stage: carriers exchange one parcel for each pair of hosts, sorted by receiving, then by sending rank.

    def collected(self, parcels: Parcels) -> tuple[Parcel, Parcels]:
        """The blocks that ranks of this host sent to this rank, and the parcels that it sends in the second stage.

        :param parcels: the parcels that arrived in the first stage, by sending rank of this host.
        :returns: the blocks; and the parcels, by the carrier of another host that receives each.
        """
        both, many = Parcel.of([parcels[rank] for rank in self._near]), len(self._near)
        by_receiver = np.arange(len(both)).reshape(many, -1).T
        numbers = [many * len(self._ranks(host)) for host in self._to]
        carriers = [self._carrier(host, self._hosts.places(self._host, host)[1]) for host in self._to]
        sent = both.blocks(by_receiver[:-1].ravel()).cut(numbers)
        return both.blocks(by_receiver[-1]), dict(zip(carriers, sent, strict=True))

    @cached_property
    def to_exchange(self) -> dict[int, int]:
        """For each carrier on another host, the number of blocks that it sends to this rank in the second stage."""
        many = len(self._near)
        carriers = [self._carrier(host, self._hosts.places(host, self._host)[0]) for host in self._from]
        return {rank: many * len(self._ranks(host)) for rank, host in zip(carriers, self._from, strict=True)}

    def _carrier(self, host: int, place: ArrayLike) -> int:
        return self._ranks(host)[int(np.asarray(place))]

    # Third stage: carriers send the arrived blocks to the ranks of their host.

    def exchanged(self, parcels: Parcels) -> Parcels:
        """The parcels that this rank sends in the third stage, by receiving rank of its host.

        :param parcels: the parcels that arrived in the second stage, by sending carrier of another host.
        """
        many = len(self._near)
        if not self._from:
            return {}
        came = [parcels[rank].cut([len(parcels[rank]) // many] * many) for rank in self.to_exchange]
        return {rank: Parcel.of([one[place] for one in came]) for place, rank in enumerate(self._near)}

    @cached_property
    def to_hand_out(self) -> dict[int, int]:
        """Number of blocks that this rank receives in the third stage, by sending carrier of its host."""
        numbers = map(len, self._brought)
        return {rank: number for rank, number in zip(self._near, numbers, strict=True) if number}

    def arrived(self, direct: Parcel, parcels: Parcels) -> Parcel:
        """The blocks of all ranks for this rank, sorted as ``arrival``.

        :param direct: blocks from ranks of this host, which arrived in the first stage.
        :param parcels: the parcels that arrived in the third stage, by sending carrier of this host.
        """
        return Parcel.of([direct, *(parcels[rank] for rank in self.to_hand_out)])
