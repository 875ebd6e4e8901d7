"""The assignment of lanes, parts of the data that travel between hosts, to the ranks of each host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..network import Network

__all__ = ["LaneCarriers"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LaneCarriers:
    """The assignment of lanes to ranks. A lane is a part of the data that one rank per host exchanges with other hosts.

    There are as many lanes as the median host has ranks. On a host with fewer ranks some ranks carry several lanes; on
    a host with more ranks some carry no lane, and only take part in the stages inside the host.

    :param network: the job's network.
    """

    network: Network

    @cached_property
    def number(self) -> int:
        """Number of lanes: the ranks of the lower median host."""
        sizes = np.bincount(self.network.rank_host)
        return int(np.sort(sizes)[(len(sizes) - 1) // 2])

    @cached_property
    def carrier(self) -> Integers:
        """The rank that carries each lane on each host, shape (lanes, hosts)."""
        lane = np.arange(self.number)
        columns = [ranks[lane * len(ranks) // self.number] for ranks in self.network.ranks_of_host]
        return np.stack(columns, axis=1).astype(np.int64)

    @cached_property
    def across(self) -> Network:
        """The network of the ranks that carry lane 0, one per host, so that its ranks are the hosts in their order."""
        return self.network.part(self.carrier[0])

    def where(self, rank: int) -> tuple[int, int]:
        """The host of a rank, and the rank's index among the ranks of its host."""
        host = int(self.network.rank_host[rank])
        return host, int(np.searchsorted(self.network.ranks_of_host[host], rank))

    def alike(self) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Yield, for each number of ranks per host that occurs, the hosts with this number.

        Each item has three arrays: these hosts, shape (hosts,), their ranks, shape (hosts, number), and the first lane
        of each rank, as from `first_of`.
        """
        sizes = np.bincount(self.network.rank_host)
        for size in np.unique(sizes):
            hosts = np.flatnonzero(sizes == size)
            groups = np.stack([self.network.ranks_of_host[host] for host in hosts]).astype(np.int64)
            yield hosts, groups, self.first_of(int(size))

    def first_of(self, size: int) -> Integers:
        """The first lane of each rank of a host with ``size`` ranks, and the number of lanes, shape (size + 1,).

        Rank i of the host carries the lanes from entry i to entry i + 1, exclusive, which may be none.
        """
        place = np.arange(self.number) * size // self.number
        return np.searchsorted(place, np.arange(size + 1))
