"""Leonardo's fabric from its node map, and jobs that could have run at one time from its lists of nodes.

The map has the leaf switch and the cell of each node, but no cables. Those here are ours, of the machine's public kind,
a Dragonfly+ of HDR: each cell has 18 spines, joined to all leaf switches of the cell, and the i-th spines of every two
cells are joined; all at 25 GB/s. A node has one adapter of 12.5 GB/s. Routes are minimal.
"""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topompi.inputs.hostlist import HostNames
from topompi.machine.jobs import Cluster
from topompi.topology import Fabric, FabricBuilder, load
from topompi.topology.computed import compute_routes
from topompi.views.cluster import cluster_of

__all__ = ["SPINES", "cluster_from", "dragonfly_plus", "job_nodes", "snapshot"]

Nodes = NDArray[np.int64]

SPINES, SPINE_RATE, NODE_RATE = 18, 25e9, 12.5e9  # bytes/s


def cluster_from(path: str | Path) -> Cluster:
    """The cluster of a node map, with minimal routes, whose pods are the cells.

    :param path: the node map.
    """
    flat = load(path).fabric
    leaf = flat.adapter_leaf[flat.rails[0]]
    parents = _parents(flat)
    leaf_of = dict(zip(flat.hosts, (f"leaf{one}" for one in leaf), strict=True))
    cell_of = {f"leaf{one}": f"cell{parents[one]}" for one in np.unique(leaf).tolist()}
    found = cluster_of(compute_routes(dragonfly_plus(flat.name, leaf_of, cell_of)))
    cell = [cell_of[leaf_of[found.hosts[node]]] for node in found.leaf_start[:-1]]
    begins = [number for number, one in enumerate(cell) if not number or one != cell[number - 1]]
    return replace(found, pod_start=np.array([*begins, len(cell)], dtype=np.int32))


def _parents(flat: Fabric) -> dict[int, int]:
    """The cell switch of each leaf switch in the map's own fabric, which has one switch per cell."""
    leaves = set(flat.adapter_leaf.tolist())
    ends = zip(
        *(end[flat.switch_links] - flat.num_adapters for end in (flat.link_source, flat.link_target)), strict=True
    )
    return {int(one): int(other) for one, other in ends if one in leaves and other not in leaves}


def dragonfly_plus(name: str, leaf_of: Mapping[str, str], cell_of: Mapping[str, str], spines: int = SPINES) -> Fabric:
    """Make a Dragonfly+ with one cable between the spines of one number of every two cells.

    :param name: name of the fabric.
    :param leaf_of: leaf switch of each host.
    :param cell_of: cell of each leaf switch.
    :param spines: number of spines of each cell.
    """
    builder, cells = FabricBuilder(name, cabled=False), list(dict.fromkeys(cell_of.values()))
    for switch in (*cell_of, *(f"{cell}/{spine}" for cell in cells for spine in range(spines))):
        builder.add_switch(switch)
    for host, leaf in leaf_of.items():
        builder.add_adapter(host, host)
        builder.add_cable(host, leaf, rate=NODE_RATE)
    for spine in range(spines):
        for leaf, cell in cell_of.items():
            builder.add_cable(leaf, f"{cell}/{spine}", rate=SPINE_RATE)
        for one, other in combinations(cells, 2):
            builder.add_cable(f"{one}/{spine}", f"{other}/{spine}", rate=SPINE_RATE)
    return builder.build()


def job_nodes(path: str | Path, cluster: Cluster) -> dict[str, Nodes]:
    """The nodes of each job of an archive of lists, in the order of the jobs' numbers, if the map has them all.

    :param path: archive with a file ``NUMBER.txt`` per job, a host per line.
    :param cluster: the cluster.
    """
    known = HostNames(cluster.hosts)
    with tarfile.open(path) as archive:
        members = sorted((one for one in archive.getmembers() if one.isfile()), key=lambda one: Path(one.name).stem)
        texts = {Path(one.name).stem: archive.extractfile(one) for one in members}
        lists = {name: text.read().decode().split() for name, text in texts.items() if text is not None}
    found = {name: np.array([known.find(one) for one in hosts]) for name, hosts in lists.items() if len(hosts) > 1}
    return {name: np.sort(hosts) for name, hosts in found.items() if (hosts >= 0).all()}


def snapshot(jobs: Mapping[str, Nodes], begin: int, share: float, total: int) -> dict[str, Nodes]:
    """Jobs of following numbers that have no node in common: jobs that could have run at one time.

    :param jobs: nodes of each job, in the order of their numbers.
    :param begin: index of the first job; the last is followed by the first.
    :param share: share of the machine at which no further job is taken.
    :param total: number of nodes of the machine.
    """
    taken, kept, names = np.zeros(total, dtype=bool), dict[str, Nodes](), list(jobs)
    for name in names[begin:] + names[:begin]:
        if not taken[jobs[name]].any() and taken.sum() < share * total:
            taken[jobs[name]] = True
            kept[name] = jobs[name]
    return kept
