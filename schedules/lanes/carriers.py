"""Which rank of each host carries which lane."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..network import Network

__all__ = ["Lanes"]

Integers = NDArray[np.int64]


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
