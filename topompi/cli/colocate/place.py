"""``topompi colocate place``: cores for a job in a mode of execution, and files for launchers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ...inputs.hostlist import expand
from ...inputs.writing import write_text
from ...machine.colocation.modes.cores import MODES, RankCores, node_of
from ...machine.colocation.modes.cores import place as places_of
from ...machine.colocation.modes.files import WRITERS, write_places
from ...topology.inside.cpus import cpu_mask, write_cpu_list
from ...topology.inside.finding import find_inside
from ...topology.inside.hwlocxml import read_file
from ..inputs import AsJson
from ..quantities import RANKS
from ..terminal import console

__all__ = ["place"]

_INSIDE = "hwloc XML of a node (lstopo FILE.xml); default: this host."
_FORM = f"Print a file or command for a launcher: {', '.join(WRITERS)}."


def place(
    mode: Annotated[str, typer.Argument(help=f"{', '.join(MODES)}.")],
    *,
    ranks: Annotated[int, RANKS("-n", "--ranks", help="Number of ranks.")],
    inside: Annotated[Path | None, typer.Option("--inside", help=_INSIDE)] = None,
    second: Annotated[bool, typer.Option("--second", help="The second of the two jobs that share the nodes.")] = False,
    hosts: Annotated[str, typer.Option("--hosts", help="Nodes as a host list, such as n[1-4].")] = "",
    form: Annotated[str, typer.Option("--format", help=_FORM)] = "",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the file of --format here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the cores of each node that a job uses in a mode, or write them for a launcher.

    compact: all cores. spread: half of each package, the rest idle. striped: half of each package, the rest for another
    job (--second gives that job's cores). exclusive: half of the packages.
    """
    node = node_of(find_inside() if inside is None else read_file(inside))
    found = places_of(node, mode, ranks, second)
    names = expand(hosts)
    if form:
        text = write_places(found, names, form)
        if output is not None:
            write_text(output, text)
        else:
            print(text, end="")
    elif as_json:
        cores = [{"package": one.package, "core": one.number, "cpu": one.cpu} for one in found.cores]
        facts = {"mode": mode, "ranks": ranks, "nodes": found.nodes, "idle": found.idle, "shared": found.shared}
        print(json.dumps(facts | {"cores": cores}))
    else:
        _print(found)


def _print(found: RankCores) -> None:
    heads = ("mode", "ranks", "nodes", "cores used", "idle", "for another job", "CPUs")
    table = Table(*heads, box=None, header_style="bold")
    cpus = write_cpu_list(cpu_mask(one.cpu for one in found.cores))
    counts = (found.processes, found.nodes, len(found.cores), found.idle, found.shared)
    table.add_row(found.mode, *map(str, counts), cpus)
    console().print(table)
