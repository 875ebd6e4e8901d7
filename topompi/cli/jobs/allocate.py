"""``topompi jobs allocate``: the choice of nodes for one job while other jobs run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ...errors import SourceError
from ...inputs.slurm.running import read_running
from ...machine.jobs import ALLOCATORS, AllocationError
from ...machine.jobs.now import Offer, offer
from ...views.cluster import read_cluster
from ...views.picture.names import listed
from ..inputs import (
    AsJson,
    ClusterName,
    Lfts,
    TopologyOptions,
    grouped,
    list_findings,
    reporting,
    require_source,
    topology,
)
from ..quantities import HOSTS, PER_HOST, RANKS
from ..terminal import console

__all__ = ["ClusterOrSlurm", "Count", "Live", "Slots", "allocate", "require_cluster"]

_OR_SLURM = "leaves=18x18x4 (nodes n0, n1, ...), or a topology source; with --slurm else scontrol's switches."
ClusterOrSlurm = Annotated[str | None, topology(_OR_SLURM)]
Count = Annotated[int | None, HOSTS("--nodes", help="Nodes of leaves=18x18.")]
Slots = Annotated[int | None, PER_HOST("--slots", help="Slots (CPUs) of each node, of which running jobs hold theirs.")]
Live = Annotated[bool, typer.Option("--slurm", help="Ask Slurm: squeue for the running jobs, sinfo for closed nodes.")]


@grouped
def allocate(
    size: Annotated[int, RANKS(help="Nodes that the job needs; slots with --share.", argument=True)],
    cluster: ClusterOrSlurm = None,
    nodes: Count = None,
    lfts: Lfts = None,
    *,
    running: Annotated[
        Path | None,
        typer.Option("--running", help="squeue (text, --json, --yaml), CSV (job,hosts), or lines JOB HOSTS."),
    ] = None,
    closed: Annotated[
        str | None,
        typer.Option(
            "--closed", help="Nodes that take no job: a host list, or a file of sinfo or scontrol show nodes."
        ),
    ] = None,
    policy: Annotated[str, typer.Option("--policy", "-p", help=f"One of {', '.join(ALLOCATORS)}.")] = "disjoint",
    slots: Slots = None,
    share: Annotated[bool, typer.Option("--share", help="Find SIZE slots; other jobs may share their nodes.")] = False,
    live: Live = False,
    cluster_name: ClusterName = None,
    how: TopologyOptions,
    as_json: AsJson = False,
) -> None:
    """Find the nodes that a policy gives a job beside the running jobs, and the reason.

    From squeue's output, all jobs that hold nodes are taken, also completing and suspended ones. From sinfo's output,
    all nodes that are not idle are closed. The exit code is 1 if the job has to wait.
    """
    require_cluster(cluster, live, how, lfts)
    with reporting(SourceError, "reading", partial=how.partial, how=how) as report:
        if cluster is None:
            from ...machine.slurm.live import cluster_now  # imported here, because few commands ask Slurm

            machine = cluster_now(report, cluster_name)
        else:
            machine = read_cluster(cluster, nodes, lfts, report, how.rails)
            machine = machine if cluster.startswith("leaves=") else replace(machine, name=cluster)
        machine = machine if slots is None else machine.with_slots(slots)
    notes: list[str] = []
    jobs = read_running(running, AllocationError, notes, cluster_name) if running is not None else []
    shut: tuple[str, ...] = ()
    if live:
        if running is not None or closed is not None:
            raise AllocationError("expecting --slurm, or --running and --closed, got both")
        from ...machine.slurm.live import nodes_now, running_now  # imported here, because few commands ask Slurm

        jobs, shut = running_now(notes, cluster_name), nodes_now(cluster_name)[1]
    if closed is not None:
        from ...inputs.slurm.nodes import read_closed  # imported here, because few commands read states of nodes

        shut = read_closed(closed, AllocationError, cluster_name)
    found = offer(size, machine, jobs, policy, shut, share)
    for note in (*notes, *found.notes):
        console(to_error=True).print(note, soft_wrap=True)
    print(json.dumps(_as_json(found))) if as_json else _show(found)
    list_findings(report)
    if not found.nodes:
        raise typer.Exit(1)


def _show(found: Offer) -> None:
    screen = console()
    if found.nodes:
        screen.print(listed(found.nodes))
    if found.slots:
        screen.print(f"slots: {_counted(found)}")
    if found.held_unused:
        screen.print(f"held unused: {listed(found.held_unused)}")
    screen.print(found.why)
    screen.print(f"routes: {found.routes}")


def require_cluster(cluster: str | None, live: bool, how: TopologyOptions, lfts: Path | None) -> None:
    """Raise an error unless a cluster is given, or Slurm is asked and no option for the reading of a source is given.

    :param cluster: value of ``--topology``.
    :param live: value of ``--slurm``.
    :param how: options for the reading of a source.
    :param lfts: value of ``--lfts``.
    """
    if cluster is None and not live:
        raise AllocationError("expecting --topology, or --slurm, got neither")
    require_source(cluster, lfts, how)


def _counted(found: Offer) -> str:
    """Return the found nodes and the number of slots on each in one text, for example ``n[0-1]*4,n2*1``."""
    from ...inputs.slurm.reports import cells  # imported here, because few offers have slots

    by_count: dict[int, list[str]] = {}
    for name, count in zip(found.nodes, found.slots, strict=True):
        by_count.setdefault(count, []).append(name)
    parts = [(part, count) for count, names in by_count.items() for part in cells(listed(names), ",")]
    return ",".join(f"{part}*{count}" for part, count in parts)


def _as_json(found: Offer) -> dict[str, object]:
    answer: dict[str, object] = {"policy": found.policy, "free": found.free, "largest_leaf": found.largest_leaf}
    if found.nodes:
        answer |= {"nodes": listed(found.nodes), "shares_with": list(found.shares_with)}
    if found.slots:
        answer["slots"] = dict(zip(found.nodes, found.slots, strict=True))
    if found.held_unused:
        answer["held_unused"] = listed(found.held_unused)
    return answer | {"why": found.why, "routes": found.routes}
