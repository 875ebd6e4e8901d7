"""Other partitioners than METIS, where they are installed: KaHIP, Scotch, SharedMap.

Their parts need not be exact, `mapping.partition.partition` repairs them: several are known to
put two ranks on one slot.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .distances import Tree
from .graph import CommunicationGraph, Undirected
from .machine import Machine
from .mapping import Mapping, MappingError
from .multilevel import with_empty
from .partition import Metis, Partitioner, PartitionError, repair

__all__ = ["available", "partitioner", "sharedmap"]

Integers = NDArray[np.int64]
LARGEST_SUM = 2**30
KAFFPA_ECO = 1
MODULES = {"metis": "pymetis", "kahip": "kahip", "scotch": "pyscotch"}


def available() -> list[str]:
    """Names of the partitioners that are installed."""
    return [name for name, module in MODULES.items() if find_spec(module) is not None]


def partitioner(name: str) -> Partitioner:
    """A partitioner by its name: ``metis``, ``kahip`` or ``scotch``.

    :raises PartitionError: for another name, or where it is not installed; the message says what to install.
    """
    makers: dict[str, Callable[[], Partitioner]] = {"metis": Metis, "kahip": lambda: _kahip, "scotch": lambda: _scotch}
    if name not in makers:
        raise PartitionError(f"partitioner: expected one of {', '.join(makers)}, got {name!r}")
    if name not in available():
        raise PartitionError(f"partitioner: {name} needs the package {MODULES[name]}, which is not installed")
    return makers[name]()


def _weights(graph: Undirected) -> Integers:
    """Weights as whole numbers of at least 1 that 32 bits can add up."""
    scale = min(1.0, LARGEST_SUM / max(float(graph.weight.sum()), 1.0))
    return np.maximum(np.rint(graph.weight * scale), 1).astype(np.int64)


def _kahip(graph: Undirected, sizes: Integers, seed: int) -> Integers:
    """KaFFPa (Sanders, Schulz 2011), mode eco, 3 % imbalance; sizes are taken as equal."""
    kahip: Any = import_module("kahip")
    vertices = [1] * (len(graph.offsets) - 1)
    lists = graph.offsets.tolist(), _weights(graph).tolist(), graph.targets.tolist()
    found = kahip.kaffpa(vertices, *lists, len(sizes), 0.03, True, seed, KAFFPA_ECO)
    return np.asarray(found[1], dtype=np.int64)


def _scotch(graph: Undirected, sizes: Integers, seed: int) -> Integers:
    """Scotch's mapping onto a weighted complete graph (Pellegrini, Roman 1996)."""
    scotch: Any = import_module("pyscotch")
    scotch.random_seed(seed)
    scotch.random_reset()
    made = scotch.Graph()
    target = scotch.Architecture()
    target.complete_weighted(len(sizes), sizes)
    made.build(graph.offsets, graph.targets, edlotab=_weights(graph))
    return np.asarray(made.map(target), dtype=np.int64)


def sharedmap(graph: CommunicationGraph, machine: Machine, seed: int = 0, *, mode: str = "strong") -> Mapping:
    """SharedMap (Schulz, Woydt 2025) from the package chszlablib, repaired; for regular trees.

    :param mode: ``fast``, ``eco`` or ``strong``.
    :raises MappingError: where the machine is no regular tree, or the package is not installed.
    """
    if find_spec("chszlablib") is None:
        raise MappingError("sharedmap: needs the package chszlablib, which is not installed")
    levels, distance = _regular(machine)
    library: Any = import_module("chszlablib")
    full = with_empty(graph, machine)
    made = library.Graph.from_csr(full.offsets, full.targets, edge_weights=_weights(full))
    options = {"mode": mode, "imbalance": 0.0, "threads": 1, "seed": seed}
    found = library.Decomposition.process_map(made, levels, distance, **options)
    host = np.asarray(found.assignment, dtype=np.int64) // levels[0]
    hosts = np.arange(machine.num_hosts)
    apart = machine.distance(hosts[:, None], hosts[None, :]).astype(np.float64)
    return Mapping.on_hosts(repair(full, host, machine.slots, apart)[: graph.size], machine)


def _regular(machine: Machine) -> tuple[list[int], list[int]]:
    """Levels and distances of a regular tree whose clusters stand in order, lowest first."""
    tree = machine.distances
    if not isinstance(tree, Tree):
        raise MappingError("sharedmap: expected a tree")
    widths = [np.unique(level, return_counts=True)[1] for level in tree.clusters[::-1]]
    if len({*machine.slots.tolist()}) != 1 or any(len({*width.tolist()}) != 1 for width in widths):
        raise MappingError("sharedmap: expected a tree whose clusters are equally large at each level")
    hosts = [1, *(int(width[0]) for width in widths), machine.num_hosts]
    levels = [int(machine.slots[0]), *(after // before for before, after in pairwise(hosts))]
    far = [int(machine.distance(0, 0)), *(int(one) for one in reversed(tree.distance[:-1]))]
    return levels, far
