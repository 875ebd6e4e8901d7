"""``topompi jobs allocate``: nodes for one job beside the running ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import SourceError
from ...inputs.slurm.running import read_running
from ...jobs import ALLOCATORS, AllocationError
from ...jobs.now import Offer, offer
from ...views.cluster import read_cluster
from ...views.picture.names import listed
from ..inputs import AsJson, Partial, list_findings, reporting
from ..terminal import console

__all__ = ["ClusterSpec", "Count", "Lfts", "allocate"]

ClusterSpec = Annotated[
    str, typer.Option("--cluster", help="leaves=18x18x4 (nodes n0, n1, ...), or a topology source.")
]
Lfts = Annotated[Path | None, typer.Option("--lfts", help="Forwarding tables of the topology source.")]
Count = Annotated[int | None, typer.Option("--nodes", help="Nodes of leaves=18x18.", min=1)]


def allocate(
    size: Annotated[int, typer.Argument(help="Nodes that the job needs.", min=1)],
    cluster: ClusterSpec,
    nodes: Count = None,
    lfts: Lfts = None,
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
    partial: Partial = False,
    as_json: AsJson = False,
) -> None:
    """Find the nodes that a policy gives a job beside the running jobs, and the reason.

    Of squeue's jobs those count that hold nodes, also completing and suspended ones; of sinfo's nodes, idle ones are
    open. Exit code 1 if the job has to wait.
    """
    with reporting(SourceError, f"reading {cluster}", partial=partial) as report:
        machine = read_cluster(cluster, nodes, lfts, report)
    notes: list[str] = []
    jobs = read_running(running, AllocationError, notes) if running is not None else []
    shut: tuple[str, ...] = ()
    if closed is not None:
        from ...inputs.slurm.nodes import read_closed  # imported here, because few commands read states of nodes

        shut = read_closed(closed, AllocationError)
    found = offer(size, machine, jobs, policy, shut)
    for note in (*notes, *found.notes):
        console(to_error=True).print(note, soft_wrap=True)
    if as_json:
        print(json.dumps(_as_json(found)))
    else:
        screen = console()
        if found.nodes:
            screen.print(listed(found.nodes))
        if found.held_unused:
            screen.print(f"held unused: {listed(found.held_unused)}")
        screen.print(found.why)
    list_findings(report)
    if not found.nodes:
        raise typer.Exit(1)


def _as_json(found: Offer) -> dict[str, Any]:
    answer: dict[str, Any] = {"policy": found.policy, "free": found.free, "largest_leaf": found.largest_leaf}
    if found.nodes:
        answer |= {"nodes": listed(found.nodes), "why": found.why, "shares_with": list(found.shares_with)}
    if found.held_unused:
        answer["held_unused"] = listed(found.held_unused)
    return answer | {"why": found.why}
