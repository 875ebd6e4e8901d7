"""SharedMap, a published mapper to compare with, if it is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

from topompi.mapping.distances import TreeDistances
from topompi.mapping.graph import CommunicationGraph
from topompi.mapping.machine import Machine
from topompi.mapping.mappers.multilevel import with_empty
from topompi.mapping.mapping import Mapping, MappingError
from topompi.mapping.partition.parts import repair, whole_weights

__all__ = ["sharedmap"]

IMBALANCE = 0.03


def sharedmap(graph: CommunicationGraph, machine: Machine, seed: int = 0, *, mode: str = "strong") -> Mapping:
    """Map by SharedMap (Schulz, Woydt 2025) from the package chszlablib, on regular trees.

    Ranks are mapped to hosts, not to slots, because all distances within a host are equal, and dividing hosts as well
    takes a hundred times as long without better maps. SharedMap runs with its default imbalance; ranks are then moved
    from hosts with too many to hosts with too few.

    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots and distances.
    :param seed: seed of the random numbers; equal seeds give equal mappings.
    :param mode: ``fast``, ``eco`` or ``strong``.
    :raises MappingError: if the machine is no regular tree of several hosts, or the package is not installed.
    """
    if find_spec("chszlablib") is None:
        raise MappingError("sharedmap: needs the package chszlablib, which is not installed")
    levels, distance = _regular(machine)
    library: Any = import_module("chszlablib")
    full = with_empty(graph, machine)
    made = library.Graph.from_csr(full.offsets, full.targets, edge_weights=whole_weights(full))
    options = {"mode": mode, "imbalance": IMBALANCE, "threads": 1, "seed": seed}
    found = library.Decomposition.process_map(made, levels, distance, **options)
    host = np.asarray(found.assignment, dtype=np.int64)
    hosts = np.arange(machine.num_hosts)
    between = machine.distance(hosts[:, None], hosts[None, :]).astype(np.float64)
    return Mapping.on_hosts(repair(full, host, machine.slots, between)[: graph.size], machine)


def _regular(machine: Machine) -> tuple[list[int], list[int]]:
    """The hosts per cluster, clusters per cluster of the next level, ...; and the distance within each level's cluster.

    From each distance that within a host is subtracted; all are at least 1. Levels of one member are left out.
    """
    tree = machine.distances
    if not isinstance(tree, TreeDistances) or machine.num_hosts < 2:
        raise MappingError("sharedmap: expecting a tree of at least 2 hosts")
    # SharedMap numbers hosts cluster by cluster, so each cluster must have consecutive hosts, and all the same number.
    widths = [np.unique(level, return_counts=True)[1] for level in tree.clusters[::-1]]
    ordered = all((np.diff(level) >= 0).all() for level in tree.clusters)
    if len({*machine.slots.tolist()}) != 1 or not ordered or any(len({*width.tolist()}) != 1 for width in widths):
        raise MappingError("sharedmap: expecting clusters of consecutive hosts, equally large at each level")
    hosts = [1, *(int(width[0]) for width in widths), machine.num_hosts]
    levels = [after // before for before, after in pairwise(hosts)]
    far = (tree.distance[-2::-1] - tree.distance[-1]).tolist()
    dividing = [(count, distance) for count, distance in zip(levels, far, strict=True) if count > 1]
    return [count for count, _ in dividing], [max(distance, 1) for _, distance in dividing]
