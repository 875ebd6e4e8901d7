"""``topompi export``: files that tell MPI libraries the positions of ranks, or their fastest algorithms by size."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from ...inputs.writing import write_text
from ...mpi.tuning.ompi_rules import of_records, write_classic, write_json
from ...mpi.tuning.record import TuneRecord
from ...views.coordinates import write_coordinates
from ..hosts import Placement, find_hosts
from ..inputs import (
    Adapters,
    AsJson,
    GraphColumns,
    Hosts,
    Lfts,
    Ppn,
    grouped,
    job_view,
    list_findings,
    reporting,
    topology,
)
from ..terminal import Limit
from .choicefiles import FILES, ChoiceFiles, ExportError, choice_files
from .launchkit import write_kit

__all__ = ["KINDS", "ExportError", "export"]

KINDS = ("launch-kit", "ompi-rules", "mpich-tuning", "mpich-coordinates", "intel-adjust")
_FILES = "For launch-kit: a profile. For ompi-rules: records of topompi tune, in place of a topology."
_LIBRARY = "MPICH's libmpi.so.12; else that of mpirun."
_MPI = f"Of launch-kit: one of {', '.join(FILES)}."


@grouped
def export(
    kind: Annotated[str, typer.Argument(help=f"One of {', '.join(KINDS)}.")],
    records: Annotated[list[Path] | None, typer.Argument(metavar="PROFILE|RECORDS", help=_FILES)] = None,
    *,
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write, or -; of launch-kit, the folder.")],
    source: Annotated[str | None, topology("A topology source; needed if there are no records.")] = None,
    lfts: Lfts = None,
    hosts: Hosts = None,
    ppn: Ppn = 1,
    placement: Placement = "block",
    library: Annotated[Path | None, typer.Option("--mpich-library", help=_LIBRARY)] = None,
    mpi: Annotated[str, typer.Option("--mpi", help=_MPI)] = "openmpi",
    columns: GraphColumns = None,
    adapters: Adapters,
    as_json: AsJson = False,
    limit: Limit = None,
) -> None:
    """Write a kit that runs a program well, or a file by which an MPI library knows its fastest algorithms.

    \b launch-kit: a folder with a rank file (by the profile), the library's choice file, and a script.
      sh DIR/run.sh ./app
    ompi-rules: Open MPI's choice of algorithms; FILE.json is for Open MPI 6, any other name for 4 and 5.
      mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE ...
    mpich-tuning: MPICH's choice.
      MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=FILE mpirun ...
    intel-adjust: Intel MPI's choice, never run with Intel MPI.
      . FILE
    mpich-coordinates: positions of ranks, for MPICH's trees, such as MPIR_CVAR_BCAST_TREE_TYPE=topology_aware.
      MPIR_CVAR_COORDINATES_FILE=FILE mpirun ...

    By the cost model, an algorithm gets a rule if it is predicted to be at least 1.1 times as fast as what the library
    would choose. If hosts have several ranks, Open MPI 5 runs its component coll/han, to which no rules apply; the
    command prints the options by which coll/tuned runs the collectives that gain by rules. MPICH then needs a second
    file, FILE with .ch4 before its ending. Numbers of Intel's algorithms are those of its reference of 2019 and 2020.

    \b Rules for Open MPI may follow from measurements instead: one record with Open MPI's own decision, and one for
    each algorithm K of a collective, each from a job of its own:
      mpirun -n 64 python -m topompi tune alltoall -a native --record 0.json
      mpirun -n 64 --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_alltoall_algorithm K \\
             python -m topompi tune alltoall -a native --record K.json
      topompi export ompi-rules *.json -o rules.conf
    An algorithm must then be clearly faster than Open MPI's own decision to get a rule.
    """  # noqa: D301 -- the command line's library wants the character \b before lines that it must not join
    if kind not in KINDS:
        raise ExportError(f"expecting one of {', '.join(KINDS)}, got {kind!r:.60}")
    most = {"launch-kit": 1, "ompi-rules": len(records or ())}.get(kind, 0)
    if len(records or ()) > most:
        raise ExportError(f"{kind}: expecting {'one profile' if most else 'no files'}, got {records}")
    newest = output.endswith(".json")
    if records and kind == "ompi-rules":
        _write(output, _measured(records, newest=newest))
        return
    if source is None:
        needed = "records or --topology" if kind == "ompi-rules" else "--topology"
        raise ExportError(f"expecting {needed}, got {'neither' if kind == 'ompi-rules' else 'none'}")
    if kind == "mpich-tuning" and output == "-":
        raise ExportError("-o: expecting the name of a file, beside which another may be written, got -")
    where = source, lfts, adapters
    if kind == "launch-kit":
        profile = records[0] if records else None
        kit = {"columns": columns, "library": library, "as_json": as_json}
        write_kit(Path(output), profile, where, hosts, ppn, mpi, **kit)  # type: ignore[arg-type]
        return
    wanted = {"mpich-tuning": "mpich", "intel-adjust": "intel"}.get(kind, "openmpi6" if newest else "openmpi")
    made = None
    with reporting(ExportError, f"reading {source}", how=adapters) as report:
        interface = job_view(where, find_hosts(hosts), ppn, placement, report)
        if kind != "mpich-coordinates":
            made = choice_files(wanted, interface, report, library=library, name=Path(output).name)
    list_findings(report)
    if made is None:
        _write(output, write_coordinates(interface))
    else:
        _give(output, made)


def _measured(records: list[Path], *, newest: bool) -> str:
    """Return Open MPI's rules by measurements.

    :param records: files of ``topompi tune --record``.
    :param newest: whether the rules are for Open MPI 6.
    """
    read = [TuneRecord.read(path) for path in records]
    rules = of_records(read)
    words = [f"{read[0].library}, {read[0].description}", "measured in runs made apart, one for each algorithm"]
    return write_json(rules) if newest else write_classic(rules, words)


def _give(output: str, made: ChoiceFiles) -> None:
    """Write the files, and print the notes on them and the variables that name them."""
    print(*made.notes, sep="\n", file=sys.stderr if output == "-" else sys.stdout)
    for name, text in made.files.items():
        _write(output if output == "-" else str(Path(output).with_name(name)), text)
    for variable, name in made.variables.items():
        print(f"export {variable}={shlex.quote(str(Path(output).with_name(name).absolute()))}")


def _write(output: str, text: str) -> None:
    if output == "-":
        sys.stdout.write(text)
    else:
        write_text(output, text)
