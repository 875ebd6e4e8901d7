"""``topompi slurm place``: a job's tasks on the nodes of its allocation, as a file for srun or mpirun."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...inputs.writing import write_text
from ...machine.slurm.placement import PlacementError, fitting_graph, nodes_of_job, tasks_of_job
from ...machine.slurm.placement import place as placed_on
from ...mapping.rankfiles import write_mapping
from ...mapping.search import Search
from ...topology.sources.automatic import AUTO
from ..inputs import AsJson, Lfts, TopologyOptions, grouped, list_findings, reporting, require_source, topology
from ..map.app import Algorithm, GivenGraph, Seed
from ..terminal import Limit, console

__all__ = ["place"]

_TOPOLOGY = "A topology source; else the service, SLURM_TOPOLOGY_ADDR or scontrol, whichever answers first."
_HOSTS = "The job's nodes: a list or file; else $SLURM_JOB_NODELIST."
FORMATS = ("slurm", "rankfile5", "hydra")
_FORMAT = "slurm (SLURM_HOSTFILE), rankfile5 (Open MPI's mpirun) or hydra (MPICH's mpiexec)."
_SLOTS = "Slots of each node: 16, or 16,16,8, or 16(x2),8; else $SLURM_TASKS_PER_NODE."


@dataclass(frozen=True)
class Where:
    """Options that define a job's nodes and their topology; None if an option is not given.

    :param topology: topology source; None for ``auto``.
    :param lfts: path of the forwarding tables of the source.
    :param hosts: a host list, or the path of a file of hosts.
    :param slots: number of slots of each host, see `topompi.inputs.slurm.environment.parse_slots`.
    """

    topology: Annotated[str | None, topology(_TOPOLOGY)] = None
    lfts: Lfts = None
    hosts: Annotated[str | None, typer.Option("--hosts", help=_HOSTS)] = None
    slots: Annotated[str | None, typer.Option("--slots", help=_SLOTS)] = None

    @property
    def found(self) -> bool:
        """Whether the topology is sought as the source ``auto`` does."""
        return self.topology in (None, "", AUTO)


@grouped
def place(
    *,
    given: GivenGraph,
    where: Where,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file; else standard output.")] = None,
    form: Annotated[str, typer.Option("--format", help=_FORMAT)] = "slurm",
    how: TopologyOptions,
    algorithm: Algorithm = "best",
    seed: Seed = 0,
    as_json: AsJson = False,
    limit: Limit = None,
) -> None:
    """Place a job's tasks on its nodes by the bytes that they exchange, within an allocation of Slurm.

    SLURM_HOSTFILE=F srun -m arbitrary ./app puts every task where the file F says. The graph may have any form that
    topompi map reads. Without a graph, or with one that has another number of ranks, all pairs weigh the same: the
    given order stays, with a warning.

    The tasks are those of -n, else of $SLURM_NTASKS, else the graph's ranks, else one for each slot.
    """
    search = Search(algorithm, seed=seed)
    search.check()
    if form not in FORMATS:
        raise PlacementError(f"--format: expecting one of {', '.join(FORMATS)}, got {form!r:.60}")
    require_source(None if where.found else where.topology, where.lfts, how)
    notes: list[str] = []
    with reporting(PlacementError, partial=how.partial, how=how) as report:
        wanted = given.ranks or tasks_of_job(os.environ, where.hosts)
        columns = given.columns.split(",") if given.columns else ()
        graph, why = fitting_graph(given.graph, wanted, given.ranks, columns, notes)
        ranks = wanted or (graph.size if graph is not None else None)
        nodes = nodes_of_job(os.environ, ranks, where.hosts, where.slots)
        routes = None if where.found else how.read(where.topology or "", where.lfts, report)
        tasks, source = ranks or sum(nodes.slots), where.topology or ""
        found = placed_on(tasks, nodes, graph, search, report, environment=os.environ, routes=routes, source=source)
        text = write_mapping(found.mapping, form)
        if output is not None:
            write_text(output, text)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if why:
        print(f"topompi: {why}; all pairs of tasks weigh the same: the given order stays", file=sys.stderr)
    list_findings(report)
    if as_json:
        print(json.dumps({**found.told(), "warning": why}))
        return
    if output is None:
        print(text, end="")
    console(to_error=True).print(found.words(), soft_wrap=True)
