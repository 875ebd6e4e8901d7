"""Networks of large tori, whose routes are computed as they are needed: those of all pairs would fill the memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from topompi.schedules import Network

if TYPE_CHECKING:
    from topompi.network import Tables

__all__ = ["TorusRoutes", "torus_network"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class TorusRoutes:
    """Shortest routes on a torus with a host at each place, one dimension after the other.

    The links of place i begin at 2 i d, with d dimensions: up and down along each. Those from and to hosts follow.
    At half the length of a dimension, places with an even coordinate go up, the others down.

    :param dims: lengths of the dimensions; places are numbered with the last dimension fastest.
    """

    dims: tuple[int, ...]

    @cached_property
    def places(self) -> Integers:
        """The coordinates of each place, shape (hosts, dimensions)."""
        return np.stack(np.unravel_index(np.arange(np.prod(self.dims)), self.dims), axis=1)

    @property
    def num_links(self) -> int:
        """Number of links."""
        return len(self.places) * (2 * len(self.dims) + 2)

    def distances(self, source: NDArray[np.integer], destination: NDArray[np.integer]) -> Integers:
        """The links along each dimension, negative downwards, shape (pairs, dimensions).

        :param source: sending host of each pair, shape (pairs,).
        :param destination: receiving host of each pair, shape (pairs,).
        """
        lengths = np.array(self.dims)
        begin = self.places[source]
        ahead = (self.places[destination] - begin) % lengths
        down = (2 * ahead > lengths) | ((2 * ahead == lengths) & (begin % 2 == 1))
        found: Integers = np.where(down, ahead - lengths, ahead)
        return found

    def paths(self, source: NDArray[np.integer], destination: NDArray[np.integer], path: int = 0) -> NDArray[np.int32]:
        """The links of the route of each pair, shape (pairs, longest), padded with -1.

        :param source: sending host of each pair, shape (pairs,).
        :param destination: receiving host of each pair, shape (pairs,).
        :param path: ignored, because each pair has one route.
        """
        hosts, axes = len(self.places), len(self.dims)
        left, here = self.distances(source, destination), self.places[source].copy()
        longest = int(np.abs(left).sum(axis=1).max(initial=0))
        found = np.full((len(here), longest + 2), -1, dtype=np.int32)
        apart = np.asarray(source) != np.asarray(destination)
        found[apart, 0] = 2 * axes * hosts + np.asarray(source)[apart]
        for step in range(longest):
            moving = np.flatnonzero(left.any(axis=1))
            axis = (left[moving] != 0).argmax(axis=1)
            way = np.sign(left[moving, axis])
            place = np.ravel_multi_index(tuple(here[moving].T), self.dims)
            found[moving, step + 1] = 2 * axes * place + 2 * axis + (way < 0)
            here[moving, axis] = (here[moving, axis] + way) % np.array(self.dims)[axis]
            left[moving, axis] -= way
        length = np.abs(self.distances(source, destination)).sum(axis=1)
        found[apart, length[apart] + 1] = (2 * axes + 1) * hosts + np.asarray(destination)[apart]
        return found


def torus_network(dims: tuple[int, ...], link: float, adapter: float) -> Network:
    """The network of a job that fills a torus, one rank per host, in the order of the places.

    :param dims: lengths of the dimensions.
    :param link: rate of a link between places in bytes/s.
    :param adapter: rate of a host in bytes/s.
    """
    routes = TorusRoutes(dims)
    hosts = len(routes.places)
    capacity = np.full(routes.num_links, link)
    capacity[2 * len(dims) * hosts :] = adapter
    hops = np.ones((hosts, hosts), dtype=np.int16)
    for axis, length in enumerate(dims):
        ahead = np.abs(routes.places[:, axis][:, None] - routes.places[:, axis]).astype(np.int16)
        hops += np.minimum(ahead, np.int16(length) - ahead)
    np.fill_diagonal(hops, 0)
    return Network(
        np.arange(hosts),
        hops,
        cast("Tables", routes),  # of which only the routes of some pairs are asked for
        capacity,
        np.arange(hosts)[None],
        np.full(routes.num_links, np.nan),
        grid=routes.places,
    )
