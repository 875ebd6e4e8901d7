"""The nodes of the jobs that hold nodes now, and the choice of nodes for one further job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...inputs.hostlist import HostNames
from ...inputs.slurm.running import RunningJob
from .allocation import Job, Occupancy, Placement, SlotOccupancy, find_allocator, within_parts
from .allocation.occupancy import NOTHING
from .cluster import Cluster
from .errors import AllocationError
from .isolation import Conflicts, check

__all__ = ["Offer", "held_nodes", "node_names", "offer", "remarks", "shared_links"]

Nodes = NDArray[np.int64]


@dataclass(frozen=True)
class Offer:
    """The nodes that an allocator would give a job now, and the reason.

    :param policy: name of the allocator.
    :param free: number of free nodes.
    :param largest_leaf: number of free nodes of the leaf that has the most.
    :param why: reason for the choice, in words.
    :param nodes: names of the nodes that the job gets; empty if it has to wait.
    :param slots: number of slots that it gets on each of these nodes; empty if it gets whole nodes.
    :param held_unused: names of the nodes that the job holds without using them, so that no other job gets them.
    :param shares_with: names of the running jobs with which it can share links.
    :param routes: origin of the routes on which this rests, in words.
    :param notes: a line per node that several running jobs share, and per running job outside of the cluster.
    """

    policy: str
    free: int
    largest_leaf: int
    why: str
    nodes: tuple[str, ...] = ()
    slots: tuple[int, ...] = ()
    held_unused: tuple[str, ...] = ()
    shares_with: tuple[str, ...] = ()
    routes: str = ""
    notes: tuple[str, ...] = ()


def offer(
    size: int,
    cluster: Cluster,
    running: Iterable[RunningJob] = (),
    policy: str = "disjoint",
    closed: Sequence[str] = (),
    share: bool = False,
) -> Offer:
    """Find the nodes, or slots of nodes, for a further job beside the running ones, with the reason.

    Running jobs may share nodes. A closed node is not offered. A node of a running job is offered only if the policy
    gives slots and it is known how many slots the running job holds there.

    :param size: number of nodes that the job needs; if ``share`` is set, number of slots.
    :param cluster: the machine.
    :param running: the running jobs, with their hosts.
    :param policy: name of an allocator that names nodes, or ``module:function``.
    :param closed: names of nodes that take no job, for example drained ones; hosts of other clusters are ignored.
    :param share: whether the job asks for slots, and other jobs may use further slots of its nodes.
    :raises AllocationError: if the policy only counts nodes; if ``share`` is set and the policy gives no slots; if a
        job has hosts inside and outside of the cluster, or no job has hosts in it; or if no closed host is in it.
    """
    running = list(running)
    jobs, allocator = held_nodes(running, cluster), within_parts(find_allocator(policy), cluster)
    if not allocator.names_nodes:
        raise AllocationError(f"allocate: expecting a policy that names nodes, got {policy}")
    if share and "slots" not in allocator.heeds:
        raise AllocationError(f"allocate: expecting a policy that gives slots, such as shared, got {policy}")
    state = allocator.state(cluster)
    counts = {job.name: job.slots for job in running}
    for number, (name, held) in enumerate(jobs.items()):
        entries, slots = _entries(held, counts[name], state)
        if len(entries):
            job = Job(number, len(entries))
            state.start(job, allocator.adopt(job, entries, cluster, slots))
    state.close(_numbers_of(closed, cluster))
    placement = allocator.place(Job(len(jobs), size, asks={"slots": size, "shared": True} if share else NOTHING), state)
    free, leaf, pod = state.free, int(state.leaf_free.max()), int(state.pod_free.max())
    notes = tuple(remarks(running, node_names(cluster), cluster.name, cluster.node_slots))
    if placement is not None:
        found = _found(policy, (free, leaf), cluster, placement, size, jobs)
        return replace(found, notes=notes, routes=cluster.links.engine)
    room, most = int(state.room.sum()) if share and isinstance(state, SlotOccupancy) else 0, free
    why = f"{room} slots on {free} nodes are free" if share else f"{free} nodes are free"
    if cluster.part is not None:
        most = int(np.bincount(cluster.part[state.busy == 0], minlength=1).max())
        why += f", at most {most} of them in one of {cluster.part.max() + 1} parts that no links join"
    if most >= size and not share:
        why += f", up to {leaf} in a leaf and {pod} in a pod: none suit {policy}; wait, or take -p bestfit"
    return Offer(policy, free, leaf, why, notes=notes, routes=cluster.links.engine)


def _entries(held: Nodes, counts: Sequence[int], state: Occupancy) -> tuple[Nodes, Nodes | None]:
    """Return the nodes that a running job takes in a state, and its slot at each entry; None for whole nodes.

    If the state counts no slots, a node that several jobs share belongs to the first of them. If the state counts
    slots, a job takes its number of slots of each node, or all free slots if its number is unknown or larger.

    :param held: numbers of the job's nodes.
    :param counts: number of the job's slots on each of these nodes; empty if unknown.
    :param state: the state with the running jobs before this one.
    """
    if not isinstance(state, SlotOccupancy) or (not len(counts) and not state.busy[held].any()):
        return held[state.busy[held] == 0], None
    counts = counts or state.cluster.slots[held].tolist()
    pairs = zip(held, counts, strict=True)
    taken = [state.take_slots(np.array([node]), min(count, int(state.room[node]))) for node, count in pairs]
    slots = [placement.slots for placement in taken if placement.slots is not None]
    return np.concatenate([placement.nodes for placement in taken]), np.concatenate(slots)


def _found(
    policy: str,
    free: tuple[int, int],
    cluster: Cluster,
    placement: Placement,
    size: int,
    jobs: Mapping[str, Nodes],
) -> Offer:
    held, names, slots = placement.nodes, node_names(cluster), tuple[int, ...]()
    used = held[:size]
    if placement.slots is not None:
        used, each = np.unique(held, return_counts=True)
        held, slots = used, tuple(each.tolist())
    shared = shared_links([*jobs.values(), used], cluster)
    partners = tuple(list(jobs)[a] for a, b in shared.pairs if b == len(jobs))
    leaves, pods = len(np.unique(cluster.leaf[used])), len(np.unique(cluster.pod[used]))
    why = f"{leaves} lea{'ves' if leaves > 1 else 'f'} in {pods} pod{'s' if pods > 1 else ''}; "
    why += f"can share links with {', '.join(partners)}" if partners else "shares no link with a running job"
    if cluster.part is not None:
        why += f"; in one of {cluster.part.max() + 1} parts that no links join"
    first, rest = (tuple(names[node] for node in some.tolist()) for some in (used, held[len(used) :]))
    return Offer(policy, *free, why, first, slots, rest, partners)


def node_names(cluster: Cluster) -> tuple[str, ...]:
    """Return the names of the nodes: the cluster's host names, else n0, n1, ..."""
    return cluster.hosts or tuple(f"n{node}" for node in range(cluster.num_nodes))


def shared_links(jobs: Sequence[NDArray[np.integer]], cluster: Cluster) -> Conflicts:
    """Find the links that each pair of jobs shares; the jobs may share nodes.

    :param jobs: one array per job with the numbers of its nodes; the result numbers jobs by their positions here.
    :param cluster: the machine that they run on.
    """
    slots = {number: np.full(len(nodes), number) for number, nodes in enumerate(jobs)}
    return check(dict(enumerate(jobs)), cluster.links, slots)


def held_nodes(running: Iterable[RunningJob], cluster: Cluster) -> dict[str, Nodes]:
    """Return the numbers of the nodes of each running job, by its name.

    A job without hosts in the cluster is left out of the result if at least one job has hosts in the cluster.

    :param running: the running jobs, with the names of their hosts.
    :param cluster: the machine that they run on.
    :raises AllocationError: if a job has hosts inside and outside of the cluster, or no job has hosts in it; the
        message names the job.
    """
    known = HostNames(node_names(cluster))
    jobs: dict[str, Nodes] = {}
    outside: list[str] = []
    for job in running:
        nodes = [known.find(host) for host in job.hosts]
        strange = [host for host, node in zip(job.hosts, nodes, strict=True) if node < 0]
        wrong = f"{job.place}: job {job.name}: expecting hosts of {cluster.name}, got {next(iter(strange), '')!r}"
        if strange and len(strange) < len(job.hosts):
            raise AllocationError(wrong)
        if strange:
            outside.append(wrong)
        else:
            jobs[job.name] = np.array(nodes, dtype=np.int64)
    if outside and not jobs:
        raise AllocationError(outside[0])
    return jobs


def remarks(
    running: Iterable[RunningJob], hosts: Sequence[str], name: str, slots: NDArray[np.integer] | None = None
) -> list[str]:
    """Return a line per host that several running jobs share, and per running job without any of the hosts.

    :param running: the running jobs, with the names of their hosts.
    :param hosts: names of the machine's hosts.
    :param name: name of the machine.
    :param slots: number of slots of each host, for lines with the number of held slots; None to leave that number out.
    """
    known, found = HostNames(hosts), list[str]()
    users: dict[int, list[tuple[str, int]]] = {}  # name and slots of the jobs on each host; 0 slots if unknown
    for job in running:
        numbers = list(map(known.find, job.hosts))
        if max(numbers, default=-1) < 0:
            found.append(f"job {job.name} runs on hosts outside of {name}, from {job.hosts[0]} on")
        for number, held in zip(numbers, job.slots or [0] * len(numbers), strict=True):
            if number >= 0:
                users.setdefault(number, []).append((job.name, held))
    shared = [(number, jobs) for number, jobs in users.items() if len(jobs) > 1]
    room = dict(enumerate([] if slots is None else slots.tolist()))
    return found + [_shared_node(hosts[number], jobs, room.get(number)) for number, jobs in shared]


def _shared_node(host: str, jobs: Sequence[tuple[str, int]], slots: int | None) -> str:
    """Return a line that names the jobs on a node and, if all numbers are known, how many of its slots they hold."""
    names, held = [name for name, _ in jobs], [count for _, count in jobs]
    said = f"jobs {', '.join(names[:-1])} and {names[-1]} share node {host}"
    return said if slots is None or not all(held) else f"{said}: {sum(held)} of {slots} slots"


def _numbers_of(closed: Sequence[str], cluster: Cluster) -> Nodes:
    known = HostNames(node_names(cluster))
    inside = [node for node in map(known.find, closed) if node >= 0]
    if closed and not inside:
        raise AllocationError(f"closed nodes: expecting hosts of {cluster.name}, got {closed[0]!r}")
    return np.array(inside, dtype=np.int64)
