"""``topompi jobs allocate`` and ``check``: what runs on a cluster now."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from ...inputs.slurm.running import RunningJob, read_running
from ...jobs import ALLOCATORS, AllocationError, Cluster, Conflicts, check, find_allocator
from ...jobs.allocation import Job
from ...views.picture.names import listed
from ..terminal import console
from .cluster import machine_of

__all__ = ["allocate", "check_command", "held_nodes"]

Nodes = NDArray[np.int64]
Running = Annotated[Path, typer.Argument(help="squeue --json, CSV (job,hosts), or lines JOB HOSTS.")]
ClusterSpec = Annotated[
    str, typer.Option("--cluster", help="leaves=18x18x4 (nodes n0, n1, ...), or a topology source.")
]
Lfts = Annotated[Path | None, typer.Option("--lfts", help="Forwarding tables of the topology source.")]
Count = Annotated[int | None, typer.Option("--nodes", help="Nodes of leaves=18x18.", min=1)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
NEW = "the new job"


def allocate(
    size: Annotated[int, typer.Argument(help="Nodes that the job needs.", min=1)],
    cluster: ClusterSpec,
    nodes: Count = None,
    lfts: Lfts = None,
    running: Annotated[
        Path | None, typer.Option("--running", help="squeue --json, CSV (job,hosts), or lines JOB HOSTS; else none.")
    ] = None,
    policy: Annotated[str, typer.Option("--policy", "-p", help=f"One of {', '.join(ALLOCATORS)}.")] = "disjoint",
    as_json: AsJson = False,
) -> None:
    """Which nodes a job gets by a policy, given what runs now, and why; exit code 1 where it has to wait."""
    machine = machine_of(cluster, nodes, lfts)
    jobs = held_nodes(read_running(running, AllocationError), machine) if running is not None else {}
    allocator = find_allocator(policy)
    if policy == "counts":
        raise AllocationError("allocate: expecting a policy that names nodes, got counts")
    state = allocator.state(machine)
    for number, held in enumerate(jobs.values()):
        job = Job(number, len(held))
        state.start(job, allocator.adopt(job, held, machine))
    placement = allocator.place(Job(len(jobs), size), state)
    answer: dict[str, Any] = {"policy": policy, "free": state.free, "largest_leaf": int(state.leaf_free.max())}
    if placement is not None:
        answer |= _described(machine, placement.nodes, size, jobs)
    elif state.free < size:
        answer["why"] = f"{state.free} nodes are free"
    else:
        most = int(state.leaf_free.max()), int(state.pod_free.max())
        answer["why"] = (
            f"{state.free} nodes are free, up to {most[0]} in a leaf and {most[1]} in a pod: none suit {policy}"
        )
    _print_answer(answer, as_json)
    if placement is None:
        raise typer.Exit(1)


def check_command(
    running: Running, cluster: ClusterSpec, nodes: Count = None, lfts: Lfts = None, as_json: AsJson = False
) -> None:
    """Which running jobs can share directed links between switches; exit code 1 where some do."""
    machine = machine_of(cluster, nodes, lfts)
    jobs = held_nodes(read_running(running, AllocationError), machine)
    names = list(jobs)
    found = check(dict(enumerate(jobs.values())), machine.links)
    pairs = [(names[a], names[b], len(links)) for (a, b), links in found.pairs.items()]
    if as_json:
        print(json.dumps({"jobs": len(jobs), "links": found.num_links, "pairs": pairs}))
    else:
        screen = console()
        for one, other, links in pairs:
            screen.print(f"{one} and {other} share {links} link{'s' if links > 1 else ''}")
        screen.print(f"{len(jobs)} jobs, {len(pairs)} pairs share {found.num_links} links")
    if pairs:
        raise typer.Exit(1)


def _described(cluster: Cluster, held: NDArray[np.integer], size: int, jobs: Mapping[str, Nodes]) -> dict[str, Any]:
    used = held[:size]
    shared: Conflicts = check({**dict(enumerate(jobs.values())), len(jobs): used}, cluster.links)
    with_new = [list(jobs)[a] for a, b in shared.pairs if b == len(jobs)]
    leaves, pods = len(np.unique(cluster.leaf[used])), len(np.unique(cluster.pod[used]))
    why = f"{leaves} lea{'ves' if leaves > 1 else 'f'} in {pods} pod{'s' if pods > 1 else ''}; "
    why += f"can share links with {', '.join(with_new)}" if with_new else "shares no link with a running job"
    names = node_names(cluster)
    found = {"nodes": listed([names[node] for node in used.tolist()]), "why": why, "shares_with": with_new}
    if len(held) > size:
        found["held_unused"] = listed([names[node] for node in held[size:].tolist()])
    return found


def _print_answer(answer: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(answer))
        return
    screen = console()
    if "nodes" in answer:
        screen.print(answer["nodes"])
    if "held_unused" in answer:
        screen.print(f"held unused: {answer['held_unused']}")
    screen.print(answer["why"])


def node_names(cluster: Cluster) -> tuple[str, ...]:
    """Names of the nodes: the source's, or n0, n1, ..."""
    return cluster.hosts or tuple(f"n{node}" for node in range(cluster.num_nodes))


def held_nodes(running: Iterable[RunningJob], cluster: Cluster) -> dict[str, Nodes]:
    """Name of each running job -> numbers of its nodes.

    :param running: the jobs and the names of their hosts.
    :param cluster: the machine that they run on.
    :raises AllocationError: with the job, for a host that the cluster does not have.
    """
    place = {name: node for node, name in enumerate(node_names(cluster))}
    jobs: dict[str, Nodes] = {}
    for job in running:
        strange = [host for host in job.hosts if host not in place]
        if strange:
            raise AllocationError(f"{job.place}: job {job.name}: expecting hosts of {cluster.name}, got {strange[0]!r}")
        jobs[job.name] = np.array([place[host] for host in job.hosts], dtype=np.int64)
    return jobs
