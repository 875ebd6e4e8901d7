"""Networks on which programs are simulated: links with known rates and latencies, and tables of next-hop links."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import network
from .errors import NetsimError
from .wiring import Wiring

__all__ = ["Tables"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Links = NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False)
class Tables(network.Tables):
    """A network of links and next-hop links for simulations: all its rates and latencies are known.

    The further parameters are those of ``topompi.network.Tables``.

    :param rises: whether the lane of a packet rises behind each link, if lanes rise by hop, shape (links,); by default
        it rises behind every link between switches.
    :raises NetsimError: if a rate or latency is unknown, or a next-hop link does not leave its switch.
    """

    error: ClassVar = NetsimError

    rises: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rises is not None and np.shape(self.rises) != self.source.shape:
            shapes = f"shape {self.source.shape}, got {np.shape(self.rises)}"
            raise NetsimError(f"tables: rises: expecting a truth value of each link, {shapes}")
        vertices = self.first_switch + self.num_switches
        for name, least, most in (("source", 0, vertices), ("target", 0, vertices), ("next_link", -1, self.num_links)):
            column = getattr(self, name)
            if not isinstance(column, np.ndarray):
                continue
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
        if not isinstance(self.next_link, np.ndarray):  # computed on demand, and therefore never a wrong link
            return
        switches = np.arange(self.first_switch, self.first_switch + self.num_switches, dtype=np.int32)
        for table in self.next_link:
            wrong = (np.append(self.source, np.int32(-1))[table] != switches[:, None]) & (table >= 0)
            if wrong.any():
                switch, to = divmod(int(wrong.argmax()), self.first_switch)
                at, end = self.name(switch + self.first_switch), self.name(to)
                raise NetsimError(f"tables: {at}, towards {end}: expecting a link that leaves it, got another's")

    @cached_property
    def rises_behind(self) -> NDArray[np.bool_]:
        """The value of ``rises``, or its default: whether each link joins two switches, shape (links,)."""
        if self.rises is not None:
            return np.asarray(self.rises, dtype=np.bool_)
        return (self.source >= self.first_switch) & (self.target >= self.first_switch)

    def paths(self, source: network.Hosts, destination: network.Hosts, path: int = 0) -> Links:
        """The links of the routes between pairs of hosts, in order, see ``topompi.network.Tables.paths``.

        :param source: sending host of each pair, shape (pairs,).
        :param destination: receiving host of each pair, shape (pairs,).
        :param path: number of the route, from 0, if destinations have several alternative routes.
        :raises NetsimError: if two hosts have no route.
        """
        found = super().paths(source, destination, path)
        lost = np.flatnonzero((source != destination) & (found[:, 0] < 0))
        if len(lost):
            ends = (self.name(int(self.adapters[0][host[lost[0]]])) for host in (source, destination))
            raise NetsimError(f"tables: expecting a route from {' to '.join(ends)}, got none")
        return found

    def wiring(self) -> Wiring:
        """The same network with the routes of all pairs of hosts stored. Cost: n * n * (longest route) numbers."""
        return Wiring(self.rate, self.latency, self.all_paths())
