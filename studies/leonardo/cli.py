"""Sharing of links on Leonardo, and changes by placement and isolation: ``python -m studies leonardo MAP LISTS``.

The jobs' traffic is not known: each job has one of two kernels, an alltoall or a periodic 3D halo exchange, with 64 MiB
per node and run. The model is flows; lanes are simulated with packets.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topompi.machine.interference.network import SharedNetwork, shared_network
from topompi.machine.interference.replay import ReplayTimes, replay
from topompi.machine.interference.rivals import rivals
from topompi.machine.jobs import Cluster, find_allocator
from topompi.machine.jobs.allocation import Job

from ..tables import Table, show_many
from . import lanes
from .machine import cluster_from, job_nodes, snapshot
from .traffic import KERNELS, programs

__all__ = ["POLICIES", "allocate", "main", "report", "sharers"]

Nodes = NDArray[np.int64]

LATENCY = 0.2e-6  # seconds of each link
POLICIES = ("first", "contiguous", "bestfit", "isolated", "disjoint")


TODAY = (
    "first job",
    "jobs",
    "nodes",
    "on one leaf",
    "in one cell",
    "share links",
    "partners",
    "of the largest; bounds",
)
RATIOS = ("T_alone / T_base", "T_sharing / T_alone", "its 95 %", "its most", "T_sharing / T_base")
AS_THEY_WERE = "as they were"
PLACED = ("traffic", "placement", "nodes", "jobs", "that share", *RATIOS)


@dataclass(frozen=True, eq=False)
class Site:
    """The cluster, its network, and jobs that could have run at one time."""

    cluster: Cluster
    network: SharedNetwork
    jobs: Sequence[Mapping[str, Nodes]]


def site(nodes: Path, lists: Path, snapshots: int) -> Site:
    """Read the machine and the jobs.

    :param nodes: node map.
    :param lists: archive of the jobs' lists of nodes.
    :param snapshots: number of snapshots, which begin at evenly spaced jobs.
    """
    cluster = cluster_from(nodes)
    jobs = job_nodes(lists, cluster)
    begins = [len(jobs) * one // snapshots for one in range(snapshots)]
    found = [snapshot(jobs, begin, 1.0, cluster.num_nodes) for begin in begins]
    return Site(cluster, SharedNetwork(shared_network(cluster, latency=LATENCY)), found)


def allocate(cluster: Cluster, sizes: Mapping[str, int], policy: str, usable: Nodes | None = None) -> dict[str, Nodes]:
    """Place jobs one after the other on an empty cluster; those that would wait are left out.

    :param cluster: the cluster.
    :param sizes: number of nodes of each job.
    :param policy: name of an allocator.
    :param usable: nodes that jobs may have; None for all.
    """
    allocator = find_allocator(policy)
    state, found = allocator.state(cluster), dict[str, Nodes]()
    if usable is not None:
        state.close(np.setdiff1d(np.arange(cluster.num_nodes), usable))
    for number, (name, size) in enumerate(sizes.items()):
        placement = allocator.place(Job(number, size), state)
        if placement is not None:
            state.start(Job(number, size), placement)
            found[name] = np.sort(placement.used(size)).astype(np.int64)
    return found


def sharers(network: SharedNetwork, jobs: Mapping[str, Nodes]) -> NDArray[np.bool_]:
    """Whether routes between the nodes of each job cross a link of each other one, shape (jobs, jobs)."""
    uses = np.array([network.uses(one) for one in programs(jobs, KERNELS[0])]).astype(np.float32)
    found = uses @ uses.T > 0
    np.fill_diagonal(found, False)
    return np.asarray(found)


def report(where: Site, kernels: Sequence[str], policies: Sequence[str]) -> Iterator[Table]:
    """The tables: who shares today, and what other placements and virtual lanes change.

    :param where: machine and jobs.
    :param kernels: traffic of the jobs.
    :param policies: allocators.
    """
    yield "leonardo today", TODAY, _today(where)
    yield "leonardo placements", PLACED, _placements(where, kernels, policies)
    yield "leonardo lanes", ("first job", *lanes.HEAD), _lanes(where, 1 if len(kernels) == 1 else 3)


def _today(where: Site) -> Iterator[list[str]]:
    leaf, pod = where.cluster.leaf, where.cluster.pod
    for jobs in where.jobs:
        pairs, sizes = sharers(where.network, jobs), [len(nodes) for nodes in jobs.values()]
        one_leaf, one_cell = (
            np.mean([len(np.unique(of[nodes])) == 1 for nodes in jobs.values()]) for of in (leaf, pod)
        )
        shares, partners = pairs.any(axis=1), pairs.sum(axis=1)
        largest = int(np.argmax(sizes))
        nodes = list(jobs.values())[largest]
        around = int(np.isin(leaf, leaf[nodes]).sum()) - len(nodes)
        cells = (
            f"{one_leaf:.0%}",
            f"{one_cell:.0%}",
            f"{shares.mean():.0%}",
            f"{partners.mean():.1f}, most {partners.max()}",
        )
        most = rivals(where.network.tables, nodes)
        bound = f"{len(nodes)} nodes: {partners[largest]}; {around}; {most}"
        yield [next(iter(jobs)), str(len(jobs)), f"{sum(sizes):,}", *cells, bound]


def _lanes(where: Site, count: int) -> Iterator[list[str]]:
    for jobs in where.jobs:
        for row in lanes.rows(where.network, jobs, count):
            yield [next(iter(jobs)), *row]


def _placements(where: Site, kernels: Sequence[str], policies: Sequence[str]) -> Iterator[list[str]]:
    for kernel in kernels:
        for policy, same in ((AS_THEY_WERE, True), *product(policies, (True, False))):
            found = [_replayed(where, jobs, kernel, policy, same) for jobs in where.jobs]
            yield [kernel, policy, "the same" if same else "any", *_cells(found, where.jobs)]


def _replayed(where: Site, jobs: Mapping[str, Nodes], kernel: str, policy: str, same: bool) -> ReplayTimes:
    """The outcome of a snapshot under a policy, on the nodes that its jobs had together or on any."""
    sizes, usable = {name: len(nodes) for name, nodes in jobs.items()}, np.concatenate(list(jobs.values()))
    nodes = jobs if policy == AS_THEY_WERE else allocate(where.cluster, sizes, policy, usable if same else None)
    return replay(where.network, programs(nodes, kernel))


def _cells(found: Sequence[ReplayTimes], jobs: Sequence[Mapping[str, Nodes]]) -> Iterator[str]:
    placed, wanted = sum(len(one.names) for one in found), sum(map(len, jobs))
    ratio = np.concatenate([one.sharing / one.alone for one in found])
    grouped = sum(len(group) for one in found for group in one.groups if len(group) > 1)
    yield f"{placed} of {wanted}"
    yield f"{grouped / max(placed, 1):.0%}"
    yield f"{np.concatenate([one.alone / one.base for one in found]).mean():.2f}"
    yield f"{ratio.mean():.2f}"
    yield f"{np.quantile(ratio, 0.95):.2f}"
    yield f"{ratio.max():.2f}"
    yield f"{np.concatenate([one.normalised for one in found]).mean():.2f}"


def main(arguments: Sequence[str]) -> int:
    """Print the tables.

    :param arguments: arguments after the source's name: node map, archive of lists, then ``-o DIR`` and ``--quick``.
    """
    parser = argparse.ArgumentParser(prog="python -m studies leonardo")
    parser.add_argument("nodes", type=Path, metavar="MAP", help="node map")
    parser.add_argument("lists", type=Path, metavar="LISTS", help="archive of the jobs' lists of nodes")
    given, others = parser.parse_known_args(arguments)
    name, make = f"leonardo {given.nodes} {given.lists}", partial(_tables, given.nodes, given.lists)
    return show_many(name, "sharing.md", make, others)


def _tables(nodes: Path, lists: Path, quick: bool) -> Iterator[Table]:
    where = site(nodes, lists, 1 if quick else 3)
    print(f"model: flows; {len(where.jobs)} snapshots of jobs that could have run at one time; routes minimal")
    return report(where, KERNELS[:1] if quick else KERNELS, POLICIES[:2] if quick else POLICIES)
