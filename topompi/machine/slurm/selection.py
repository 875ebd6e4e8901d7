"""The nodes that a job should ask Slurm for: idle ones of which no two share a link into their leaf switch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ..jobs import AllocationError, Cluster
from ..jobs.allocation.apart import sharing_nodes
from ..jobs.now import node_names, offer

__all__ = ["Selection", "select"]


@dataclass(frozen=True)
class Selection:
    """The nodes for one job.

    :param nodes: names of the nodes; empty if the job has to wait.
    :param sharing: names of those nodes that share, with another one, a link into their leaf switch.
    :param leaves: number of leaf switches that the nodes are on.
    :param idle: number of idle nodes of the cluster.
    :param why: reason for the choice, in words.
    """

    nodes: tuple[str, ...]
    sharing: tuple[str, ...]
    leaves: int
    idle: int
    why: str


def select(
    size: int, cluster: Cluster, idle: Collection[str], *, spread: bool = True, wanted: Sequence[str] = ()
) -> Selection:
    """Choose nodes for a job; the user's own list is taken as it is.

    :param size: number of nodes.
    :param cluster: the machine, with the true routes.
    :param idle: names of the nodes that could take a job now.
    :param spread: True to take nodes of which no two share a link into their leaf switch, wherever that is possible
        (the allocator ``apart``); False for the lowest subtree that fits (``bestfit``).
    :param wanted: names of the nodes that the user wants; empty to choose.
    :raises AllocationError: if no idle node is in the cluster, or the user's list has not ``size`` nodes of it.

    Cost: that of the allocator.
    """
    names, could = node_names(cluster), set(idle)
    place = {name: node for node, name in enumerate(names)}
    known = [name for name in names if name in could]
    if not known:
        raise AllocationError(f"expecting idle nodes of {cluster.name}, got none of its {len(names):,} hosts")
    if wanted:
        return _as_wanted(size, cluster, place, wanted, len(known))
    policy, closed = "apart" if spread else "bestfit", [name for name in names if name not in could]
    found = offer(size, cluster, policy=policy, closed=closed)
    if not found.nodes:
        return Selection((), (), 0, len(known), f"{len(known):,} nodes are idle, the job needs {size:,}")
    return _described(found.nodes, cluster, place, len(known))


def _as_wanted(size: int, cluster: Cluster, place: dict[str, int], wanted: Sequence[str], idle: int) -> Selection:
    strange = [name for name in wanted if name not in place]
    if strange or len(set(wanted)) != size:
        got = f"{strange[0]!r}" if strange else f"{len(set(wanted))} nodes"
        raise AllocationError(f"--nodelist: expecting {size} nodes of {cluster.name}, got {got}")
    return _described(tuple(wanted), cluster, place, idle, "your own list; ")


def _described(
    nodes: tuple[str, ...], cluster: Cluster, place: dict[str, int], idle: int, before: str = ""
) -> Selection:
    numbers = np.array([place[name] for name in nodes])
    shared = set(sharing_nodes(numbers, cluster).tolist())
    sharing = tuple(name for name in nodes if place[name] in shared)
    leaves = len(np.unique(cluster.leaf[numbers]))
    where = f"{leaves} leaf switch{'es' * (leaves > 1)}"
    if leaves == 1:
        words = "no link above it is used"
    elif not sharing:
        words = "no two nodes share a link into their leaf switch"
    else:
        words = f"{len(sharing)} nodes share links into their leaf switches"
    return Selection(nodes, sharing, leaves, idle, f"{before}{where}; {words}")
