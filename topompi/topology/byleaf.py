"""The summary of a large fabric, computed over pairs of leaf switches instead of pairs of hosts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .fabric import Fabric
from .routes import Routes
from .summary import fabric_numbers, hops_shares, levels_between

__all__ = ["hops_by_leaf", "summarise_by_leaf"]

AT_ONCE = 1 << 24  # pairs of leaf switches; limits the number computed at a time, because memory grows with it


def summarise_by_leaf(routes: Routes, source: str) -> dict[str, object] | None:
    """Summarise a whole fabric: the fields of `summary.summarise`, but None for shared links and the cluster tree.

    The result is None if hosts of one leaf switch may have different routes, because the routes were read from tables,
    or because a host has several adapters or none.

    :param routes: the routes over the whole fabric.
    :param source: source of the topology, in words.
    Cost: proportional to (leaf switches)^2.
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


def hops_by_leaf(routes: Routes) -> dict[str, object]:
    """Count ordered pairs of different hosts by number of switches crossed; same form as `summary.hop_histogram`.

    :param routes: computed routes of a fabric whose hosts have one adapter each.
    Cost: proportional to (leaf switches)^2.
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
    counts[1] -= fabric.num_hosts  # the pairs of a host with itself
    return hops_shares(counts, fabric.num_hosts * (fabric.num_hosts - 1), _apart(fabric, leaves, hosts))


def _apart(fabric: Fabric, leaves: NDArray[np.integer], hosts: NDArray[np.integer]) -> int:
    """Number of ordered pairs of hosts in different components of the fabric.

    :param fabric: the whole fabric.
    :param leaves: switch numbers of the leaf switches, shape (leaves,).
    :param hosts: number of hosts on each leaf switch, shape (leaves,).
    """
    together = np.bincount(fabric.switch_component[leaves], hosts).astype(np.int64)
    return int(fabric.num_hosts**2 - (together**2).sum())
