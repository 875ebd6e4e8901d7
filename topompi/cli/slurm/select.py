"""``topompi slurm select``: idle nodes for one job."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Annotated

import typer

from ...errors import SourceError
from ...inputs.files import open_inputs
from ...inputs.hostlist import expand
from ...inputs.slurm.nodes import node_states
from ...machine.jobs import AllocationError
from ...machine.slurm.live import cluster_now, nodes_now
from ...machine.slurm.selection import select as choose
from ...views.cluster import read_cluster
from ...views.picture.names import listed
from ..inputs import AsJson, ClusterName, Lfts, TopologyOptions, list_findings, reporting, require_source, topology
from ..quantities import HOSTS
from ..terminal import console
from .partitions import OR_SLURM

__all__ = ["select"]

POLICIES = ("apart", "bestfit")
ALONE = (
    "other jobs' links are not considered; for that use topompi jobs allocate -p disjoint --running FILE (or --slurm)"
)
_IDLE = "Idle nodes: a host list, or a file of sinfo or scontrol show nodes; else sinfo is asked."
_POLICY = "apart: no two nodes that share a link into their leaf switch, if possible; bestfit: the lowest subtree."


def select(
    size: Annotated[int, HOSTS("--nodes", "-N", help="Nodes that the job needs.")],
    source: Annotated[str | None, topology(OR_SLURM)] = None,
    lfts: Lfts = None,
    idle: Annotated[str | None, typer.Option("--idle", help=_IDLE)] = None,
    nodelist: Annotated[str | None, typer.Option("--nodelist", "-w", help="Your own nodes, which are kept.")] = None,
    policy: Annotated[str, typer.Option("--policy", "-p", help=_POLICY)] = POLICIES[0],
    *,
    cluster_name: ClusterName = None,
    how: TopologyOptions,
    as_json: AsJson = False,
) -> None:
    """Choose idle nodes for a job by the routes, for salloc, sbatch and srun: --nodelist=$(topompi slurm select -N 4).

    Links that other jobs use are not considered: topompi jobs allocate -p disjoint (--running FILE or --slurm) does so.
    Exit code 1 if there are too few idle nodes.
    """
    if policy not in POLICIES:
        raise AllocationError(f"--policy: expecting one of {', '.join(POLICIES)}, got {policy!r:.60}")
    require_source(source, lfts, how)
    with reporting(SourceError, "reading", partial=how.partial, how=how) as report:
        if source is None:
            machine = cluster_now(report, cluster_name)
        else:
            machine = read_cluster(source, None, lfts, report, how.rails)
        nodes = _idle_nodes(idle, cluster_name)
        wanted = expand(nodelist) if nodelist else ()
        found = choose(size, machine, nodes, spread=policy == "apart", wanted=wanted)
    if as_json:
        print(json.dumps(asdict(found)))
    else:
        if found.nodes:
            print(listed(found.nodes))
        console(to_error=True).print(f"{found.why}; {ALONE}" if found.nodes else found.why, soft_wrap=True)
    list_findings(report)
    if not found.nodes:
        raise typer.Exit(1)


def _idle_nodes(argument: str | None, cluster: str | None) -> tuple[str, ...]:
    if argument is None:
        return nodes_now(cluster)[0]
    if os.path.exists(argument) or "/" in argument:
        return node_states(open_inputs(argument, AllocationError, "states of nodes"), AllocationError, cluster)[0]
    return tuple(expand(argument))
