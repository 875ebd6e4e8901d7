"""A fabric, or a job's part of it, in numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .fabric import Fabric
from .interface import TopologyInterface
from .routes import Routes

__all__ = ["summarise"]


def summarise(routes: Routes, interface: TopologyInterface) -> dict[str, Any]:
    """Numbers of a fabric and of the hosts of an interface onto it, ready for JSON.

    :param routes: the routes over the whole fabric.
    :param interface: the hosts to look at: all, or a job's.
    Cost: O(n^2) bytes for n hosts; the rest is linear in the fabric.
    """
    fabric, tree = routes.fabric, interface.tree
    sharing = interface.get_hosts_sharing_links()
    return {
        "source": interface.source,
        "routes": routes.engine,
        "paths": routes.num_paths,
        "hosts": fabric.num_hosts,
        "adapters": fabric.num_adapters,
        "switches": fabric.num_switches,
        "links": fabric.num_links,
        "components": int(fabric.switch_component.max(initial=-1)) + 1,
        "levels": _switch_levels(fabric, _switches_crossed(fabric, interface)),
        "job": {
            "hosts": interface.num_hosts,
            "leaf_switches": len(np.unique(interface.host_routes.leaf)) if interface.host_routes else 0,
            "hosts_per_leaf": _hosts_per_leaf(interface),
            "mean_hosts_per_leaf": interface.get_avg_hosts_per_leaf_switch(),
            "hops": hop_histogram(interface),
            "hosts_sharing_links": len(sharing),
            "links_shared": len(interface.sharing_groups),
            "tree": {
                "depth": tree.depth,
                "cuts": tree.cuts.tolist(),
                "clusters": [len(np.unique(row)) for row in tree.clusters],
                "parent": tree.parent.tolist(),
                "height": tree.height.tolist(),
            },
        },
    }


def hop_histogram(interface: TopologyInterface) -> dict[str, Any]:
    """Ordered pairs of different hosts by hops: counts and shares of all pairs.

    Pairs without a hop count are ``disconnected`` (no link joins their parts of the fabric) or ``unroutable`` (links
    do, but the routes do not arrive).
    """
    hops = interface.hop_matrix
    counts = np.bincount(np.maximum(hops, 0).ravel())
    pairs = {int(hop): int(count) for hop, count in enumerate(counts) if count and hop}
    total = hops.size - len(hops)
    disconnected = _disconnected(interface)
    return {
        "pairs": total,
        "count": pairs,
        "share": {hop: count / total for hop, count in pairs.items()},
        "unroutable": total - sum(pairs.values()) - disconnected,
        "disconnected": disconnected,
    }


def _disconnected(interface: TopologyInterface) -> int:
    """Ordered pairs of hosts that stand in no common component of the fabric on any of their rails."""
    if interface.routes is None:
        return 0
    fabric = interface.routes.fabric
    leaf = fabric.adapter_leaf
    touches = np.zeros((interface.num_hosts, int(fabric.switch_component.max()) + 1), dtype=np.int32)
    touches[fabric.adapter_host[leaf >= 0], fabric.switch_component[leaf[leaf >= 0]]] = 1
    # Hosts that touch the same components count the same: patterns are few, pairs are many.
    patterns, hosts = np.unique(touches, axis=0, return_counts=True)
    apart = (patterns @ patterns.T) == 0
    return int(hosts @ apart @ hosts - hosts[np.diag(apart)].sum())


def _hosts_per_leaf(interface: TopologyInterface) -> dict[int, int]:
    """Number of leaf switches by how many of the hosts they hold."""
    if interface.host_routes is None:
        return {}
    _, hosts = np.unique(interface.host_routes.leaf, return_counts=True)
    sizes, leaves = np.unique(hosts, return_counts=True)
    return {int(size): int(count) for size, count in zip(sizes, leaves, strict=True)}


def _switches_crossed(fabric: Fabric, interface: TopologyInterface) -> NDArray[np.bool_]:
    """Which switches the routes between the interface's hosts cross, shape (S,)."""
    if interface.routes is None:
        return np.ones(fabric.num_switches, dtype=bool)
    crossed = interface.routes.fabric.switch_index
    return np.array([identity in crossed for identity in fabric.switch_ids])


def _switch_levels(fabric: Fabric, crossed: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """The switches that routes cross by distance from the hosts, with the capacity of their links down and up.

    A switch that no route crosses (a line card without leaf switches, say) would make a level of its own.
    """
    first = fabric.num_adapters
    used = np.concatenate((np.ones(first, dtype=bool), crossed))
    links = np.flatnonzero(used[fabric.link_source] & used[fabric.link_target])
    vertex_level = np.concatenate((np.full(first, -1), fabric.switch_level))
    from_level, to_level = vertex_level[fabric.link_source[links]], vertex_level[fabric.link_target[links]]
    known = not np.isnan(fabric.link_rate).any()
    capacity = fabric.link_rate[links] if known else np.ones(len(links))
    levels = []
    for level in range(int(fabric.switch_level[crossed].max(initial=-1)) + 1):
        at = from_level == level
        down = float(capacity[at & (to_level < level)].sum())
        up = float(capacity[at & (to_level > level)].sum())
        levels.append(
            {
                "level": level,
                "switches": int((fabric.switch_level[crossed] == level).sum()),
                "down": down,
                "up": up,
                "unit": "bytes/s" if known else "links",
                "oversubscription": down / up if up else None,
            }
        )
    return levels
