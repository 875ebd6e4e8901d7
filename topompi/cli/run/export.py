"""``topompi export``: files that tell MPI libraries the positions of ranks, or their fastest algorithms by size."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ...inputs.hostlist import read_hosts
from ...inputs.writing import write_text
from ...mapping.placement import place
from ...topology import TopologyInterface, load_routes
from ...tuning.ompi_rules import of_records, write_classic, write_json
from ...tuning.record import TuneRecord
from ...views.coordinates import write_coordinates
from ..hosts import HOSTS_HELP, Placement, find_hosts
from ..inputs import Adapters, NameRule, Names, Rails, job_view, list_findings, reporting
from ..quantities import PER_HOST
from ..terminal import Limit
from .choicefiles import ChoiceFiles, ExportError, choice_files

__all__ = ["ExportError", "app"]

app = typer.Typer(help="Files that MPI libraries read themselves.", no_args_is_help=True)

# Options of several commands.
Tables = Annotated[Path | None, typer.Option("--lfts", help="Forwarding tables: file, directory or archive.")]
Hosts = Annotated[str | None, typer.Option("--hosts", help=HOSTS_HELP)]
RanksOfHost = Annotated[int, PER_HOST("--ppn", help="Ranks on each host.")]


@app.command("mpich-coordinates")
def mpich_coordinates(
    source: Annotated[str, typer.Argument(help="A topology source, as for topompi topology show.")],
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write, or -.")],
    lfts: Tables = None,
    hosts: Annotated[str | None, typer.Option("--hosts", help="The job's hosts: a list or a file; else all.")] = None,
    ppn: RanksOfHost = 1,
    placement: Placement = "block",
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
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write, or -.")],
    records: Annotated[list[Path] | None, typer.Argument(help="Files of topompi tune --record, see below.")] = None,
    topology: Annotated[str | None, typer.Option("--topology", help="A topology source, in place of records.")] = None,
    lfts: Tables = None,
    hosts: Hosts = None,
    ppn: RanksOfHost = 1,
    placement: Placement = "block",
    form: Annotated[str, typer.Option("--format", help="classic (Open MPI 4 and 5) or json (from 6).")] = "classic",
    rails: Rails = None,
    names: Names = None,
    rule: NameRule = None,
    limit: Limit = None,
) -> None:
    """Write rules for Open MPI that choose its own algorithm by size: by the cost model, or from measurements.

    \b By the cost model, for a job's hosts and ranks, without a run:
      topompi export ompi-rules --topology SOURCE --hosts JOB --ppn 2 -o rules.conf
    From measurements, one record with Open MPI's own decision, and one for each algorithm K of a collective:
      mpirun -n 64 python -m topompi tune alltoall -a native --record 0.json
      mpirun -n 64 --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_alltoall_algorithm K \\
             python -m topompi tune alltoall -a native --record K.json
      topompi export ompi-rules *.json -o rules.conf
    Then:
      mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename rules.conf ...

    By the cost model, an algorithm gets a rule if it is predicted to be at least 1.1 times as fast as what Open MPI's
    component coll/tuned would choose. If hosts have several ranks, Open MPI 5 runs its component coll/han instead, to
    which no rules apply. The command prints the options by which coll/tuned runs the collectives that gain by rules.

    From measurements, an algorithm must be clearly faster than Open MPI's own decision to get a rule. Each run is a job
    of its own: if the machine was busier during one of them, the rules reflect that too.
    """  # noqa: D301 -- the command line's library wants the character \b before lines that it must not join
    if form not in ("classic", "json"):
        raise ExportError(f"--format: expecting classic or json, got {form!r}")
    if bool(records) == bool(topology):
        raise ExportError("expecting records or --topology, got " + ("both" if records else "neither"))
    if topology:
        adapters = Adapters(rails, names, rule)
        made = _by_model(
            "openmpi" if form == "classic" else "openmpi6", (topology, lfts, adapters), hosts, ppn, placement
        )
        _write_and_say(output, made)
        return
    read = [TuneRecord.read(path) for path in records or ()]
    rules = of_records(read)
    words = [f"{read[0].library}, {read[0].description}", "measured in runs made apart, one for each algorithm"]
    _write(output, write_classic(rules, words) if form == "classic" else write_json(rules))


@app.command("mpich-tuning")
def mpich_tuning(
    topology: Annotated[str, typer.Option("--topology", help="A source, as for topompi topology show.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    lfts: Tables = None,
    hosts: Hosts = None,
    ppn: RanksOfHost = 1,
    placement: Placement = "block",
    library: Annotated[Path | None, typer.Option("--mpich-library", help="libmpi.so.12; else that of mpirun.")] = None,
    rails: Rails = None,
    names: Names = None,
    rule: NameRule = None,
    limit: Limit = None,
) -> None:
    """Write MPICH's choice of algorithms by size, by the cost model: MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=FILE.

    The file contains the whole table of the library, with other algorithms where they are predicted to be at least 1.1
    times as fast. If hosts have several ranks, FILE with .ch4 before its ending is written too, for
    MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE.
    """
    job = (topology, lfts, Adapters(rails, names, rule)), hosts, ppn, placement
    made = _by_model("mpich", *job, library=library, name=output.name)
    for name, text in made.files.items():
        write_text(output.with_name(name), text)
    print(*made.notes, sep="\n")
    print(
        *(
            f"export {variable}={shlex.quote(str(output.with_name(name).absolute()))}"
            for variable, name in made.variables.items()
        ),
        sep="\n",
    )


@app.command("intel-adjust")
def intel_adjust(
    topology: Annotated[str, typer.Option("--topology", help="A source, as for topompi topology show.")],
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write, or -.")],
    lfts: Tables = None,
    hosts: Hosts = None,
    ppn: RanksOfHost = 1,
    placement: Placement = "block",
    rails: Rails = None,
    names: Names = None,
    rule: NameRule = None,
    limit: Limit = None,
) -> None:
    """Write Intel MPI's choice of algorithms by size, by the cost model: lines export I_MPI_ADJUST_... for a shell.

    Numbers of algorithms are those of Intel's reference of 2019 and 2020. The file was never run with Intel MPI.
    """
    _write_and_say(output, _by_model("intel", (topology, lfts, Adapters(rails, names, rule)), hosts, ppn, placement))


def _by_model(
    mpi: str, source: tuple[str, Path | None, Adapters], hosts: str | None, ppn: int, placement: str, **settings: Any
) -> ChoiceFiles:
    """The files for a job that the options name; settings are those of `choice_files`."""
    with reporting(ExportError, f"reading {source[0]}", how=source[2]) as report:
        interface = job_view(source, find_hosts(hosts), ppn, placement, report)
        made = choice_files(mpi, interface, report, **settings)
    list_findings(report)
    return made


def _write_and_say(output: str, made: ChoiceFiles) -> None:
    print(*made.notes, sep="\n", file=sys.stderr if output == "-" else sys.stdout)
    _write(output, *made.files.values())


def _write(output: str, text: str) -> None:
    if output == "-":
        sys.stdout.write(text)
    else:
        write_text(output, text)
