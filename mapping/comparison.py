"""A comparison of two mappings of one program: the cost of each, and the number of ranks that change host."""

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
    """Compare two mappings; the result is ready for JSON.

    :param graph: bytes between ranks.
    :param machine: hosts of both mappings.
    :param maps: two mappings by name; the ratio is the second one's hop-bytes over the first one's.
    :param from_topology: whether the machine's distances come from a fabric.
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
    """Make a dictionary of an evaluation's numbers, ready for JSON; ``hop_bytes`` is half of the exact ``doubled``.

    The seconds of the busiest link are None if all rates are 1, because then no rate is known.
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
    """The quotient of two costs: below 1 if ``after`` is less; None if a cost is unknown, or only ``before`` is 0."""
    if after is None or before is None:
        return None
    return 1.0 if after == before else after / before if before else None


def hops_known(machine: Machine, from_topology: bool) -> bool:
    """Whether a distance is a number of switches crossed, rather than a weight or a number of links in a torus."""
    return from_topology and not isinstance(machine.distances, Torus)


def class_name(distance: str, hops: bool) -> str:
    """The displayed name of a distance, for example ``within hosts`` (for ``"host"``), ``3 hops`` or ``distance 3``."""
    if distance == "host":
        return "within hosts"
    return f"{distance} hop{'s' * (distance != '1')}" if hops else f"distance {distance}"
