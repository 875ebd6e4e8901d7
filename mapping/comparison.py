"""A comparison of two mappings of one program: the cost of each, and the number of ranks that change host."""

from __future__ import annotations

from collections.abc import Mapping as Table
from typing import Any

import numpy as np

from .distances import TorusDistances
from .evaluate import Evaluation, evaluate
from .graph import CommunicationGraph
from .machine import Machine
from .mapping import Mapping

__all__ = ["class_name", "compare", "figures", "hops_known", "ratio"]


def compare(
    graph: CommunicationGraph, machine: Machine, maps: Table[str, Mapping], *, from_topology: bool
) -> dict[str, Any]:
    """Compare two mappings in a dictionary, ready for JSON: the costs of each, and the ranks that change host.

    :param graph: bytes between ranks.
    :param machine: hosts of both mappings.
    :param maps: two mappings by name; the entry ``ratio`` is the second mapping's hop-bytes divided by the first's.
    :param from_topology: whether the machine's distances were read from the description of a network.
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
    """Make a dictionary of an evaluation's numbers, ready for JSON.

    Its ``hop_bytes`` can be rounded; ``doubled``, twice the hop-bytes, is exact. ``link_seconds`` is None if all links
    have rate 1, because a rate of 1 stands for an unknown rate.
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
    """Whether the machine's distances are numbers of switches crossed, not weights of a tree or links of a torus.

    :param machine: the machine.
    :param from_topology: True if the machine was made from a topology, False if from the levels of a regular tree.
    """
    return from_topology and not isinstance(machine.distances, TorusDistances)


def class_name(distance: str, hops: bool) -> str:
    """The displayed name of a distance.

    :param distance: ``host`` for the distance within a host, else a number as text.
    :param hops: whether the number counts hops: ``3 hops``, else ``distance 3``.
    """
    if distance == "host":
        return "within hosts"
    return f"{distance} hop{'s' * (distance != '1')}" if hops else f"distance {distance}"
