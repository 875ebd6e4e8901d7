"""The directed links of a network and the next-hop tables of its switches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .errors import NetsimError
from .wiring import Wiring

__all__ = ["Tables"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Links = NDArray[np.int32]

MOST_HOPS = 64  # a route that is longer is taken for a loop
CHUNK = 1 << 18  # pairs whose routes are followed together: bounds the memory


@dataclass(frozen=True, eq=False)
class Tables:
    """Links and deterministic routes: what a switch holds, and nothing for each pair of hosts.

    Vertices are the hosts, then the switches. A host sends on the first link that leaves it.

    :param source: vertex that each link leaves, shape (links,); likewise ``target``.
    :param target: vertex at its end.
    :param rate: bytes/s of each link, shape (links,).
    :param latency: seconds from the beginning of a link into the switch or host at its end, shape (links,).
    :param next_link: link from each switch towards each host, shape (switches, hosts), -1 for none.
    :param names: of the vertices, for messages; empty for their numbers.
    """

    source: Links
    target: Links
    rate: Floats
    latency: Floats
    next_link: Links
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("source", "target", "next_link"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=np.int32))
        for name in ("rate", "latency"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=np.float64))
        shapes = [column.shape for column in (self.source, self.target, self.rate, self.latency)]
        if len(set(shapes)) != 1 or self.source.ndim != 1 or self.next_link.ndim != 2:
            raise NetsimError(f"tables: expecting four columns of one length and a table, got {shapes}")
        vertices = sum(self.next_link.shape)
        for name, least, most in (("source", 0, vertices), ("target", 0, vertices), ("next_link", -1, len(self.rate))):
            column = getattr(self, name)
            if column.min(initial=least) < least or column.max(initial=least) >= max(most, least + 1):
                raise NetsimError(
                    f"tables: {name}: expecting range({least}, {most}), got {column.min()}..{column.max()}"
                )
        if not (np.isfinite(self.rate).all() and (self.rate > 0).all()):
            raise NetsimError("tables: expecting finite rates above 0 bytes/s")
        if not (np.isfinite(self.latency).all() and (self.latency >= 0).all()):
            raise NetsimError("tables: expecting finite latencies of at least 0 s")
        self._check_next_links()

    def _check_next_links(self) -> None:
        switch, host = np.nonzero(self.next_link >= 0)
        wrong = np.flatnonzero(self.source[self.next_link[switch, host]] != switch + self.num_hosts)
        if len(wrong):
            at, to = self.name(switch[wrong[0]] + self.num_hosts), self.name(host[wrong[0]])
            raise NetsimError(f"tables: {at}, towards {to}: expecting a link that leaves it, got another's")

    @property
    def num_hosts(self) -> int:
        """Number of hosts, n."""
        return int(self.next_link.shape[1])

    @cached_property
    def uplink(self) -> Links:
        """The link on which each host sends, shape (n,); -1 for none."""
        found = np.full(self.num_hosts, -1, dtype=np.int32)
        links = np.flatnonzero(self.source < self.num_hosts)[::-1]
        found[self.source[links]] = links
        return found

    def name(self, vertex: int) -> str:
        """What a host or a switch is called."""
        kind, number = ("host", vertex) if vertex < self.num_hosts else ("switch", vertex - self.num_hosts)
        return self.names[vertex] if self.names else f"{kind} {number}"

    def paths(self, source: Integers, destination: Integers) -> Links:
        """Links between pairs of hosts, shape (pairs, longest), padded with -1; none from a host to itself.

        :param source: first host of each pair, shape (pairs,).
        :param destination: second host of each pair.
        :raises NetsimError: for two hosts without a route.
        """
        columns: list[Links] = []
        here = np.flatnonzero(source != destination)
        link = self.uplink[source[here]]
        while len(here) and len(columns) < MOST_HOPS:
            self._require_routes(link, source[here], destination[here])
            column = np.full(len(source), -1, dtype=np.int32)
            column[here] = link
            columns.append(column)
            vertex = self.target[link]
            inside = vertex >= self.num_hosts
            lost = ~inside & (vertex != destination[here])
            self._require_routes(np.where(lost, -1, 0), source[here], destination[here])
            here, vertex = here[inside], vertex[inside]
            link = self.next_link[vertex - self.num_hosts, destination[here]]
        self._require_routes(np.full(len(here), -1), source[here], destination[here])
        return np.stack(columns, axis=1) if columns else np.empty((len(source), 0), dtype=np.int32)

    def _require_routes(self, link: NDArray[np.integer], source: Integers, destination: Integers) -> None:
        lost = np.flatnonzero(link < 0)
        if len(lost):
            pair = f"{self.name(source[lost[0]])} to {self.name(destination[lost[0]])}"
            raise NetsimError(f"tables: expecting a route from {pair}, got none")

    def walks(self, source: Integers, destination: Integers) -> Iterator[tuple[slice, Links]]:
        """``paths`` of some pairs at a time, each with the slice of its pairs."""
        for first in range(0, len(source), CHUNK):
            some = slice(first, first + CHUNK)
            yield some, self.paths(source[some], destination[some])

    def wiring(self) -> Wiring:
        """The same network with the routes of all pairs, as flows take it; cost: n * n * longest numbers."""
        count = self.num_hosts
        first, second = (axis.ravel() for axis in np.indices((count, count)))
        return Wiring(self.rate, self.latency, self.paths(first, second).reshape(count, count, -1))
