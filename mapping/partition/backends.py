"""Partitioners other than METIS, if they are installed: KaHIP and Scotch.

Their parts need not have exact sizes, because `mapping.partition.parts.partition` repairs them.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stderr
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph import Undirected
from .metis import Metis
from .parts import Partitioner, PartitionError, whole_weights

__all__ = ["available", "partitioner"]

Integers = NDArray[np.int64]
KAFFPA_ECO = 1
MODULES = {"metis": "pymetis", "kahip": "kahip", "scotch": "pyscotch"}


def available() -> list[str]:
    """The names of the installed partitioners."""
    return [name for name, module in MODULES.items() if find_spec(module) is not None]


def partitioner(name: str) -> Partitioner:
    """The partitioner of a name: ``metis``, ``kahip`` or ``scotch``.

    :raises PartitionError: if the name is unknown, or the partitioner is not installed; the message names its package.
    """
    makers: dict[str, Callable[[], Partitioner]] = {"metis": Metis, "kahip": lambda: _kahip, "scotch": lambda: _scotch}
    if name not in makers:
        raise PartitionError(f"partitioner: expecting one of {', '.join(makers)}, got {name!r}")
    if name not in available():
        raise PartitionError(f"partitioner: {name} needs the package {MODULES[name]}, which is not installed")
    return makers[name]()


def _kahip(graph: Undirected, sizes: Integers, seed: int) -> Integers:
    """Partition by KaHIP's KaFFPa (Sanders, Schulz 2011), mode eco, 3 % imbalance, into parts of equal size."""
    kahip: Any = import_module("kahip")
    vertices = [1] * (len(graph.offsets) - 1)
    lists = graph.offsets.tolist(), whole_weights(graph).tolist(), graph.targets.tolist()
    found = kahip.kaffpa(vertices, *lists, len(sizes), 0.03, True, seed, KAFFPA_ECO)
    return np.asarray(found[1], dtype=np.int64)


def _scotch(graph: Undirected, sizes: Integers, seed: int) -> Integers:
    """Partition by Scotch's mapping to a weighted complete graph (Pellegrini, Roman 1996)."""
    scotch: Any = import_module("pyscotch")
    with redirect_stderr(io.StringIO()):  # because the first call prints the modules it has loaded
        scotch.random_seed(seed)
    scotch.random_reset()
    made = scotch.Graph()
    target = scotch.Architecture()
    target.complete_weighted(len(sizes), sizes)
    made.build(graph.offsets, graph.targets, edlotab=whole_weights(graph))
    return np.asarray(made.map(target), dtype=np.int64)
