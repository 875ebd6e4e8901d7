"""Printing of a topology's summary as tables, and of the tree of a job's hosts."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.table import Table
from rich.tree import Tree

from ...topology import ClusterTree, TopologyInterface
from ...topology.clusternames import ClusterNames
from ...topology.interface import within
from ...topology.tree import UNREACHABLE
from ...views.picture.names import listed
from ..terminal import Screen

__all__ = ["draw_levels", "draw_summary", "draw_tree"]

MOST_CHILDREN = 12  # maximum number of clusters that a tree shows below one cluster, so that it fits a screen
BAR = 40


def draw_summary(console: Screen, summary: dict[str, Any]) -> None:
    """Print the summary of a fabric and a job on it: numbers, levels, shared links, and host pairs by hops.

    :param console: screen to print on.
    :param summary: the summary, see ``topompi.topology.summary``.
    """
    job = summary["job"]
    console.print(summary["source"], style="bold")
    console.print(
        f"{summary['hosts']:,} hosts ({summary['adapters']:,} adapters), {summary['switches']:,} switches, "
        f"{summary['links']:,} directed links, {summary['components']} component(s)",
    )
    if summary.get("naming"):
        console.print(f"adapters to hosts: {summary['naming']} (--names FILE or --name-rule REGEX: otherwise)")
    if summary["torus"]:
        console.print(f"the switches are cabled as a {summary['torus']}")
    console.print(f"routes: {summary['routes']}, {summary['paths']} path(s) to a host")
    if summary["adapters"] > summary["hosts"]:
        console.print("two hosts use the adapters with the fewest hops between them (--rails selects adapters)")
    if summary["levels_of"] == "job":
        hosts = f"{job['hosts']:,} host{'s' * (job['hosts'] != 1)}"
        console.print(f"levels of the job: its {hosts} and the links that its routes use")
    draw_levels(console, summary["levels"])
    if not summary["cabled"]:
        console.print("over-subscription and shared links: unknown, this source lists no cables")
    leaves = ", ".join(f"{count} x {size}" for size, count in job["hosts_per_leaf"].items())
    console.print(
        f"{job['hosts']:,} hosts on {job['leaf_switches']:,} leaf switches, mean {job['mean_hosts_per_leaf']:.2f} "
        f"(leaves x hosts: {leaves})",
    )
    if job["links_shared"] is not None:
        shared = f"{job['links_shared']:,} link{'s' * (job['links_shared'] != 1)}"
        console.print(f"{job['hosts_sharing_links']:,} hosts share {shared} just above the leaf level")
    console.print(_hops_table(job["hops"]))


def draw_levels(console: Screen, levels: list[dict[str, Any]]) -> None:
    """Print a table of the levels of switches: number of switches, capacity of the links down and up, and their ratio.

    :param console: screen to print on.
    :param levels: figures of each level of a fabric or a job, see ``topompi.topology.summary``.
    """
    table = Table("level", "switches", "down", "up", "over-subscription", box=None, title_justify="left")
    for row in levels:
        unit = 1e9 if row["unit"] == "bytes/s" else 1
        name = "GB/s" if row["unit"] == "bytes/s" else "links"
        known = "unknown" if row["oversubscription"] is None else f"{row['oversubscription']:.3g} : 1"
        ratio = "top" if row["top"] else known
        capacity = ["-" if row[way] is None else f"{row[way] / unit:,.6g} {name}" for way in ("down", "up")]
        table.add_row(str(row["level"]), f"{row['switches']:,}", *capacity, ratio)
    console.print(table)


def _hops_table(hops: dict[str, Any]) -> Table:
    table = Table("hops", "ordered host pairs", "share", "", box=None)
    rows = [(str(hop), count) for hop, count in hops["count"].items()]
    rows += [(name, hops[key]) for name, key in (("no route", "unroutable"), ("no link", "disconnected")) if hops[key]]
    for name, count in rows:
        share = count / max(1, hops["pairs"])
        table.add_row(name, f"{count:,}", f"{100 * share:.1f} %", "█" * round(BAR * share))
    return table


def draw_tree(console: Screen, interface: TopologyInterface) -> None:
    """Print the tree of clusters of a job's hosts, with the hosts of one cluster in one line.

    A cluster has the name of the lowest switch above all its hosts, if there is exactly one.

    :param console: screen to print on.
    :param interface: the job's topology.
    """
    if interface.num_hosts:
        names = ClusterNames(interface)
        drawn = Tree(_label(interface, names, interface.tree.root))
        _draw_children(interface, names, interface.tree.root, drawn)
        console.print(drawn)


def _label(interface: TopologyInterface, names: ClusterNames, node: int) -> str:
    tree = interface.tree
    if node < tree.num_hosts:
        return interface.hosts[node]
    height = int(tree.height[node])
    distance = "no route between its parts" if height == UNREACHABLE else within(height)
    return f"{names.name(node) or f'cluster {node}'}: {_count_hosts(tree, node):,} hosts {distance}"


def _count_hosts(tree: ClusterTree, node: int) -> int:
    return int(np.any(tree.clusters == node, axis=0).sum())


def _draw_children(interface: TopologyInterface, names: ClusterNames, node: int, drawn: Tree) -> None:
    tree = interface.tree
    children = tree.children[node]
    hosts = [interface.hosts[child] for child in children if child < tree.num_hosts]
    if hosts:
        drawn.add(listed(sorted(hosts)))
    clusters = [int(child) for child in children if child >= tree.num_hosts]
    for child in clusters[:MOST_CHILDREN]:
        _draw_children(interface, names, child, drawn.add(_label(interface, names, child)))
    if len(clusters) > MOST_CHILDREN:
        drawn.add(f"... {len(clusters) - MOST_CHILDREN:,} more clusters")
