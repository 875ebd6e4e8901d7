"""``topompi export``: files that tell MPI libraries the positions of ranks, or their fastest algorithms by size."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ...errors import TopompiError
from ...inputs.hostlist import read_hosts
from ...inputs.writing import write_text
from ...mapping.placement import place
from ...topology import TopologyInterface, load_routes
from ...tuning.ompi_rules import write_ompi_rules
from ...tuning.record import TuneRecord
from ...views.coordinates import write_coordinates
from ..terminal import Limit

__all__ = ["ExportError", "app"]

app = typer.Typer(help="Files that MPI libraries read themselves.", no_args_is_help=True)


class ExportError(TopompiError, ValueError):
    """The requested file cannot be made."""


@app.command("mpich-coordinates")
def mpich_coordinates(
    source: Annotated[str, typer.Argument(help="A topology source, as for topompi topology show.")],
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write, or -.")],
    lfts: Annotated[Path | None, typer.Option("--lfts", help="Forwarding tables: file, directory or archive.")] = None,
    hosts: Annotated[str | None, typer.Option("--hosts", help="The job's hosts: a list or a file; else all.")] = None,
    ppn: Annotated[int, typer.Option("--ppn", help="Ranks on each host.", min=1)] = 1,
    placement: Annotated[str, typer.Option("--place", help="block, cyclic or random:SEED.")] = "block",
    limit: Limit = None,
) -> None:
    """Write the position of each rank of a job, for MPICH 4 and later: MPIR_CVAR_COORDINATES_FILE=FILE.

    Ranks have the order that the job will give them; check it with MPIR_CVAR_COORDINATES_DUMP=1. MPICH's topology-aware
    trees (for example MPIR_CVAR_BCAST_TREE_TYPE=topology_aware) use the file.
    """
    routes = load_routes(source, lfts)
    names = list(routes.fabric.hosts) if hosts is None else read_hosts(hosts)
    try:
        rank_hosts = place(ppn * len(names), names, placement)
    except ValueError as error:
        raise ExportError(str(error)) from error
    _write(output, write_coordinates(TopologyInterface.place(rank_hosts, routes, source=source)))


@app.command("ompi-rules")
def ompi_rules(
    records: Annotated[list[Path], typer.Argument(help="Files of topompi tune --record, see below.")],
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write, or -.")],
    limit: Limit = None,
) -> None:
    """Write rules for Open MPI that choose its own algorithm by size, from runs that each force one algorithm.

    \b One record with Open MPI's own decision, and one for each algorithm K of a collective:
      mpirun -n 64 python -m topompi tune alltoall -a native --record 0.json
      mpirun -n 64 --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_alltoall_algorithm K \\
             python -m topompi tune alltoall -a native --record K.json
    Then:
      topompi export ompi-rules *.json -o rules.conf
      mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename rules.conf ...

    An algorithm must be clearly faster than Open MPI's own decision to get a rule. Each run is a job of
    its own: if the machine was busier during one of them, the rules reflect that too.
    """  # noqa: D301 -- the command line's library wants the character \b before lines that it must not join
    _write(output, write_ompi_rules([TuneRecord.read(path) for path in records]))


def _write(output: str, text: str) -> None:
    if output == "-":
        sys.stdout.write(text)
    else:
        write_text(output, text)
