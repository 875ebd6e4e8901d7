"""``topompi doctor``: checks whether this machine and this job have what topompi needs."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import SourceError, TopompiError
from ...inputs import parse_json
from ...inputs.hostlist import read_hosts
from ...inputs.programs import run_program
from ...inputs.slurm.commands import SHOW_TOPOLOGY
from ...inputs.slurm.environment import HOSTS as JOB_HOSTS
from ...inputs.slurm.environment import JOB, worlds_of_one
from ...topology import Routes, load_routes
from ...topology.hostnames import find_hosts
from ..inputs import AsJson, topology
from ..terminal import console
from .env import fault, list_variables, variables

__all__ = ["Finding", "doctor", "examine"]

HERE = "this host"
OK, ABSENT, FAULT = "ok", "absent", "fault"
PATIENCE = 60.0  # seconds after which an MPI library that does not start, or a tool without an answer, is given up
# A program that is run in a process of its own, because an MPI library that cannot start ends the process.
_ASK_MPI = """
import json, mpi4py
from importlib.util import find_spec
from mpi4py import MPI
extensions = "dispatch._calls", "execution._compiled", "execution._keys"
compiled = all(find_spec(f"topompi.mpi.{one}") for one in extensions)
library = MPI.Get_library_version().split(",")[0].split(chr(10))[0].strip(chr(0))
facts = {"library": library, "standard": MPI.Get_version(), "module": MPI.__spec__.origin, "size": MPI.COMM_WORLD.size}
print(json.dumps({**facts, "mpi4py": mpi4py.__version__, "compiled": compiled}))
"""
_ASK_NAMESPACES = "ip link set lo up && tc qdisc add dev lo root tbf rate 1mbit burst 5000 limit 10000"
# Family (a number) of MPI libraries and launchers, by a word that occurs in the text of their version. A launcher can
# start programs of its own family only.
VENDORS = {"Open MPI": 0, "MPICH": 1, "HYDRA": 1, "Intel": 1, "MVAPICH": 1}
_PLACES = ("/etc/slurm/topology.conf", "/etc/slurm/topology.yaml", "/etc/slurm-llnl/topology.conf")
_TOOLS = {SHOW_TOPOLOGY[0]: " ".join(SHOW_TOPOLOGY), "ibnetdiscover": "ibnetdiscover"}


@dataclass(frozen=True)
class Finding:
    """The result of one check of this machine or job.

    :param what: name of what was checked, for example ``MPI`` or ``hosts``.
    :param state: ``ok``; ``absent`` if it is missing and topompi works without it; ``fault`` if it must be repaired.
    :param says: description in one line, with a remedy.
    """

    what: str
    state: str
    says: str


_VARIABLES = "List every variable of the environment that topompi reads, with its value and where that comes from."


def doctor(
    source: Annotated[str | None, topology("A topology source.")] = None,
    hosts: Annotated[str | None, typer.Option("--hosts", help="The job's hosts; else those of Slurm's job.")] = None,
    listed: Annotated[bool, typer.Option("--variables", help=_VARIABLES)] = False,
    as_json: AsJson = False,
) -> None:
    """Examine this machine and this job: MPI, compiled parts, topology, hosts, Slurm, variables, emulation.

    Each line is ok, absent (topompi works without it) or a fault. The exit code is 1 if there is a fault, else 0.
    """
    if listed:
        list_variables(as_json=as_json)
        return
    findings = list(examine(os.environ, source, hosts))
    faults = sum(one.state == FAULT for one in findings)
    if as_json:
        print(json.dumps({"faults": faults, "findings": [asdict(one) for one in findings]}))
    else:
        screen = console()
        widest = max(len(one.what) for one in findings)
        for one in findings:
            line = f"{one.state:<6}  {one.what:<{widest}}  {one.says}"
            screen.print(line, style="bold red" if one.state == FAULT else None)
        screen.print(f"{faults} fault{'s' * (faults != 1)}")
    if faults:
        raise typer.Exit(1)


def examine(environment: Mapping[str, str], topology: str | None, hosts: str | None) -> Iterator[Finding]:
    """Make all checks of this machine and this job, and yield the result of each.

    :param environment: the environment variables.
    :param topology: a topology source; None if none is named.
    :param hosts: a host list or a file; if it is None, the hosts of ``TOPOMPI_HOSTS``, else of the Slurm job, else this
        host.
    """
    yield Finding("Python", OK, f"{platform.python_version()}, {sys.executable}")
    yield from _mpi(environment)
    routes = yield from _fabric(environment, topology, hosts)
    yield from _slurm(environment, routes)
    yield from _variables(environment)
    matplotlib = find_spec("matplotlib") is not None
    yield Finding("plots", OK if matplotlib else ABSENT, "matplotlib" if matplotlib else "pip install 'topompi[plot]'")
    yield _emulation()


def _mpi(environment: Mapping[str, str]) -> Iterator[Finding]:
    facts, reason = _asked_mpi()
    if not facts:
        remedy = "module load openmpi, pip install 'topompi[mpi]', or set MPI4PY_MPIABI"
        yield Finding("MPI", FAULT, f"mpi4py finds no MPI library ({reason}): {remedy}")
    else:
        standard = ".".join(map(str, facts["standard"]))
        interface = Path(facts["module"]).name.split(".cpython")[0]
        yield Finding("MPI", OK, f"{facts['library']}, MPI {standard}, by mpi4py {facts['mpi4py']} ({interface})")
        if alone := worlds_of_one(environment, facts["size"]):
            yield Finding("MPI", FAULT, alone)
        yield Finding("compiled parts", *_compiled(facts["compiled"]))
    yield _launcher(facts.get("library", ""))


def _asked_mpi() -> tuple[dict[str, Any], str]:
    """The facts that a process with mpi4py prints, and, if there are none, the reason."""
    try:
        done = run_program([sys.executable, "-c", _ASK_MPI], "facts about MPI", PATIENCE, check=False)
        if done.returncode:
            said = done.stderr.decode(errors="replace").splitlines()
            return {}, next((line for line in reversed(said) if line.strip()), "it says nothing")
        return parse_json(done.stdout.strip().rpartition(b"\n")[2], "MPI", SourceError), ""
    except SourceError as error:
        return {}, str(error)


def _said(command: Sequence[str]) -> str:
    """Return what a tool prints about its version; empty if it cannot be run."""
    try:
        return run_program(command, "its version", PATIENCE, check=False).stdout.decode(errors="replace")
    except SourceError:
        return ""


def _launcher(library: str) -> Finding:
    """Check whether a launcher is installed, and whether it belongs to the MPI library that programs load.

    :param library: version text of the library; empty if there is none.
    """
    beside = str(Path(sys.executable).parent)
    search = (None, beside) if shutil.which("mpirun") or shutil.which("mpiexec") else (beside, None)
    found = [shutil.which(name, path=where) for where in search for name in ("mpirun", "mpiexec", "srun")]
    first = next(filter(None, found), None)
    if first is None:
        return Finding("launcher", FAULT, "expecting mpirun, mpiexec or srun on the path, got none")
    if Path(first).name == "srun" or not library:
        return Finding("launcher", OK, first)
    vendors = [next((one for one in VENDORS if one in words), "") for words in (library, _said([first, "--version"]))]
    if all(vendors) and VENDORS[vendors[0]] != VENDORS[vendors[1]]:
        return Finding(
            "launcher", FAULT, f"{first} is of {vendors[1]}, and programs load {library}: every rank would be 0"
        )
    return Finding("launcher", OK, first + ("" if shutil.which(Path(first).name) else ", which is not on the path"))


def _compiled(there: bool) -> tuple[str, str]:
    if there:
        return OK, "all files of C that calls use"
    return ABSENT, "calls are slower (docs/cluster.md): install again with a C compiler and Python's headers"


def _fabric(
    environment: Mapping[str, str], topology: str | None, hosts: str | None
) -> Generator[Finding, None, Routes | None]:
    """Check the topology that is named, and return its routes; None if there are none."""
    if topology is None:
        found = [place for place in _PLACES if Path(place).exists()]
        found += [command for tool, command in _TOOLS.items() if shutil.which(tool)]
        advice = f"; try {' or '.join(found)}" if found else ", and no Slurm or InfiniBand tool is here"
        yield Finding("topology", ABSENT, f"none named (--topology, TOPOMPI_TOPOLOGY): hosts are one level{advice}")
    try:
        names, whose = _job(environment, hosts)
        if topology is None:
            return None
        routes = load_routes(topology)
        absent = [name for name, number in zip(names, find_hosts(routes.fabric, names), strict=True) if number < 0]
    except (TopompiError, OSError) as error:
        yield Finding("topology" if topology else "hosts", FAULT, str(error))
        return None
    fabric = routes.fabric
    yield Finding(
        "topology", OK, f"{topology}: {fabric.num_hosts:,} hosts, {fabric.num_switches:,} switches, {routes.engine}"
    )
    if absent and whose == HERE:
        yield Finding(
            "hosts", ABSENT, f"{names[0]}, {whose}, is not in it, as a login node may not be; --hosts names others"
        )
    elif absent:
        some = ", ".join(absent[:3]) + (", ..." if len(absent) > 3 else "")
        known = ", ".join(fabric.hosts[:3])
        yield Finding(
            "hosts", FAULT, f"{len(absent)} of {len(names)} ({whose}) are not in it: {some}; it has {known}, ..."
        )
    else:
        yield Finding("hosts", OK, f"{len(names):,} of {len(names):,} ({whose}) are in it")
    return routes


def _slurm(environment: Mapping[str, str], routes: Routes | None) -> Iterator[Finding]:
    """Check Slurm; nothing where it is neither installed nor runs the job."""
    if shutil.which(SHOW_TOPOLOGY[0]) is None and not environment.get(JOB):
        return
    from ...machine.slurm.checks import (
        check_slurm,  # imports the rooms of jobs and mappings, and most machines have no Slurm
    )

    for found in check_slurm(environment, routes):
        yield Finding(*found)


def _job(environment: Mapping[str, str], hosts: str | None) -> tuple[list[str], str]:
    """Return the names of the job's hosts, and the option or variable that names them (``HERE`` for this host alone).

    :param environment: the environment variables.
    :param hosts: value of --hosts; None if it is not given.
    """
    for written, whose in ((hosts, "--hosts"), *((environment.get(one), one) for one in ("TOPOMPI_HOSTS", JOB_HOSTS))):
        if written:
            return list(dict.fromkeys(read_hosts(written))), whose
    return [socket.gethostname()], HERE


def _variables(environment: Mapping[str, str]) -> Iterator[Finding]:
    rows, wrong = variables(environment), fault(environment)
    strange = [row.name for row in rows if row.origin == "unknown"]
    given = [f"{row.name}={row.value}" for row in rows if row.origin == "environment"]
    if wrong:
        yield Finding("variables", FAULT, wrong)
    else:
        yield Finding("variables", OK, ", ".join(given) or "none is set; --variables lists them")
    if strange and not wrong:
        yield Finding("variables", FAULT, f"{', '.join(strange)}: topompi has no such variable")


def _emulation() -> Finding:
    """Check whether network namespaces and token buckets can be made, by making some: root in a container may not."""
    missing = [name for name in ("ip", "tc", "nsenter", "unshare") if shutil.which(name) is None]
    if os.name != "posix" or os.geteuid() != 0:
        return Finding("emulation", ABSENT, "osu_like_bench emulate needs root")
    if missing:
        return Finding("emulation", ABSENT, f"osu_like_bench emulate needs {', '.join(missing)}")
    trial = ["unshare", "--net", "sh", "-c", _ASK_NAMESPACES]
    try:
        run_program(trial, "a network namespace", PATIENCE)
    except SourceError:
        return Finding("emulation", ABSENT, "the kernel lets this root make no namespaces or tbf")
    return Finding("emulation", OK, "namespaces and token buckets may be made")
