"""Distances between hosts: in a tree of clusters, on a torus, or from a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import TopompiError

__all__ = ["Axes", "DistanceTable", "Distances", "MachineError", "TorusDistances", "TreeDistances"]

Integers = NDArray[np.int64]


class MachineError(TopompiError, ValueError):
    """A machine is inconsistent, for example slots for unknown hosts, or clusters that are not nested."""


class Axes(NamedTuple):
    """Distances as sums over axes: the distance from host a to host b is ``far[a, column[b]].sum()``.

    A torus has an axis per dimension, a tree an axis per level, and a table a single axis of all hosts. A torus has far
    fewer coordinates than hosts, and in a tree two hosts differ in their distances to few coordinates. Costs of ranks
    that are stored per coordinate are therefore quickly updated when a rank moves.

    :param far: distance from each host to each coordinate of each axis, shape (n, coordinates of all axes).
    :param column: column of ``far`` for the coordinate of each host on each axis, shape (n, axes).
    """

    far: Integers
    column: Integers


class Distances(Protocol):
    """An interface for distances between hosts."""

    @property
    def num_hosts(self) -> int:
        """Number of hosts, n."""

    def between(self, a: NDArray[np.generic], b: NDArray[np.generic]) -> Integers:
        """The distances from hosts a to hosts b, two arrays that broadcast as in numpy.

        The distance from a host to itself is the distance between two ranks on it.
        """

    def axes(self, hosts: Integers) -> Axes:
        """The distances between the given hosts as sums of a distance per axis, see `Axes`."""


def _axes(steps: list[Integers], coordinate: list[Integers]) -> Axes:
    """Make `Axes` from two lists with an entry per axis: distances between coordinates, and coordinates of hosts.

    :param steps: distance between any two of the c coordinates of each axis, shape (c, c).
    :param coordinate: coordinate of each host on each axis, shape (n,).
    """
    far = np.concatenate([step[at] for step, at in zip(steps, coordinate, strict=True)], axis=1)
    first = np.cumsum([0, *(len(step) for step in steps[:-1])])
    return Axes(far, np.stack(coordinate, axis=1) + first)


@dataclass(frozen=True, eq=False)
class TreeDistances:
    """Distances in a tree of nested clusters of hosts.

    :param clusters: cluster of each host at each level, coarsest first, shape (levels, n); there may be no levels.
    :param distance: distance between hosts in different clusters of the first level, the second level, ..., then
        between hosts that no level separates, then within a host; never growing, shape (levels + 2,).
    """

    clusters: Integers
    distance: Integers

    def __post_init__(self) -> None:
        levels = len(self.clusters)
        if len(self.distance) != levels + 2:
            raise MachineError(
                f"machine: expecting {levels + 2} distances for {levels} levels, got {len(self.distance)}"
            )
        if (np.diff(self.distance) > 0).any() or self.distance[-1] < 0:
            raise MachineError(f"machine: expecting distances that never grow inwards, got {self.distance.tolist()}")
        for level in range(1, levels):
            inner, parent = np.unique(self.clusters[level - 1 : level + 1], axis=1)[::-1]
            if len(np.unique(inner)) < len(parent):
                raise MachineError(
                    f"machine: expecting nested clusters, got one at level {level} that lies in two above"
                )

    @property
    def num_hosts(self) -> int:
        """Number of hosts, n."""
        return int(self.clusters.shape[1])

    def between(self, a: NDArray[np.generic], b: NDArray[np.generic]) -> Integers:
        """The distances from hosts a to hosts b, which broadcast as in numpy. Cost: O(levels) per pair."""
        far = np.full(np.broadcast(a, b).shape, self.distance[-1], dtype=np.int64)
        far += (self.distance[-2] - self.distance[-1]) * (np.asarray(a) != b)
        for level in reversed(range(len(self.clusters))):
            of_host = self.clusters[level]
            far += (self.distance[level] - self.distance[level + 1]) * (of_host[a] != of_host[b])
        return far

    def axes(self, hosts: Integers) -> Axes:
        """The distances as sums over axes: one per level, with clusters as coordinates, and one with hosts as these."""
        of_host = [*self.clusters[:, hosts], np.arange(len(hosts))]
        coordinate = [np.unique(level, return_inverse=True)[1].reshape(-1) for level in of_host]
        farther = -np.diff(self.distance)
        steps = [
            more * ~np.eye(at.max(initial=-1) + 1, dtype=bool) for more, at in zip(farther, coordinate, strict=True)
        ]
        steps[-1] += self.distance[-1]
        return _axes(steps, coordinate)


@dataclass(frozen=True, eq=False)
class TorusDistances:
    """Hosts on a grid of any dimension; the distance is the number of links on the shortest path.

    :param dims: extent of each dimension.
    :param wrap: whether each dimension is a ring.
    :param coordinates: coordinates of each host, shape (n, d).
    :param inside: distance between two ranks on one host.
    """

    dims: tuple[int, ...]
    wrap: tuple[bool, ...]
    coordinates: Integers
    inside: int = 0

    def __post_init__(self) -> None:
        if len(self.wrap) != len(self.dims) or self.coordinates.shape[1:] != (len(self.dims),):
            given = f"{len(self.wrap)} wraps, coordinates of shape {self.coordinates.shape}"
            raise MachineError(f"machine: expecting wraps and coordinates of {len(self.dims)} dimensions, got {given}")
        if ((self.coordinates < 0) | (self.coordinates >= np.array(self.dims))).any():
            given = f"{self.coordinates.min()} .. {self.coordinates.max()}"
            raise MachineError(f"machine: expecting coordinates from 0 and below {list(self.dims)}, got {given}")
        if len(np.unique(self.coordinates, axis=0)) < len(self.coordinates):
            raise MachineError("machine: expecting hosts at different places of the torus, got two at one")

    @property
    def num_hosts(self) -> int:
        """Number of hosts, n."""
        return len(self.coordinates)

    def between(self, a: NDArray[np.generic], b: NDArray[np.generic]) -> Integers:
        """The distances from hosts a to hosts b, which broadcast as in numpy. Cost: O(dimensions) per pair."""
        steps = np.abs(self.coordinates[a] - self.coordinates[b])
        steps = np.where(self.wrap, np.minimum(steps, np.array(self.dims) - steps), steps)
        return np.asarray(np.where(np.asarray(a) == b, self.inside, steps.sum(axis=-1)), dtype=np.int64)

    def axes(self, hosts: Integers) -> Axes:
        """The distances as sums over axes, one per dimension of the torus.

        If ``inside`` is not 0, there is a single axis of all hosts, because no sum over dimensions has this distance
        from a host to itself.
        """
        if self.inside:
            return DistanceTable(self.between(hosts[:, None], hosts[None, :])).axes(np.arange(len(hosts)))
        steps = []
        for extent, ring in zip(self.dims, self.wrap, strict=True):
            step = np.abs(np.arange(extent)[:, None] - np.arange(extent))
            steps.append(np.minimum(step, extent - step) if ring else step)
        return _axes(steps, list(self.coordinates[hosts].T))


@dataclass(frozen=True, eq=False)
class DistanceTable:
    """Distances from a table.

    :param distance: distance from host to host, shape (n, n), symmetric, at least 0; the diagonal has the distance
        between two ranks on each host.
    """

    distance: Integers

    def __post_init__(self) -> None:
        shape = self.distance.shape
        if len(shape) != 2 or shape[0] != shape[1] or (self.distance < 0).any():
            raise MachineError(f"machine: expecting a square table of distances of at least 0, got shape {shape}")
        if (self.distance != self.distance.T).any():
            raise MachineError("machine: expecting a symmetric table of distances, got another one")

    @property
    def num_hosts(self) -> int:
        """Number of hosts, n."""
        return len(self.distance)

    def between(self, a: NDArray[np.generic], b: NDArray[np.generic]) -> Integers:
        """The distances from hosts a to hosts b, which broadcast as in numpy."""
        return np.asarray(self.distance[a, b])

    def axes(self, hosts: Integers) -> Axes:
        """The distances as `Axes` with a single axis, on which each host is a coordinate."""
        return Axes(self.distance[np.ix_(hosts, hosts)], np.arange(len(hosts))[:, None])
