"""Nodes of jobs that run side by side: fragmented, random, by an allocator, or given (Jokanovic 2014, section 3.1).

Nodes are those of a cluster, in the order of its leaves; ``views.cluster.node_hosts`` gives their host numbers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ...inputs.hostlist import compress
from ...inputs.slurm.running import read_running
from ...netsim import Program
from ..jobs import Cluster, find_allocator
from ..jobs.allocation import Job, within_parts
from ..jobs.now import held_nodes, node_names
from .errors import InterferenceError

__all__ = [
    "PLACEMENTS",
    "allocated",
    "at_random",
    "draws_of",
    "fragmented",
    "from_file",
    "host_list",
    "mapping",
    "nodes_of",
    "place",
]

Nodes = NDArray[np.int64]
PLACEMENTS = "NF, F8, F4, ..., RF:SEED, an allocator of topompi jobs, or a file of jobs and their nodes"
_FRAGMENTED = re.compile(r"F([1-9][0-9]{0,6})")
_RANDOM = re.compile(r"RF:([0-9]{1,18})")


def fragmented(cluster: Cluster, sizes: Mapping[str, int], each: int | None = None) -> dict[str, Nodes]:
    """Place jobs on ``each`` nodes of each leaf (placement Fn), so that several jobs share a leaf.

    Jobs are placed in order. A job takes leaves in order, of each the next free nodes, and fewer than ``each`` only of
    its last leaf; leaves with fewer free nodes are passed over.

    :param cluster: the machine.
    :param sizes: number of nodes of each job, by name.
    :param each: nodes of each leaf; None for all nodes of a leaf (placement NF), so that no two jobs share one.
    :raises InterferenceError: if a job does not fit.
    """
    room, first = np.diff(cluster.leaf_start).astype(np.int64), cluster.leaf_start[:-1].astype(np.int64)
    whole, found = room.copy(), dict[str, Nodes]()
    for name, size in sizes.items():
        parts, left = list[Nodes](), size
        for leaf in range(cluster.num_leaves):
            wanted = int(whole[leaf]) if each is None else each
            if left and room[leaf] >= min(left, wanted) and (each is not None or room[leaf] == whole[leaf]):
                taken = min(left, wanted)
                parts.append(np.arange(first[leaf], first[leaf] + taken))
                first[leaf] += taken
                room[leaf] -= taken
                left -= taken
        if left:
            form = "NF" if each is None else f"F{each}"
            raise InterferenceError(f"{name}: expecting at most {size - left} nodes in placement {form}, got {size}")
        found[name] = np.concatenate(parts)
    return found


def at_random(cluster: Cluster, sizes: Mapping[str, int], seed: int) -> dict[str, Nodes]:
    """Place jobs on random nodes of the whole cluster (placement RF); each job has its ranks in the order of the nodes.

    :param cluster: the machine.
    :param sizes: number of nodes of each job, by name.
    :param seed: seed of the draw.
    :raises InterferenceError: if the jobs need more nodes than there are.
    """
    total = sum(sizes.values())
    if total > cluster.num_nodes:
        raise InterferenceError(f"{cluster.name}: expecting jobs of {cluster.num_nodes} nodes together, got {total}")
    drawn = np.random.default_rng(seed).permutation(cluster.num_nodes)[:total]
    parts = np.split(drawn, np.cumsum(list(sizes.values()))[:-1])
    return {name: np.sort(part) for name, part in zip(sizes, parts, strict=True)}


def allocated(cluster: Cluster, sizes: Mapping[str, int], policy: str) -> dict[str, Nodes]:
    """Place jobs one after the other by an allocator, on an empty cluster.

    :param cluster: the machine.
    :param sizes: number of nodes of each job, by name.
    :param policy: name of an allocator.
    :raises InterferenceError: if a job would have to wait, or the allocator names no nodes.
    """
    allocator = within_parts(find_allocator(policy), cluster)
    if not allocator.names_nodes:
        raise InterferenceError(f"expecting an allocator that names nodes, got {policy}")
    state, found = allocator.state(cluster), dict[str, Nodes]()
    for number, (name, size) in enumerate(sizes.items()):
        job = Job(number, size)
        placement = allocator.place(job, state)
        if placement is None:
            raise InterferenceError(
                f"{name}: expecting a job that {policy} can place beside the others, got {size} nodes"
            )
        state.start(job, placement)
        found[name] = placement.used(size).astype(np.int64)
    return found


def from_file(
    cluster: Cluster, sizes: Mapping[str, int], path: str | os.PathLike[str], name: str | None = None
) -> dict[str, Nodes]:
    """Place jobs on the nodes that a file gives each of them, in its order.

    :param cluster: the machine.
    :param sizes: number of nodes of each job, by name.
    :param path: file of jobs and hosts, in a form of `read_running`, for example lines ``JOB HOSTS``.
    :param name: name of the cluster whose jobs are taken from an output of Slurm; None if it must be of one cluster.
    :raises InterferenceError: if a job is missing, or has another number of nodes.
    """
    jobs = read_running(path, InterferenceError, cluster=name)
    held = held_nodes([job for job in jobs if job.name in sizes], cluster)
    for name, size in sizes.items():
        if name not in held:
            raise InterferenceError(
                f"{path}: expecting the nodes of job {name}, got those of {', '.join(held) or 'none'}"
            )
        if len(held[name]) != size:
            raise InterferenceError(f"{path}: {name}: expecting {size} nodes, got {len(held[name])}")
    return {name: held[name] for name in sizes}


def place(cluster: Cluster, sizes: Mapping[str, int], placement: str, name: str | None = None) -> dict[str, Nodes]:
    """Place jobs as a text says: ``NF``, ``F8``, ``RF:SEED``, the name of an allocator, or a file.

    :param cluster: the machine.
    :param sizes: number of nodes of each job, by name.
    :param placement: the text.
    :param name: name of the cluster whose jobs are taken from a file; None if it must be of one cluster.
    :raises InterferenceError: if the text has another form, or the jobs do not fit.
    """
    if placement == "NF":
        return fragmented(cluster, sizes)
    if match := _FRAGMENTED.fullmatch(placement):
        return fragmented(cluster, sizes, int(match[1]))
    if match := _RANDOM.fullmatch(placement):
        return at_random(cluster, sizes, int(match[1]))
    if os.path.exists(placement):
        return from_file(cluster, sizes, placement, name)
    if not placement or os.sep in placement or placement.startswith(("F", "RF")):
        raise InterferenceError(f"placement: expecting {PLACEMENTS}, got {placement!r}")
    return allocated(cluster, sizes, placement)


def host_list(cluster: Cluster, nodes: Nodes) -> str:
    """The names of nodes in their order, as Slurm writes them: ``h[0004,0000-0002]``."""
    names = node_names(cluster)
    return compress([names[node] for node in nodes.tolist()])


def draws_of(placement: str, draws: int) -> list[str]:
    """The placements of several draws: of ``RF:SEED`` with following seeds; of any other, itself.

    :param placement: text of a placement.
    :param draws: number of draws.
    """
    match = _RANDOM.fullmatch(placement)
    return [f"RF:{int(match[1]) + draw}" for draw in range(draws)] if match else [placement]


def nodes_of(program: Program) -> Nodes:
    """The nodes of a placed program in the order of its ranks, each once."""
    return np.array(list(dict.fromkeys(program.hosts.tolist())), dtype=np.int64)


def mapping(nodes: Sequence[int] | Nodes, ranks: int) -> Nodes:
    """The node of each rank (Dimemas' mapping vector), shape (ranks,): equal numbers of consecutive ranks per node.

    :param nodes: nodes of the job.
    :param ranks: number of ranks, a multiple of the number of nodes.
    :raises InterferenceError: if it is not a multiple.
    """
    if not len(nodes) or ranks % len(nodes):
        raise InterferenceError(f"expecting a multiple of {len(nodes)} nodes as ranks, got {ranks}")
    return np.repeat(np.asarray(nodes, dtype=np.int64), ranks // len(nodes))
