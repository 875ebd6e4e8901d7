"""The cost of a mapping, computed exactly for mappings from any source."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .exact import exact_sums
from .graph import CommunicationGraph
from .machine import Machine
from .mapping import Mapping, MappingError

__all__ = ["OBJECTIVES", "Evaluation", "doubled_hop_bytes", "evaluate"]

OBJECTIVES = ("hop-bytes", "busiest link")  # costs that a search can minimise

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Evaluation:
    """The cost of a mapping; numbers of bytes are exact, and messages of a rank to itself do not count.

    :param doubled: sum of bytes times distance over all ordered pairs of ranks, which is twice the hop-bytes.
    :param bytes_by_distance: bytes sent over each distance, nearest first; key ``"host"`` for bytes within hosts.
    :param total: bytes sent.
    :param intra_host: bytes that stay within a host.
    :param host_traffic: sum of the bytes that enter and that leave the busiest host.
    :param link_load: bytes on the link with the largest ratio of bytes to capacity; None without routes.
    :param link_seconds: bytes of that link over its capacity, in seconds; None without routes.
    """

    doubled: int
    bytes_by_distance: dict[str, int]
    total: int
    intra_host: int
    host_traffic: int
    link_load: int | None = None
    link_seconds: float | None = None

    @property
    def hop_bytes(self) -> int | Fraction:
        """Bytes times distance, each undirected pair counted once with the mean of its directions: ``doubled`` / 2.

        It is a Fraction if ``doubled`` is odd, never rounded.
        """
        return self.doubled // 2 if self.doubled % 2 == 0 else Fraction(self.doubled, 2)

    @property
    def intra_share(self) -> float:
        """The fraction of bytes that stays within hosts; 1 if nothing is sent."""
        return self.intra_host / self.total if self.total else 1.0

    @property
    def dilation(self) -> float:
        """The mean distance that a byte travels; 0 if nothing is sent."""
        return self.doubled / self.total if self.total else 0.0


def evaluate(mapping: Mapping, graph: CommunicationGraph, machine: Machine) -> Evaluation:
    """Compute the cost of a mapping on a machine.

    :param mapping: host of each rank.
    :param graph: bytes between ranks.
    :param machine: distances between hosts and, if they are known, routes.
    :raises MappingError: if mapping, graph and machine differ in size or allocation.
    Cost: O(edges x levels); with routes O(edges x longest route).
    """
    _check(mapping, graph, machine)
    here, there, volume = _between_hosts(mapping, graph)
    distance, kinds = machine.distance(here, there), here == there
    far, group = np.unique(2 * distance + ~kinds, return_inverse=True)
    sums = exact_sums(group, volume, len(far))
    doubled = sum(int(code // 2) * amount for code, amount in zip(far, sums, strict=True))
    inside = sum(amount for code, amount in zip(far, sums, strict=True) if code % 2 == 0)
    classes = {str(int(code // 2)): amount for code, amount in zip(far, sums, strict=True) if code % 2}
    load, seconds = _busiest_link(here, there, volume, machine)
    return Evaluation(
        doubled,
        {"host": inside, **classes},
        sum(sums),
        inside,
        _host_traffic(here, there, volume, machine),
        load,
        seconds,
    )


def doubled_hop_bytes(mapping: Mapping, graph: CommunicationGraph, machine: Machine) -> int:
    """Compute twice the hop-bytes exactly: the sum of bytes times distance over all ordered pairs of ranks.

    :param mapping: host of each rank.
    :param graph: bytes between ranks.
    :param machine: distances between hosts.
    """
    here, there, volume = _between_hosts(mapping, graph)
    far, group = np.unique(machine.distance(here, there), return_inverse=True)
    return sum(int(one) * amount for one, amount in zip(far, exact_sums(group, volume, len(far)), strict=True))


def _check(mapping: Mapping, graph: CommunicationGraph, machine: Machine) -> None:
    if mapping.size != graph.size:
        raise MappingError(f"evaluate: expecting a mapping of {graph.size} ranks, got {mapping.size}")
    if mapping.digest != machine.digest:
        raise MappingError(f"evaluate: expecting a mapping for allocation {machine.digest}, got {mapping.digest}")


def _between_hosts(mapping: Mapping, graph: CommunicationGraph) -> tuple[Integers, Integers, Integers]:
    """The sending host, receiving host and bytes of each edge between two different ranks."""
    proper = graph.sources != graph.targets
    host = mapping.host_of_rank
    return host[graph.sources[proper]], host[graph.targets[proper]], graph.volume[proper]


def _host_traffic(here: Integers, there: Integers, volume: Integers, machine: Machine) -> int:
    out = here != there
    both, twice = np.r_[here[out], there[out]], np.r_[volume[out], volume[out]]
    return max(exact_sums(both, twice, machine.num_hosts), default=0)


def _busiest_link(
    here: Integers, there: Integers, volume: Integers, machine: Machine
) -> tuple[int | None, float | None]:
    if machine.routes is None or machine.capacity is None:
        return None, None
    used = machine.paths(here, there)
    edge, _ = np.nonzero(used >= 0)
    loads = exact_sums(used[used >= 0], volume[edge], len(machine.capacity))
    # Rounded to 53 bits, the seconds of two links can be equal; then the link with more bytes counts.
    busy = [(load / rate, load) for load, rate in zip(loads, machine.capacity.tolist(), strict=True)]
    seconds, load = max(busy, default=(0.0, 0))
    return load, seconds
