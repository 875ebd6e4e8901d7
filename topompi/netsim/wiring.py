"""The directed links of a network and the routes between its hosts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import NetsimError

__all__ = ["Tables", "Wiring"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_LINKS = 64  # of a route; what is longer is a circle


@dataclass(frozen=True, eq=False)
class Tables:
    """Routes as switches have them, for networks whose routes between all pairs of hosts are too many to keep.

    :param first: link of each host to its first switch, shape (n,), -1 for none.
    :param next_link: link that each switch takes towards each host, shape (switches, n), -1 for none.
    :param end: where each link ends, shape (links,): the number of a switch, or -1 minus that of a host.
    """

    first: NDArray[np.int32]
    next_link: NDArray[np.int32]
    end: NDArray[np.int32]

    def walk(self, source: Integers, destination: Integers) -> NDArray[np.int32]:
        """Links between pairs of different hosts, shape (pairs, longest), padded with -1; none where no route leads.

        :raises NetsimError: for a route in a circle.
        Cost: one array operation a hop, over the pairs that are still under way.
        """
        link = self.first[source].astype(np.int32)
        columns, under_way = [link], np.flatnonzero(link >= 0)
        ends = np.full(len(source), -1)
        while len(under_way):
            if len(columns) > MOST_LINKS:
                pair = f"host {source[under_way[0]]} to host {destination[under_way[0]]}"
                raise NetsimError(f"wiring: expecting a route of at most {MOST_LINKS} links from {pair}, got a circle")
            end = self.end[link[under_way]]
            ends[under_way[end < 0]] = ~end[end < 0]
            under_way = under_way[end >= 0]
            link = np.full(len(source), -1, dtype=np.int32)
            link[under_way] = self.next_link[end[end >= 0], destination[under_way]]
            under_way = under_way[link[under_way] >= 0]
            columns.append(link)
        found = np.stack(columns[:-1] or columns, axis=1)
        found[ends != destination] = -1
        return found


@dataclass(frozen=True, eq=False)
class Wiring:
    """Links and routes as arrays.

    :param rate: bytes/s of each directed link, shape (links,).
    :param latency: seconds from its beginning to its end, shape (links,).
    :param routes: links of the route from host i to host j, shape (n, n, longest), padded with -1; or the tables that
        lead there.
    """

    rate: Floats
    latency: Floats
    routes: NDArray[np.int32] | Tables

    def __post_init__(self) -> None:
        if self.rate.shape != self.latency.shape or self.rate.ndim != 1:
            shapes = f"{self.rate.shape} and {self.latency.shape}"
            raise NetsimError(f"wiring: expecting a rate and a latency of each link, got shapes {shapes}")
        if not (np.isfinite(self.rate).all() and (self.rate > 0).all()):
            raise NetsimError("wiring: expecting finite rates above 0 bytes/s")
        if not (np.isfinite(self.latency).all() and (self.latency >= 0).all()):
            raise NetsimError("wiring: expecting finite latencies of at least 0 s")
        if isinstance(self.routes, Tables):
            self._check_links(int(max(self.routes.first.max(initial=-1), self.routes.next_link.max(initial=-1))))
            if len(self.routes.end) != len(self.rate):
                raise NetsimError(
                    f"wiring: expecting an end of each of {len(self.rate)} links, got {len(self.routes.end)}"
                )
            return
        if self.routes.ndim != 3 or self.routes.shape[0] != self.routes.shape[1]:
            raise NetsimError(f"wiring: expecting routes of shape (n, n, longest), got {self.routes.shape}")
        self._check_links(int(self.routes.max(initial=-1)))

    def _check_links(self, last: int) -> None:
        if last >= len(self.rate):
            raise NetsimError(f"wiring: expecting links below {len(self.rate)}, got {last}")

    @property
    def num_hosts(self) -> int:
        """Number of hosts, n."""
        return len(self.routes.first if isinstance(self.routes, Tables) else self.routes)

    def paths(self, source: Integers, destination: Integers) -> NDArray[np.int32]:
        """Links between pairs of hosts, shape (pairs, longest), padded with -1.

        :raises NetsimError: for two hosts without a route.
        """
        apart = source != destination
        if isinstance(self.routes, Tables):
            walked = self.routes.walk(source[apart], destination[apart])
            found = np.full((len(source), walked.shape[1]), -1, dtype=np.int32)
            found[apart] = walked
        else:
            found = self.routes[source, destination].astype(np.int32)
        lost = np.flatnonzero(apart & ~(found >= 0).any(axis=1))
        if len(lost):
            pair = f"host {source[lost[0]]} to host {destination[lost[0]]}"
            raise NetsimError(f"wiring: expecting a route from {pair}, got none")
        return found
