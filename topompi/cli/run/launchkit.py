"""``topompi export launch-kit``: a folder with a rank file, a library's choice file, and a script that runs it."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

from ...inputs.writing import write_text
from ...mapping.mapping import Mapping
from ...mapping.rankfiles import write_mapping
from ...mapping.readers import read_graph
from ...mapping.search import Search, solve
from ...topology import TopologyInterface
from ...topology.hostnames import require_joined
from ...views.allocation import machine_on
from ..hosts import find_hosts
from ..inputs import Adapters, list_findings, reporting
from .choicefiles import FILES, ChoiceFiles, ExportError, choice_files

__all__ = ["write_kit"]

# For each library: options that name the rank file, and options for equally many ranks on each host.
_RANKMAP = "$(sed -n 's/^# rankmap //p' \"$kit/app.map\")"
MAPS = {
    "openmpi": ('--map-by rankfile:file="$kit/app.map"', "--map-by ppr:{}:node"),
    "openmpi6": ('--map-by rankfile:file="$kit/app.map"', "--map-by ppr:{}:node"),
    "mpich": (f'-f "$kit/app.map" -rankmap "{_RANKMAP}"', "-ppn {}"),
    "intel": ('-machine "$kit/app.map"', "-ppn {}"),
}
MAP = "app.map"


def write_kit(
    output: Path,
    profile: Path | None,
    source: tuple[str, Path | None, Adapters],
    hosts: str | None,
    ppn: int,
    mpi: str,
    *,
    columns: str | None,
    library: Path | None,
    as_json: bool,
) -> None:
    """Write a program's rank file, its MPI library's choice file and a script that runs it, into a folder.

    :param output: the folder.
    :param profile: what each rank sends to each; None to write no rank file, so that ranks fill one host after another.
    :param source: topology source, its forwarding tables if they are separate, and the options about adapters.
    :param hosts: value of ``--hosts``.
    :param ppn: number of ranks on each host.
    :param mpi: a key of ``FILES``.
    :param columns: value of ``--columns``.
    :param library: path of the MPICH library whose tables are used; None for the one beside ``mpirun`` in PATH.
    :param as_json: whether to print JSON.
    """
    if mpi not in FILES:
        raise ExportError(f"--mpi: expecting one of {', '.join(FILES)}, got {mpi!r}")
    topology, lfts, adapters = source
    with reporting(ExportError, f"reading {topology}", how=adapters) as report:
        routes = adapters.read(topology, lfts, report)
        chosen_hosts = find_hosts(hosts) or list(routes.fabric.hosts)
        require_joined(routes.fabric, chosen_hosts)
        machine = machine_on(routes, chosen_hosts, [ppn] * len(chosen_hosts), source=topology)
        if profile is None:
            mapping = Mapping.identity(machine, machine.num_slots)
        else:
            graph = read_graph(profile, columns=columns.split(",") if columns else (), notes=report.notes)
            if graph.size > machine.num_slots:
                raise ExportError(f"expecting a slot for each of {graph.size} ranks, got {machine.num_slots}")
            report.step(f"mapping {graph.size} ranks")
            mapping = solve(Search(), graph, machine, report.step)
        rank_hosts = [machine.hosts[host] for host in mapping.host_of_rank.tolist()]
        interface = TopologyInterface.place(rank_hosts, routes, source=topology)
        choice = choice_files(mpi, interface, report, library=library)
        files = dict(choice.files)
        if profile is not None:
            form = "hydra" if mpi == "mpich" else "rankfile5"
            files[MAP] = "\n".join([*rank_hosts, ""]) if mpi == "intel" else write_mapping(mapping, form)
    list_findings(report)
    files["run.sh"] = _script(mpi, choice, interface, None if profile is not None else ppn)
    output.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_text(output / name, text)
    line = f"sh {shlex.quote(os.fspath(output / 'run.sh'))} ./app"
    if as_json:
        print(json.dumps({"files": list(files), "run": line, "ranks": mapping.size, "gains": dict(choice.gains)}))
        return
    for words in choice.notes:
        print(words)
    print(files["run.sh"].splitlines()[-1])
    print(line)


def _script(mpi: str, choice: ChoiceFiles, interface: TopologyInterface, ppn: int | None) -> str:
    """The script that runs a program, by paths relative to itself.

    :param mpi: a key of ``MAPS``.
    :param choice: the library's files.
    :param interface: placement of the job's ranks.
    :param ppn: number of ranks on each host; None if there is a rank file.
    """
    words = ["exec mpirun", f"-n {interface.num_ranks}"]
    words.append(MAPS[mpi][0] if ppn is None else MAPS[mpi][1].format(ppn))
    before = [f'export {variable}="$kit/{name}"' for variable, name in choice.variables.items()]
    if mpi == "intel":
        before.append(f'. "$kit/{FILES[mpi]}"')
    if mpi.startswith("openmpi"):
        words.append("--mca coll_tuned_use_dynamic_rules 1")
        words.append(f'--mca coll_tuned_dynamic_rules_filename "$kit/{FILES[mpi]}"')
    words += choice.options
    words.append('"$@"')
    lines = ["#!/bin/sh", 'kit=$(cd "$(dirname "$0")" && pwd)', *before, " ".join(words)]
    return "\n".join([*lines, ""])
