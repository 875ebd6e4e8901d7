"""Conversion of a fabric into a cluster for job scheduling, with leaves, pods and routes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..errors import RouteError, SourceError
from ..machine.jobs.cluster import Cluster
from ..machine.jobs.isolation import TableRoutes
from ..topology import Fabric, Report, Routes, load
from ..topology.inspection import select_rails

__all__ = ["cluster_of", "node_hosts", "read_cluster", "read_routed"]

Indices = NDArray[np.integer]


def read_cluster(
    text: str,
    nodes: int | None = None,
    lfts: str | os.PathLike[str] | None = None,
    report: Report | None = None,
    rails: Sequence[str] | None = None,
) -> Cluster:
    """Make the cluster that a specification describes, or the cluster of a topology source.

    :param text: ``leaves=18x18`` (nodes per leaf, leaves per pod), or a topology source.
    :param nodes: number of nodes of the whole cluster; only if the text is a specification.
    :param lfts: file, directory or archive of forwarding tables; only if the text is a topology source.
    :param report: receiver of problems, notes and progress.
    :param rails: conditions on the adapters to keep, see `select_rails`; only if the text is a topology source.
    :raises AllocationError: if the specification is malformed.
    :raises SourceError: if the source cannot be read.
    """
    if text.startswith("leaves="):
        if rails:
            raise SourceError(f"--rails: expecting a topology source beside it, got {text}")
        return Cluster.parse(text, nodes)
    return read_routed(text, lfts, report, rails)[0]


def read_routed(
    text: str,
    lfts: str | os.PathLike[str] | None = None,
    report: Report | None = None,
    rails: Sequence[str] | None = None,
) -> tuple[Cluster, Routes]:
    """Make the cluster of a topology source, and return it with the routes.

    :param text: the topology source.
    :param lfts: file, directory or archive of forwarding tables.
    :param report: receiver of problems, notes and progress.
    :param rails: conditions on the adapters to keep, see `select_rails`.
    :raises SourceError: if the source cannot be read.
    """
    discovery = load(text, lfts, report)
    assert discovery.routes is not None  # load() computes missing routes
    routes = select_rails(discovery.routes, rails or (), discovery.devices)
    cluster = cluster_of(routes)
    if report is not None and cluster.part is not None:
        parts = int(cluster.part.max()) + 1
        report.note(f"{text}: no links join {parts} parts of the hosts, and each job gets nodes of one part")
    return cluster, routes


def cluster_of(routes: Routes) -> Cluster:
    """Make the cluster of all hosts that have an adapter at a leaf switch.

    A host is at the leaf of its first adapter. If the fabric has parts that no links join, the first adapter in the
    part with adapters of the most hosts counts, if the host has one there.

    A pod is a set of leaf switches that are joined by switches one level above. Nodes (hosts) are sorted by pod, then
    by leaf switch, then in the fabric's order of hosts. The routes to a node include all alternative ones (LMC).
    Hosts in parts of the fabric that no links join use no links between each other.

    :param routes: the routes over the whole fabric.
    :raises RouteError: if no host is at a leaf switch, or a leaf has no route to a host to which links lead.
    Cost: memory for leaves x hosts x (longest route) numbers.
    """
    fabric = routes.fabric
    first = _main_adapters(fabric)
    hosts = np.flatnonzero(fabric.adapter_leaf[first] >= 0)
    if not len(hosts):
        raise RouteError(f"{fabric.name}: expecting hosts at leaf switches, got none")
    switch = fabric.adapter_leaf[first[hosts]]
    pod = fabric.switch_components(fabric.switch_level <= 1)[switch]
    order = np.lexsort((hosts, switch, pod))
    hosts, switch, pod = hosts[order], switch[order], pod[order]
    change = np.flatnonzero(np.diff(switch, prepend=-1))
    leaf = np.repeat(np.arange(len(change)), np.diff(np.append(change, len(hosts))))
    pods = np.unique(pod[change], return_counts=True)[1]
    steps = _steps(routes, switch[change], first[hosts])
    names = tuple(fabric.hosts[host] for host in hosts.tolist())
    table = TableRoutes(routes.tables.part(hosts), leaf.astype(np.int32), steps, routes.engine)
    cluster = Cluster.of(fabric.name, np.bincount(leaf), pods, names, table)
    part = np.unique(fabric.switch_component[switch], return_inverse=True)[1].astype(np.int32)
    return replace(cluster, part=part) if part.any() else cluster


def node_hosts(cluster: Cluster, fabric: Fabric) -> Indices:
    """Return the number in the fabric of each node's host, shape (nodes,); nodes are in another order than hosts.

    :param cluster: result of ``cluster_of`` for routes over the fabric.
    :param fabric: the fabric.
    """
    return np.array([fabric.host_index[name] for name in cluster.hosts], dtype=np.int64)


def _main_adapters(fabric: Fabric) -> Indices:
    """Return the adapter of each host that alone counts in the cluster, shape (hosts,).

    If links do not join all switches, the connected components are sorted: the one with adapters of the most hosts
    comes first, and of equal ones the one with the most hosts' first adapters. A host's adapter is the first one that
    it has in the first of these components.
    """
    leaf, host = fabric.adapter_leaf, fabric.adapter_host
    component = np.where(leaf >= 0, fabric.switch_component[leaf], -1)
    count = int(fabric.switch_component.max()) + 1
    touched = np.unique(np.stack((host[leaf >= 0], component[leaf >= 0])), axis=1)[1]
    first = np.array([adapters[0] for adapters in fabric.host_adapters], dtype=np.int64)
    by_first = np.bincount(component[first][component[first] >= 0], minlength=count)
    order = np.lexsort((np.arange(count), -by_first, -np.bincount(touched, minlength=count)))
    rank = np.empty(count + 1, dtype=np.int64)
    rank[order], rank[-1] = np.arange(count), count  # the last element is for adapters without a switch, component -1
    best = np.lexsort((np.arange(len(host)), rank[component], host))
    kept: Indices = best[np.searchsorted(host[best], np.arange(fabric.num_hosts))]
    return kept


def _steps(routes: Routes, switches: Indices, adapters: Indices) -> NDArray[np.int32]:
    """Links between switches on all alternative routes from each leaf to each node, padded with -1.

    :param routes: the routes over the whole fabric.
    :param switches: switch number of each leaf, shape (leaves,).
    :param adapters: first adapter of each node, shape (nodes,).
    :returns: link numbers of shape (leaves, nodes, number of links of all alternative routes).
    """
    fabric = routes.fabric
    number = np.full(fabric.num_links + 1, -1, dtype=np.int32)  # the last element is for link -1, "no link"
    number[fabric.switch_links] = fabric.switch_links
    part = fabric.switch_component
    starts, ends = np.repeat(switches, len(adapters)), np.tile(adapters, len(switches))
    found = []
    for path in range(routes.num_paths):
        hops, links, _ = routes.tables.walk(starts.astype(np.int32), ends.astype(np.int32), path)
        lost = (hops < 0) & (part[starts] == part[fabric.adapter_leaf[ends]])
        if lost.any():
            at = int(np.argmax(lost))
            names = fabric.switch_names[starts[at]], fabric.adapter_ids[ends[at]]
            raise RouteError(f"{fabric.name}: expecting a route from {names[0]} to {names[1]}, got none")
        found.append(number[links[:, :-1]])
    return np.concatenate(found, axis=1).reshape(len(switches), len(adapters), -1)
