"""Sums of a profile's messages and bytes by hops, level, host or switch, and link (Subramoni 2013, section 9)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...mapping.graph import CommunicationGraph
from ...mapping.readers.topoprof import GRANULARITIES
from ...topology import TopologyInterface
from .errors import ProfileError

__all__ = [
    "GRANULARITIES",
    "PairTraffic",
    "by_hops",
    "by_level",
    "contract",
    "edge_hops",
    "hop_name",
    "link_loads",
    "units_of",
]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class PairTraffic:
    """The traffic of one class of pairs of ranks, for example of all pairs that are 3 hops apart.

    :param name: name of the class.
    :param hops: number of switches between the ranks of a pair, 0 within a host, -1 if there is no route; None if the
        class is not a class of hops.
    :param messages: number of messages.
    :param volume: number of bytes.
    """

    name: str
    hops: int | None
    messages: int
    volume: int


def hop_name(hops: int) -> str:
    """The name of the class of pairs with a number of hops: ``3 hops``, ``within hosts`` (0) or ``no route`` (-1)."""
    if hops <= 0:
        return "no route" if hops else "within hosts"
    return f"{hops} hop{'s' * (hops != 1)}"


def edge_hops(graph: CommunicationGraph, interface: TopologyInterface) -> Integers:
    """Number of switches between the ends of each edge, shape (edges,); 0 within a host, -1 if there is no route."""
    _check(graph, interface)
    host = interface.rank_host
    return interface.hop_matrix[host[graph.sources], host[graph.targets]].astype(np.int64)


def by_hops(graph: CommunicationGraph, interface: TopologyInterface) -> list[PairTraffic]:
    """Messages and bytes by number of hops, nearest first; traffic within hosts is always included.

    :raises ProfileError: if the graph has another number of ranks than the job.
    """
    hops = edge_hops(graph, interface)
    classes = sorted({0, *hops.tolist()}, key=lambda one: (one < 0, one))
    return [PairTraffic(hop_name(one), one, *_sums(graph, hops == one)) for one in classes]


def by_level(graph: CommunicationGraph, interface: TopologyInterface) -> list[PairTraffic]:
    """Messages and bytes by the innermost level (host, leaf switch, ...) in which both ranks are, innermost first.

    :raises ProfileError: if the graph has another number of ranks than the job.
    """
    _check(graph, interface)
    left, found = np.ones(graph.num_edges, dtype=bool), []
    for level in reversed(interface.levels):
        inside = left & (level.cluster[graph.sources] == level.cluster[graph.targets])
        found.append(PairTraffic(level.name, None, *_sums(graph, inside)))
        left &= ~inside
    return [*found, PairTraffic("whole job", None, *_sums(graph, left))]


def units_of(interface: TopologyInterface, granularity: str) -> tuple[list[str], Integers]:
    """The names of the units (processes, hosts or leaf switches), and the number of each rank's unit, shape (ranks,).

    :param interface: the placement of the ranks.
    :param granularity: kind of units: ``process``, ``host`` or ``switch``.
    :raises ProfileError: if the granularity is not one of ``GRANULARITIES``.
    """
    if granularity == "process":
        return [f"rank {rank}" for rank in range(interface.num_ranks)], np.arange(interface.num_ranks)
    if granularity == "host":
        return list(interface.hosts), interface.rank_host.astype(np.int64)
    if granularity != "switch":
        raise ProfileError(f"expecting a granularity of {', '.join(GRANULARITIES)}, got {granularity!r}")
    if interface.routes is None or interface.host_routes is None:
        return ["all hosts"], np.zeros(interface.num_ranks, dtype=np.int64)
    fabric = interface.routes.fabric
    leaves, unit = np.unique(interface.host_routes.leaf, return_inverse=True)
    names = [fabric.switch_names[leaf] or fabric.switch_ids[leaf] for leaf in leaves.tolist()]
    return names, unit[interface.rank_host].astype(np.int64)


def contract(graph: CommunicationGraph, unit: Integers, units: int) -> CommunicationGraph:
    """The communication graph of units, for example hosts, with the summed traffic from each unit's ranks to another's.

    :param graph: communication graph of the ranks.
    :param unit: number of each rank's unit, from 0, shape (ranks,).
    :param units: number of units.
    """
    if units == graph.size and (unit == np.arange(units)).all():
        return graph
    return CommunicationGraph.from_arrays(units, unit[graph.sources], unit[graph.targets], graph.volume, graph.messages)


def link_loads(graph: CommunicationGraph, interface: TopologyInterface) -> NDArray[np.float64]:
    """Bytes over each directed link of ``interface.routes.fabric``, shape (links,); shape (0,) if there is no fabric.

    :raises ProfileError: if the graph has another number of ranks than the job.

    Cost: following one route per pair of a sending leaf switch and a receiving host.
    """
    _check(graph, interface)
    if interface.routes is None:
        return np.zeros(0)
    host = interface.rank_host
    return interface.routes.tables.loads(host[graph.sources], host[graph.targets], graph.volume)


def _sums(graph: CommunicationGraph, chosen: NDArray[np.bool_]) -> tuple[int, int]:
    return int(graph.messages[chosen].sum()), int(graph.volume[chosen].sum())


def _check(graph: CommunicationGraph, interface: TopologyInterface) -> None:
    if graph.size != interface.num_ranks:
        raise ProfileError(f"expecting a job of {graph.size} ranks as the profile has, got {interface.num_ranks}")
