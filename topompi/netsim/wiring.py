"""The directed links of a network, and the routes between its hosts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import NetsimError

__all__ = ["Wiring"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Wiring:
    """Links and routes as arrays.

    :param rate: rate of each directed link in bytes/s, shape (links,).
    :param latency: latency of each link in seconds, shape (links,).
    :param routes: links of the route from host i to host j, shape (hosts, hosts, length of the longest route), padded
        with -1.
    """

    rate: Floats
    latency: Floats
    routes: NDArray[np.int32]

    def __post_init__(self) -> None:
        if self.rate.shape != self.latency.shape or self.rate.ndim != 1:
            shapes = f"{self.rate.shape} and {self.latency.shape}"
            raise NetsimError(f"wiring: expecting a rate and a latency of each link, got shapes {shapes}")
        if not (np.isfinite(self.rate).all() and (self.rate > 0).all()):
            raise NetsimError("wiring: expecting finite rates above 0 bytes/s")
        if not (np.isfinite(self.latency).all() and (self.latency >= 0).all()):
            raise NetsimError("wiring: expecting finite latencies of at least 0 s")
        if self.routes.ndim != 3 or self.routes.shape[0] != self.routes.shape[1]:
            raise NetsimError(f"wiring: expecting routes of shape (n, n, longest), got {self.routes.shape}")
        if self.routes.max(initial=-1) >= len(self.rate):
            raise NetsimError(f"wiring: expecting links below {len(self.rate)}, got {self.routes.max()}")

    @property
    def num_hosts(self) -> int:
        """Number of hosts, n."""
        return len(self.routes)

    def paths(self, source: Integers, destination: Integers) -> NDArray[np.int32]:
        """The links of the routes between pairs of hosts, shape (pairs, longest), padded with -1.

        :param source: sending host of each pair, shape (pairs,).
        :param destination: receiving host of each pair, shape (pairs,).
        :raises NetsimError: if two hosts have no route.
        """
        found = self.routes[source, destination].astype(np.int32)
        lost = np.flatnonzero((source != destination) & ~(found >= 0).any(axis=1))
        if len(lost):
            pair = f"host {source[lost[0]]} to host {destination[lost[0]]}"
            raise NetsimError(f"wiring: expecting a route from {pair}, got none")
        return found
