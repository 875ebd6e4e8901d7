"""Summary in numbers of a fabric and of a job's part of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .fabric import Fabric
from .interface import TopologyInterface
from .routes import Routes

__all__ = ["fabric_numbers", "hops_shares", "levels_between", "levels_of", "summarise"]


def summarise(routes: Routes, interface: TopologyInterface, *, job: bool = False) -> dict[str, Any]:
    """Summarise a fabric, and an interface's hosts in it, in numbers, as a dictionary ready for JSON.

    Capacities, over-subscription and shared links are None if the source lists no cables, because they depend on the
    number of cables.

    :param routes: the routes over the whole fabric.
    :param interface: the hosts to summarise, namely all hosts of the fabric or those of a job.
    :param job: whether the levels count only the interface's hosts and the links that their routes use; if not, they
        count those of the whole fabric.
    Cost: O(n^2) bytes for n hosts of the interface; the rest is linear in the size of the fabric.
    """
    fabric, tree = routes.fabric, interface.tree
    sharing = interface.get_hosts_sharing_links()
    levels = _job_levels(fabric, interface) if job else levels_between(fabric, _switches_crossed(fabric, interface))
    return fabric_numbers(routes, interface.source) | {
        "levels_of": "job" if job else "fabric",
        "levels": levels,
        "job": {
            "hosts": interface.num_hosts,
            "leaf_switches": len(interface.host_routes.on_leaves[0]) if interface.host_routes else 0,
            "hosts_per_leaf": _hosts_per_leaf(interface),
            "mean_hosts_per_leaf": interface.get_avg_hosts_per_leaf_switch(),
            "hops": hop_histogram(interface),
            "hosts_sharing_links": len(sharing) if fabric.cabled else None,
            "links_shared": len(interface.sharing_groups) if fabric.cabled else None,
            "tree": {
                "depth": tree.depth,
                "cuts": tree.cuts.tolist(),
                "clusters": [len(np.unique(row)) for row in tree.clusters],
                "parent": tree.parent.tolist(),
                "height": tree.height.tolist(),
            },
        },
    }


def fabric_numbers(routes: Routes, source: str) -> dict[str, object]:
    """Compute the part of the summary that describes the fabric and its routes, and no job.

    :param routes: the routes over the whole fabric.
    :param source: source of the topology, in words.
    """
    fabric = routes.fabric
    return {
        "source": source,
        "routes": routes.engine,
        "paths": routes.num_paths,
        "hosts": fabric.num_hosts,
        "adapters": fabric.num_adapters,
        "switches": fabric.num_switches,
        "torus": str(fabric.torus) if fabric.torus else None,
        "links": fabric.num_links,
        "components": int(fabric.switch_component.max(initial=-1)) + 1,
        "cabled": fabric.cabled,
    }


def hop_histogram(interface: TopologyInterface) -> dict[str, object]:
    """Count the ordered pairs of different hosts by number of switches crossed, with their shares of all pairs.

    Pairs without a route are ``disconnected`` if no links join their parts of the fabric, else ``unroutable``, because
    links exist but the routes do not arrive.
    """
    hops = interface.hop_matrix
    counts = np.bincount(np.maximum(hops, 0).ravel())
    return hops_shares(counts, hops.size - len(hops), _disconnected(interface))


def hops_shares(counts: NDArray[np.int64], total: int, disconnected: int) -> dict[str, object]:
    """Make the result of `hop_histogram` from counts of pairs.

    :param counts: number of ordered pairs by number of switches crossed, from 0; the entry at 0 is ignored.
    :param total: number of ordered pairs of different hosts.
    :param disconnected: number of ordered pairs that no links join.
    """
    pairs = {int(hop): int(count) for hop, count in enumerate(counts) if count and hop}
    return {
        "pairs": total,
        "count": pairs,
        "share": {hop: count / total for hop, count in pairs.items()},
        "unroutable": total - sum(pairs.values()) - disconnected,
        "disconnected": disconnected,
    }


def _disconnected(interface: TopologyInterface) -> int:
    """Count the ordered pairs of hosts of which no two adapters are in one component of the fabric."""
    if interface.routes is None:
        return 0
    fabric = interface.routes.fabric
    leaf = fabric.adapter_leaf
    touches = np.zeros((interface.num_hosts, int(fabric.switch_component.max(initial=-1)) + 1), dtype=np.int32)
    touches[fabric.adapter_host[leaf >= 0], fabric.switch_component[leaf[leaf >= 0]]] = 1
    # Hosts with adapters in the same components are counted together, because there are few sets of components and many
    # pairs.
    patterns, hosts = np.unique(touches, axis=0, return_counts=True)
    apart = (patterns @ patterns.T) == 0
    return int(hosts @ apart @ hosts - hosts[np.diag(apart)].sum())


def _hosts_per_leaf(interface: TopologyInterface) -> dict[int, int]:
    """Count leaf switches by their number of hosts of the interface: number of hosts -> number of leaf switches."""
    if interface.host_routes is None:
        return {}
    sizes, leaves = np.unique(interface.host_routes.on_leaves[1], return_counts=True)
    return {int(size): int(count) for size, count in zip(sizes, leaves, strict=True)}


def _switches_crossed(fabric: Fabric, interface: TopologyInterface) -> NDArray[np.bool_]:
    """Whether the routes between the interface's hosts cross each switch, shape (switches,)."""
    if interface.routes is None:
        return np.ones(fabric.num_switches, dtype=bool)
    crossed = interface.routes.fabric.switch_index
    return np.array([identity in crossed for identity in fabric.switch_ids], dtype=bool)


def _links_of_switches(fabric: Fabric, crossed: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Numbers of the links whose ends are adapters or crossed switches, including links that no route uses.

    Switches that no route crosses, for example a line card without leaf switches, are excluded, because they would form
    a level of their own.
    """
    used = np.concatenate((np.ones(fabric.num_adapters, dtype=bool), crossed))
    return np.flatnonzero(used[fabric.link_source] & used[fabric.link_target])


def _job_levels(fabric: Fabric, interface: TopologyInterface) -> list[dict[str, Any]]:
    """Count the levels of the part of the fabric with the interface's hosts and the links of their routes."""
    if interface.routes is None:
        return []
    part = interface.routes.fabric
    level = fabric.switch_level[[fabric.switch_index[identity] for identity in part.switch_ids]]
    return _switch_levels(part, level, np.arange(part.num_links))


def levels_of(routes: Routes) -> list[dict[str, Any]]:
    """Count the switches of each level of a fabric that routes cross, and the capacity of their links.

    :returns: one row per level of switches, leaf switches (level 0) first, with the fields of `levels_between`.
    """
    fabric = routes.fabric
    part = routes.restrict(np.arange(fabric.num_hosts, dtype=np.int32)).fabric.switch_index
    crossed = np.array([identity in part for identity in fabric.switch_ids], dtype=bool)
    return levels_between(fabric, crossed)


def levels_between(fabric: Fabric, crossed: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Count the given switches of each level of a fabric, and the capacity of their links.

    :param fabric: the whole fabric.
    :param crossed: whether routes cross each switch, shape (switches,).
    :returns: one row per level of switches, leaf switches (level 0) first: ``level``, number of ``switches``, capacity
        of the links that lead up to the level (``down``) and up from it (``up``), their ``unit``, whether it is the
        ``top``, and ``oversubscription``, down / up; None if unknown.
    """
    if not fabric.num_switches:
        return []
    return _switch_levels(fabric, fabric.switch_level, _links_of_switches(fabric, crossed))


def _switch_levels(fabric: Fabric, level: NDArray[np.int32], links: NDArray[np.intp]) -> list[dict[str, Any]]:
    """Make the rows that `levels_between` returns, counting the given links and the switches at their ends.

    :param fabric: a whole fabric or a part of one.
    :param level: level of each of its switches, shape (switches,).
    :param links: numbers of the links to count.
    """
    of_vertex = np.concatenate((np.full(fabric.num_adapters, -1), level))
    source, target = of_vertex[fabric.link_source[links]], of_vertex[fabric.link_target[links]]
    ends = np.unique(np.concatenate((fabric.link_source[links], fabric.link_target[links])))
    rated = not np.isnan(fabric.link_rate).any()
    capacity = fabric.link_rate[links] if rated else np.ones(len(links))
    levels = []
    for at in range(int(of_vertex[ends].max(initial=-1)) + 1):
        down = float(capacity[(target == at) & (source < at)].sum())
        up = float(capacity[(source == at) & (target > at)].sum())
        levels.append(
            {
                "level": at,
                "switches": int((of_vertex[ends] == at).sum()),
                "down": down if fabric.cabled else None,
                "up": up if fabric.cabled else None,
                "unit": "bytes/s" if rated else "links",
                "top": not up,
                "oversubscription": down / up if up and fabric.cabled else None,
            }
        )
    return levels
