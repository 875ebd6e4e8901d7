"""The machine of a mapping: hosts, their slots, and the distances and routes between them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..network import Tables
from .distances import Distances, DistanceTable, MachineError, TorusDistances, TreeDistances

__all__ = ["Machine", "MachineError", "allocation_digest"]

Integers = NDArray[np.int64]

MOST_EXPANDED = 1024  # most hosts for which the links of all pairs are stored, because more would take gigabytes


def allocation_digest(hosts: Sequence[str], slots: ArrayLike) -> str:
    """An identifier of hosts and their slots in this order: 16 hexadecimal digits of a SHA-256."""
    lines = "".join(f"{host} {int(count)}\n" for host, count in zip(hosts, np.asarray(slots).tolist(), strict=True))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Machine:
    """The hosts of a job with their slots; slots are numbered host by host.

    :param hosts: names of the n hosts, all different.
    :param slots: number of ranks that each host takes, shape (n,); 0 is allowed.
    :param distances: distances between the hosts.
    :param routes: links of the route from host i to host j, shape (n, n, longest), padded with -1; or forwarding tables
        from which routes are computed; None if unknown.
    :param capacity: rate of each link in bytes/s, shape (links,).
    """

    hosts: tuple[str, ...]
    slots: Integers
    distances: Distances
    routes: NDArray[np.integer] | Tables | None = None
    capacity: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if len(set(self.hosts)) < len(self.hosts):
            twice = next(host for host in self.hosts if self.hosts.count(host) > 1)
            raise MachineError(f"machine: expecting hosts of different names, got {twice!r} twice")
        if not len(self.hosts) == len(self.slots) == self.distances.num_hosts:
            counts = f"{len(self.hosts)} names, {len(self.slots)} slot counts, {self.distances.num_hosts} places"
            raise MachineError(f"machine: expecting a name, slots and a place for each host, got {counts}")
        if len(self.slots) and self.slots.min() < 0:
            raise MachineError(f"machine: expecting slots of at least 0, got {self.slots.min()}")
        routes = self.routes
        if isinstance(routes, np.ndarray) and (routes.ndim != 3 or routes.shape[:2] != (self.num_hosts,) * 2):
            raise MachineError(f"machine: expecting links of shape (n, n, longest), got {routes.shape}")
        if (routes is None) != (self.capacity is None):
            raise MachineError("machine: expecting links and their capacity, or neither, got one of them")
        if self.capacity is not None and not (self.capacity > 0).all():
            raise MachineError(f"machine: expecting rates above 0 bytes/s, got {self.capacity.min()}")

    def __repr__(self) -> str:
        return f"Machine({self.num_hosts:,} hosts, {self.num_slots:,} slots)"

    @classmethod
    def hierarchy(cls, levels: str | Sequence[int], distance: str | Sequence[int]) -> Machine:
        """Make a regular tree, described lowest level first: ``Machine.hierarchy("16:16:8", "1:10:100")``.

        :param levels: slots per host, hosts per cluster, clusters per cluster of the next level, ...
        :param distance: distance within a host, within the lowest cluster, ...; one per level.
        :raises MachineError: if an entry is no whole number, or the two have different lengths.
        """
        counts, far = _numbers(levels), _numbers(distance)
        if len(counts) != len(far) or min(counts, default=0) < 1:
            raise MachineError(f"machine: expecting as many distances as levels, got {levels} and {distance}")
        hosts = int(np.prod(counts[1:], dtype=np.int64))
        widths = np.cumprod([1, *counts[1:]], dtype=np.int64)[1:-1][::-1]
        clusters = np.arange(hosts)[None, :] // widths[:, None] if len(widths) else np.zeros((0, hosts), dtype=np.int64)
        inwards = [*far[:0:-1], far[0]] if len(far) > 1 else [far[0], far[0]]
        return cls.tree(None, np.full(hosts, counts[0]), clusters, inwards)

    @classmethod
    def tree(cls, hosts: Sequence[str] | None, slots: ArrayLike, clusters: ArrayLike, distance: ArrayLike) -> Machine:
        """Make a machine of nested clusters of hosts.

        :param hosts: names of the hosts; by default h0, h1, ...
        :param slots: number of slots of each host, shape (n,).
        :param clusters: cluster of each host at each level, coarsest first, shape (levels, n).
        :param distance: distance between hosts in different clusters of the first level, the second level, ..., then
            between hosts that no level separates, then within a host; whole numbers, never growing, shape (levels +
            2,).
        """
        count = _integers(slots)
        levels = _integers(clusters).reshape(-1, len(count))
        return cls(_names(hosts, len(count)), count, TreeDistances(levels, _integers(distance)))

    @classmethod
    def torus(
        cls,
        dims: Sequence[int],
        slots: ArrayLike = 1,
        *,
        wrap: bool | Sequence[bool] = True,
        hosts: Sequence[str] | None = None,
        coordinates: ArrayLike | None = None,
        inside: int = 0,
    ) -> Machine:
        """Make a machine on a torus or mesh.

        :param dims: extent of each dimension.
        :param slots: number of slots of each host, or one number for all.
        :param wrap: whether each dimension is a ring, or one value for all.
        :param hosts: names of the hosts; by default ``h0``, ``h1``, ...
        :param coordinates: coordinates of each host, shape (n, d); by default every place has a host, in row-major
            order.
        :param inside: distance within a host.
        """
        extents = tuple(int(one) for one in dims)
        every = np.stack(np.unravel_index(np.arange(int(np.prod(extents))), extents), axis=1)
        places = every if coordinates is None else np.asarray(coordinates, dtype=np.int64)
        rings = (wrap,) * len(extents) if isinstance(wrap, bool) else tuple(bool(one) for one in wrap)
        count = np.broadcast_to(_integers(slots), len(places)).copy()
        return cls(_names(hosts, len(count)), count, TorusDistances(extents, rings, places.astype(np.int64), inside))

    @classmethod
    def from_matrix(cls, hosts: Sequence[str] | None, slots: ArrayLike, distance: ArrayLike) -> Machine:
        """Make a machine with a table of distances between hosts.

        :param hosts: names of the hosts; by default ``h0``, ``h1``, ...
        :param slots: number of slots of each host, shape (n,).
        :param distance: distance from host to host, shape (n, n), symmetric, whole numbers; the diagonal is the
            distance within each host.
        """
        count = _integers(slots)
        return cls(_names(hosts, len(count)), count, DistanceTable(_integers(distance)))

    def with_routes(self, links: NDArray[np.integer], capacity: ArrayLike) -> Machine:
        """The same machine with given routes between its hosts.

        :param links: links of the route from host i to host j, shape (n, n, longest), padded with -1.
        :param capacity: rate of each link in bytes/s, shape (links,).
        """
        return replace(self, routes=np.asarray(links), capacity=np.asarray(capacity, dtype=np.float64))

    @property
    def links(self) -> NDArray[np.integer] | None:
        """Links of the route from host i to host j, shape (n, n, longest), padded with -1; None if unknown."""
        return self.routes.every_path if isinstance(self.routes, Tables) else self.routes

    def paths(self, host_a: Integers, host_b: Integers) -> NDArray[np.integer]:
        """The links of the routes from hosts a to hosts b, shape (pairs, longest), padded with -1.

        :param host_a: sending hosts, shape (pairs,).
        :param host_b: receiving hosts, shape (pairs,).
        :raises MachineError: if the machine has no routes.
        Cost: with at most ``MOST_EXPANDED`` hosts, the links of all pairs are stored.
        """
        if isinstance(self.routes, Tables) and self.num_hosts > MOST_EXPANDED:
            return self.routes.paths(host_a, host_b)
        if self.links is None:
            raise MachineError("machine: expecting routes, got none")
        return self.links[host_a, host_b]

    @property
    def num_hosts(self) -> int:
        """Number of hosts, n."""
        return len(self.hosts)

    @cached_property
    def num_slots(self) -> int:
        """Number of slots on all hosts."""
        return int(self.slots.sum())

    @cached_property
    def first_slot(self) -> Integers:
        """The first slot of each host, and the number of slots, shape (n + 1,)."""
        return np.concatenate([[0], np.cumsum(self.slots)]).astype(np.int64)

    @cached_property
    def slot_host(self) -> Integers:
        """The host of each slot, shape (slots,)."""
        return np.asarray(np.repeat(np.arange(self.num_hosts), self.slots), dtype=np.int64)

    @cached_property
    def digest(self) -> str:
        """An identifier of the hosts and slots in their order; distances do not count."""
        return allocation_digest(self.hosts, self.slots)

    def distance(self, host_a: ArrayLike, host_b: ArrayLike) -> Integers:
        """The distances from hosts a to hosts b, which broadcast as in numpy; from a host to itself, that within it."""
        return np.asarray(self.distances.between(np.asarray(host_a), np.asarray(host_b)), dtype=np.int64)


def _numbers(written: str | Sequence[int]) -> list[int]:
    parts = written.split(":") if isinstance(written, str) else list(written)
    try:
        return [int(part) for part in parts]
    except ValueError:
        raise MachineError(f"machine: expecting whole numbers like 16:16:8, got {written!r}") from None


def _integers(values: ArrayLike) -> Integers:
    """Convert values to int64; raise MachineError for fractions."""
    array = np.asarray(values)
    if array.dtype.kind not in "iub" and not (array == np.floor(array)).all():
        raise MachineError(
            f"machine: expecting whole distances and slots (scale them), got {array.dtype} with fractions"
        )
    return array.astype(np.int64)


def _names(hosts: Sequence[str] | None, count: int) -> tuple[str, ...]:
    return tuple(f"h{number}" for number in range(count)) if hosts is None else tuple(hosts)
