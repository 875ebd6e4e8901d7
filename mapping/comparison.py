"""Two mappings of one program side by side: what each costs, and how many ranks change host."""

from __future__ import annotations

from collections.abc import Mapping as Table
from typing import Any

import numpy as np

from .distances import Torus
from .evaluate import Evaluation, evaluate
from .graph import CommunicationGraph
from .machine import Machine
from .mapping import Mapping

__all__ = ["class_name", "compare", "figures", "hops_known", "ratio"]


def compare(
    graph: CommunicationGraph, machine: Machine, maps: Table[str, Mapping], *, from_topology: bool
) -> dict[str, Any]:
    """The figures of two mappings, ready for JSON.

    :param graph: bytes between ranks.
    :param machine: the hosts of both mappings.
    :param maps: name -> mapping, two of them; the ratio is the second one's hop-bytes over the first one's.
    :param from_topology: whether the machine's distances are a fabric's.
    Cost: two evaluations, each O(edges).
    """
    sides = {name: figures(evaluate(mapping, graph, machine), machine) for name, mapping in maps.items()}
    first, second = maps.values()
    return {
        "ranks": graph.size,
        "hosts": machine.num_hosts,
        "slots": machine.num_slots,
        "allocation": machine.digest,
        "distance": "hops" if hops_known(machine, from_topology) else "distance",
        "moved": int(np.count_nonzero(first.host_of_rank != second.host_of_rank)),
        "maps": sides,
        "ratio": ratio(*(side["doubled"] for side in reversed(sides.values()))),
    }


def figures(found: Evaluation, machine: Machine) -> dict[str, Any]:
    """The numbers of an evaluation; hop-bytes as half of the exact ``doubled``.

    The seconds of the busiest link are left out where no link's rate is known, so that all are 1.
    """
    rated = machine.capacity is not None and bool((machine.capacity != 1).any())
    return {
        "hop_bytes": found.doubled / 2 if found.doubled % 2 else found.doubled // 2,
        "doubled": found.doubled,
        "bytes": found.total,
        "bytes_by_distance": found.bytes_by_distance,
        "intra_host_share": found.intra_share,
        "host_traffic": found.host_traffic,
        "link_load": found.link_load,
        "link_seconds": found.link_seconds if rated else None,
        "dilation": found.dilation,
    }


def ratio(after: float | None, before: float | None) -> float | None:
    """After over before: below 1 is better; None where there is nothing to compare."""
    if after is None or before is None:
        return None
    return 1.0 if after == before else after / before if before else None


def hops_known(machine: Machine, from_topology: bool) -> bool:
    """Whether a distance is the number of switches crossed, and not a weight or links of a torus."""
    return from_topology and not isinstance(machine.distances, Torus)


def class_name(distance: str, hops: bool) -> str:
    """The name of a class of bytes: within hosts, a number of hops, or a distance."""
    if distance == "host":
        return "within hosts"
    return f"{distance} hop{'s' * (distance != '1')}" if hops else f"distance {distance}"
