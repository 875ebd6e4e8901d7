"""What a mapping costs: one exact evaluator for mappings from anywhere."""

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

OBJECTIVES = ("hop-bytes", "busiest link")  # what a mapping can be asked to keep small

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Evaluation:
    """What a mapping costs; all numbers of bytes are exact, self-loops are left out.

    :param doubled: J, the sum of bytes times distance over all directed pairs.
    :param bytes_by_distance: bytes sent over each distance, nearest first; bytes within hosts stand under ``"host"``.
    :param total: bytes sent.
    :param intra_host: of these, the bytes that stay within a host.
    :param host_traffic: bytes that enter and leave the busiest host.
    :param link_load: bytes on the link that is busiest by bytes over capacity; None without routes.
    :param link_seconds: these bytes over that link's capacity, in seconds; None without routes.
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
        """Bytes times distance, each undirected pair once with the mean of its two directions: half of ``doubled``.

        A fraction where that is odd, never rounded.
        """
        return self.doubled // 2 if self.doubled % 2 == 0 else Fraction(self.doubled, 2)

    @property
    def intra_share(self) -> float:
        """The part of the bytes that stays within hosts, 1 where nothing is sent."""
        return self.intra_host / self.total if self.total else 1.0

    @property
    def dilation(self) -> float:
        """Mean distance that a byte travels, 0 where nothing is sent."""
        return self.doubled / self.total if self.total else 0.0


def evaluate(mapping: Mapping, graph: CommunicationGraph, machine: Machine) -> Evaluation:
    """What a mapping costs on a machine.

    :param mapping: the host of each rank.
    :param graph: bytes between ranks.
    :param machine: distances between hosts and, where they are known, routes.
    :raises MappingError: where mapping, graph and machine are not of one size and allocation.
    Cost: O(edges x levels), with routes O(edges x longest route).
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
    """J alone: the exact sum of bytes times distance over all directed pairs.

    :param mapping: the host of each rank.
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
    """Host that sends, host that receives, and bytes of each edge but the self-loops."""
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
    # Links can take equally many seconds, rounded to 53 bits: then the one with more bytes counts.
    busy = [(load / rate, load) for load, rate in zip(loads, machine.capacity.tolist(), strict=True)]
    seconds, load = max(busy, default=(0.0, 0))
    return load, seconds
