"""The network between hosts: links, next-hop links, and the paths, hops, delays and loads that they give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .walks import MAX_HOPS, Walks, link_loads, slices

__all__ = ["Hosts", "Tables", "joined", "known_or", "rate_delay"]

Links = NDArray[np.int32]
Floats = NDArray[np.float64]
Hosts = NDArray[np.integer]


def joined(paths: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Concatenate the paths of several chunks into one array, padded with -1 to the longest path of all.

    :param paths: an array of links for each chunk, shape (number of paths, length of the chunk's longest path).
    """
    if len(paths) == 1:
        return paths[0]
    longest = max((one.shape[1] for one in paths), default=0)
    padded = [np.pad(one, ((0, 0), (0, longest - one.shape[1])), constant_values=-1) for one in paths]
    return np.concatenate(padded) if padded else np.empty((0, 0), dtype=np.int32)


def known_or(column: Floats, value: float | None) -> Floats:
    """Replace NaN in a column by ``value``; if ``value`` is None, return the column itself."""
    return column if value is None else np.where(np.isnan(column), value, column)


def rate_delay(rate: ArrayLike) -> Floats:
    """Compute the delay matrix by speed (Subramoni 2013, section 4): 1 / min(rate_i, rate_j) in s/byte, shape (n, n).

    :param rate: bytes/s of each host's link into the fabric, shape (n,), NaN if unknown.
    """
    rates = np.asarray(rate, dtype=np.float64)
    delay: Floats = 1.0 / np.minimum(rates[:, None], rates)
    return delay


def _distinct(numbers: Links, size: int) -> tuple[Links, NDArray[np.intp]]:
    """Find the distinct numbers, ascending, and the position of each number among them.

    :param numbers: numbers from 0 to below ``size``, shape (n,).
    :param size: upper limit of the numbers.
    """
    there = np.zeros(size, dtype=bool)
    there[numbers] = True
    return np.flatnonzero(there).astype(np.int32), (np.cumsum(there) - 1)[numbers]


@dataclass(frozen=True, eq=False)
class Tables(Walks):
    """Directed links and next-hop links of switches, which give the routes between n hosts.

    Two hosts use the pair of their adapters with the fewest hops. Among equal pairs, a pair on the same rail comes
    first, then the pair with the lowest rail numbers. The further parameters are those of ``Walks``. In all methods,
    ``path`` is the number of an alternative route (LMC), from 0; it has no influence if each pair of adapters has a
    route of its own.

    :param adapters: adapter of each host on each rail, shape (rails, hosts), -1 if the host has no adapter there; by
        default each adapter is a host.
    """

    adapters: Links = None  # type: ignore[assignment]  # set in __post_init__

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.adapters is None:
            object.__setattr__(self, "adapters", np.arange(self.first_switch, dtype=np.int32)[None])

    def __repr__(self) -> str:
        return f"Tables({self.num_hosts:,} hosts, {self.num_switches:,} switches, {self.num_links:,} directed links)"

    @property
    def num_hosts(self) -> int:
        """Number of hosts, n."""
        return int(self.adapters.shape[1])

    @classmethod
    def one_switch(cls, hosts: int) -> Tables:
        """Make a network of hosts on one switch, of unknown rates: link i leaves host i, link hosts + i enters it."""
        every, switch = np.arange(hosts, dtype=np.int32), np.full(hosts, hosts, dtype=np.int32)
        ends, unknown = (np.concatenate((every, switch)), np.concatenate((switch, every))), np.full(2 * hosts, np.nan)
        return cls(*ends, rate=unknown, latency=unknown, next_link=hosts + every[None, None])

    def part(self, hosts: Hosts) -> Tables:
        """Make a network with some of the hosts only; vertices and links keep their numbers.

        :param hosts: numbers of the selected hosts in their new order, shape (n,).
        Cost: an array of the hosts' adapters, because links and next-hop links are not copied.
        """
        adapters = self.adapters[:, hosts]
        adapters = adapters[: 1 + int((adapters[1:] >= 0).any(axis=1).sum())]  # drops empty rails, which are last
        return replace(self, adapters=adapters)

    def filled(self, rate: float | None = None, latency: float | None = None) -> Tables:
        """Make a copy of the network in which unknown rates and latencies have given values.

        :param rate: bandwidth in bytes/s of links of unknown rate; None leaves them unknown.
        :param latency: latency in seconds of links of unknown latency; None leaves them unknown.
        """
        return replace(self, rate=known_or(self.rate, rate), latency=known_or(self.latency, latency))

    def ends(self, source: Hosts, destination: Hosts) -> tuple[Links, Links]:
        """The sending and the receiving adapter of each pair of hosts, each of shape (pairs,).

        :param source: sending host of each pair, shape (pairs,).
        :param destination: receiving host of each pair, shape (pairs,).
        Cost: a look-up if hosts have one adapter each; else one route followed for each pair of their adapters.
        """
        rails = self.adapters
        sender, receiver = rails[0][source], rails[0][destination]
        if len(rails) == 1:
            return sender, receiver
        best = np.full(len(source), MAX_HOPS + 1)
        numbers = product(range(len(rails)), repeat=2)
        for i, j in sorted(numbers, key=lambda pair: (pair[0] != pair[1], pair)):
            one, other = rails[i][source], rails[j][destination]
            hops = self._hops(one, other)
            better = (hops > 0) & (hops < best)
            best = np.where(better, hops, best)
            sender, receiver = np.where(better, one, sender), np.where(better, other, receiver)
        return sender, receiver

    def _hops(self, sender: Links, receiver: Links) -> NDArray[np.integer]:
        """Number of switches crossed between pairs of adapters, shape (pairs,); negative without a route.

        :param sender: sending adapter of each pair, shape (pairs,); -1 has no route.
        :param receiver: receiving adapter of each pair, shape (pairs,); -1 has no route.
        """
        start = np.where((sender >= 0) & (receiver >= 0), self.leaf[sender], -1)
        switches, row = _distinct(start + 1, self.num_switches + 1)
        adapters, column = _distinct(np.maximum(receiver, 0), self.first_switch)
        if len(switches) * len(adapters) <= len(start):
            return self.hops_from(switches - np.int32(1), adapters)[row, column]
        return self.walk(start, receiver)[0]

    def paths(self, source: Hosts, destination: Hosts, path: int = 0) -> Links:
        """Links on the path of each pair of hosts in order, shape (pairs, length of the longest path), padded with -1.

        A pair without a route, and a host to itself, have no links.

        :param source: sending host of each pair, shape (pairs,).
        :param destination: receiving host of each pair, shape (pairs,).
        :param path: path number, from 0.
        Cost: memory for pairs x (longest path) numbers; use ``chunks`` to limit it.
        """
        sender, receiver = self.ends(source, destination)
        apart, uplink = source != destination, self.uplink[sender]
        hops, links, _ = self.walk(np.where(apart, self.leaf[sender], -1), receiver, sender if self.per_pair else path)
        links = np.concatenate((uplink[:, None], links), axis=1)
        direct = apart & (self.link_end[uplink] == receiver)
        links[(hops <= 0) & ~direct] = -1
        return links[:, : max(int(hops.max(initial=0)), 0) + 1]

    def all_paths(self, path: int = 0) -> Links:
        """Links on the paths from every host to every host, as in ``paths``, shape (n, n, length of the longest path).

        :param path: path number, from 0.
        Cost: memory for n x n x (longest path) numbers.
        """
        found = joined([self.paths(*pair, path) for pair in self.every_pair()])
        return found.reshape(self.num_hosts, self.num_hosts, -1)

    @cached_property
    def every_path(self) -> Links:
        """The result of ``all_paths`` for path number 0, cached and read-only."""
        found = self.all_paths()
        found.setflags(write=False)
        return found

    def chunks(self, source: Hosts, destination: Hosts, path: int = 0) -> Iterator[tuple[slice, Links]]:
        """Yield the result of ``paths`` for ``AT_ONCE`` pairs at a time, after the slice of these pairs.

        :param source: sending host of each pair, shape (pairs,).
        :param destination: receiving host of each pair, shape (pairs,).
        :param path: path number, from 0.
        """
        for some in slices(len(source)):
            yield some, self.paths(source[some], destination[some], path)

    def every_pair(self) -> Iterator[tuple[Hosts, Hosts]]:
        """Yield senders and receivers of all ordered pairs of hosts, also of equal ones, in chunks of ``AT_ONCE``."""
        every = np.arange(self.num_hosts)
        for some in slices(self.num_hosts, self.num_hosts):
            yield np.repeat(every[some], self.num_hosts), np.tile(every, some.stop - some.start)

    def hops(self, source: Hosts, destination: Hosts) -> NDArray[np.int16]:
        """Number of switches crossed by each pair of hosts, shape (pairs,): 0 from a host to itself, -1 if no route.

        :param source: sending host of each pair, shape (pairs,).
        :param destination: receiving host of each pair, shape (pairs,).
        Cost: one route followed for each distinct pair of a leaf switch and an adapter, among ``AT_ONCE`` pairs at a
        time.
        """
        found = np.empty(len(source), dtype=np.int16)
        for some in slices(len(source)):
            found[some] = np.maximum(self._hops(*self.ends(source[some], destination[some])), -1)
        found[source == destination] = 0
        return found

    def all_hops(self) -> NDArray[np.int16]:
        """Number of switches crossed from every host to every host, as in ``hops``, shape (n, n).

        Cost: memory for n x n numbers, and one route followed from each leaf switch to each host; none if next-hop
        links are computed.
        """
        if len(self.adapters) == 1:
            first = self.adapters[0]
            hops = self.hops_from(self.leaf[first], first)
            np.maximum(hops, -1, out=hops)
            np.fill_diagonal(hops, 0)
            return hops
        found = np.concatenate([np.empty(0, dtype=np.int16), *(self.hops(*pair) for pair in self.every_pair())])
        return found.reshape(self.num_hosts, self.num_hosts)

    def delays(self, source: Hosts, destination: Hosts) -> Floats:
        """Seconds per byte of the slower of the two hosts' links into the fabric, for each pair, shape (pairs,).

        The delay is 0 from a host to itself, NaN if a rate is unknown.

        :param source: sending host of each pair, shape (pairs,).
        :param destination: receiving host of each pair, shape (pairs,).
        """
        slower = np.minimum(self.host_rate[source], self.host_rate[destination])
        return np.where(source == destination, 0.0, 1.0 / slower)

    @cached_property
    def host_rate(self) -> Floats:
        """Bandwidth of each host's link into the fabric on its first rail in bytes/s, shape (n,); NaN if unknown."""
        rates: Floats = np.append(self.rate, np.nan)[self.uplink[self.adapters[0]]]
        return rates

    def loads(self, source: Hosts, destination: Hosts, amounts: NDArray[np.number], path: int = 0) -> Floats:
        """Sum the bytes that cross each link when messages between hosts follow their routes, shape (links,).

        :param source: sending host of each message, shape (messages,).
        :param destination: receiving host of each message, shape (messages,).
        :param amounts: bytes of each message, shape (messages,); messages without a route are not counted.
        :param path: path number, from 0.
        Cost: one route followed for each distinct pair of a leaf switch and an adapter (of two adapters, if each pair
        has a route of its own), among ``AT_ONCE`` messages at a time.
        """
        loads = np.zeros(self.num_links)
        for some in slices(len(source)):
            apart = source[some] != destination[some]
            sender, receiver = self.ends(source[some][apart], destination[some][apart])
            nbytes = np.asarray(amounts)[some][apart]
            start = sender if self.per_pair else self.leaf[sender]
            keys, place = np.unique(start.astype(np.int64) * self.first_switch + receiver, return_inverse=True)
            start, adapter = (axis.astype(np.int32) for axis in np.divmod(keys, self.first_switch))
            of_keys = np.bincount(place, nbytes, len(keys))
            if self.per_pair:
                carried, arrives = self.loads_from(self.leaf[start], adapter, of_keys, start)
            else:
                carried, arrives = self.loads_from(start, adapter, of_keys, path)
            uplink = self.uplink[sender]
            leaves = arrives[place] | (self.link_end[uplink] == receiver)
            loads += carried + link_loads(uplink[:, None], nbytes * leaves, self.num_links)
        return loads
