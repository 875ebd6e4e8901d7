"""A whole fabric of many hosts in numbers, by pairs of leaf switches: no question goes over all pairs of hosts."""

from __future__ import annotations

from typing import Any

import numpy as np

from .fabric import Fabric
from .routes import Routes
from .summary import fabric_numbers, hops_shares, levels_between

__all__ = ["hops_by_leaf", "summarise_by_leaf"]

AT_ONCE = 1 << 24  # pairs of leaf switches


def summarise_by_leaf(routes: Routes, source: str) -> dict[str, Any] | None:
    """What ``summarise`` gives of a whole fabric, without shared links and the cluster tree, which are None.

    None where hosts of a leaf switch may not be alike: routes from tables, hosts of several adapters or of none.

    :param routes: the routes over the whole fabric.
    :param source: where it came from.
    Cost: (leaf switches)^2.
    """
    fabric = routes.fabric
    leaf = fabric.adapter_leaf
    if isinstance(routes.table, np.ndarray) or fabric.num_adapters != fabric.num_hosts or (leaf < 0).any():
        return None
    hosts = np.unique(leaf, return_counts=True)[1]
    sizes, leaves = np.unique(hosts, return_counts=True)
    return fabric_numbers(routes, source) | {
        "levels_of": "fabric",
        "levels": levels_between(fabric, np.ones(fabric.num_switches, dtype=bool)),
        "job": {
            "hosts": fabric.num_hosts,
            "leaf_switches": len(hosts),
            "hosts_per_leaf": {int(size): int(count) for size, count in zip(sizes, leaves, strict=True)},
            "mean_hosts_per_leaf": fabric.num_hosts / len(hosts),
            "hops": hops_by_leaf(routes),
            "hosts_sharing_links": None,
            "links_shared": None,
            "tree": None,
        },
    }


def hops_by_leaf(routes: Routes) -> dict[str, Any]:
    """Ordered pairs of different hosts by hops, as ``hop_histogram`` has them, where hosts of a leaf are alike.

    :param routes: computed ones; each host has one adapter.
    Cost: (leaf switches)^2.
    """
    fabric = routes.fabric
    leaves, example, hosts = np.unique(fabric.adapter_leaf, return_index=True, return_counts=True)
    counts = np.zeros(0, dtype=np.int64)
    rows = max(AT_ONCE // len(leaves), 1)
    for first in range(0, len(leaves), rows):
        hops = np.maximum(routes.tables.hops_from(leaves[first : first + rows], example.astype(np.int32)), 0)
        found = np.array([hosts[first : first + rows] @ (hops == hop) @ hosts for hop in range(int(hops.max()) + 1)])
        size = max(len(counts), len(found))
        counts = np.pad(counts, (0, size - len(counts))) + np.pad(found, (0, size - len(found)))
    counts[1] -= fabric.num_hosts  # to themselves
    return hops_shares(counts, fabric.num_hosts * (fabric.num_hosts - 1), _apart(fabric, leaves, hosts))


def _apart(fabric: Fabric, leaves: Any, hosts: Any) -> int:
    """Ordered pairs of hosts in different components of the fabric."""
    together = np.bincount(fabric.switch_component[leaves], hosts).astype(np.int64)
    return int(fabric.num_hosts**2 - (together**2).sum())
