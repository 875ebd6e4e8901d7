"""The nodes of the jobs that run now, and the choice of nodes for one further job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..inputs.slurm.running import RunningJob
from .allocation import Job, find_allocator
from .cluster import Cluster
from .errors import AllocationError
from .isolation import check

__all__ = ["Offer", "held_nodes", "node_names", "offer"]

Nodes = NDArray[np.int64]


@dataclass(frozen=True)
class Offer:
    """The nodes that an allocator would give a job now, and the reason.

    :param policy: name of the allocator.
    :param free: number of free nodes.
    :param largest_leaf: number of free nodes of the leaf that has the most.
    :param why: reason for the choice, in words.
    :param nodes: names of the nodes that the job gets; empty if it has to wait.
    :param held_unused: names of the nodes that the job holds without using them, so that no other job gets them.
    :param shares_with: names of the running jobs with which it can share links.
    """

    policy: str
    free: int
    largest_leaf: int
    why: str
    nodes: tuple[str, ...] = ()
    held_unused: tuple[str, ...] = ()
    shares_with: tuple[str, ...] = ()


def offer(size: int, cluster: Cluster, running: Iterable[RunningJob] = (), policy: str = "disjoint") -> Offer:
    """Find the nodes for a further job beside the running ones, with the reason.

    :param size: number of nodes that the job needs.
    :param cluster: the machine.
    :param running: the running jobs, with their hosts.
    :param policy: name of an allocator that names nodes, or ``module:function``.
    :raises AllocationError: if the policy only counts nodes, a host is not in the cluster, or two jobs hold one host.
    """
    jobs, allocator = held_nodes(running, cluster), find_allocator(policy)
    if not allocator.names_nodes:
        raise AllocationError(f"allocate: expecting a policy that names nodes, got {policy}")
    state = allocator.state(cluster)
    for number, held in enumerate(jobs.values()):
        job = Job(number, len(held))
        state.start(job, allocator.adopt(job, held, cluster))
    placement = allocator.place(Job(len(jobs), size), state)
    free, leaf, pod = state.free, int(state.leaf_free.max()), int(state.pod_free.max())
    if placement is not None:
        return _found(policy, (free, leaf), cluster, placement.nodes, size, jobs)
    why = f"{free} nodes are free"
    if free >= size:
        why += f", up to {leaf} in a leaf and {pod} in a pod: none suit {policy}"
    return Offer(policy, free, leaf, why)


def _found(
    policy: str,
    free: tuple[int, int],
    cluster: Cluster,
    held: NDArray[np.integer],
    size: int,
    jobs: Mapping[str, Nodes],
) -> Offer:
    used, names = held[:size], node_names(cluster)
    shared = check({**dict(enumerate(jobs.values())), len(jobs): used}, cluster.links)
    partners = tuple(list(jobs)[a] for a, b in shared.pairs if b == len(jobs))
    leaves, pods = len(np.unique(cluster.leaf[used])), len(np.unique(cluster.pod[used]))
    why = f"{leaves} lea{'ves' if leaves > 1 else 'f'} in {pods} pod{'s' if pods > 1 else ''}; "
    why += f"can share links with {', '.join(partners)}" if partners else "shares no link with a running job"
    first, rest = (tuple(names[node] for node in some.tolist()) for some in (used, held[size:]))
    return Offer(policy, *free, why, first, rest, partners)


def node_names(cluster: Cluster) -> tuple[str, ...]:
    """Return the names of the nodes: the cluster's host names, else n0, n1, ..."""
    return cluster.hosts or tuple(f"n{node}" for node in range(cluster.num_nodes))


def held_nodes(running: Iterable[RunningJob], cluster: Cluster) -> dict[str, Nodes]:
    """Return the numbers of the nodes of each running job, by its name.

    :param running: the running jobs, with the names of their hosts.
    :param cluster: the machine that they run on.
    :raises AllocationError: if a job has a host that is not in the cluster; the message names the job.
    """
    place = {name: node for node, name in enumerate(node_names(cluster))}
    jobs: dict[str, Nodes] = {}
    for job in running:
        strange = [host for host in job.hosts if host not in place]
        if strange:
            raise AllocationError(f"{job.place}: job {job.name}: expecting hosts of {cluster.name}, got {strange[0]!r}")
        jobs[job.name] = np.array([place[host] for host in job.hosts], dtype=np.int64)
    return jobs
