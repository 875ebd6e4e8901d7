"""``osu_like_bench emulate up | run | check | status | down``: real MPI on an emulated network."""

from __future__ import annotations

import json as jsonlib
import os
import shlex
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NoReturn

import typer

from topompi.cli.inputs import grouped
from topompi.cli.quantities import PER_HOST, RANKS, SECONDS
from topompi.cli.terminal import HELP
from topompi.errors import BenchmarkError, TopompiError
from topompi.inputs import read_text
from topompi.inputs.pairs import read_pairs
from topompi.topology.sources import fabricjson

from ..command import UsageError
from ..options import parse_bytes
from .network import check_rights
from .peers import PEERS
from .records import NetworkRecord, states
from .session import Emulated, LaunchOptions, take_down
from .slurm import EmulatedSlurm, SlurmOptions
from .spec import LinkRates, emulated_routes
from .verify import measure_rates, measure_round_trip

__all__ = ["main"]

NAME = "emulated"
app = typer.Typer(
    add_completion=False,
    context_settings=HELP,
    no_args_is_help=True,
    help="Real MPI jobs on an emulated network; needs root.",
)


@dataclass(frozen=True)
class NetworkOptions:
    """Options that describe a network, or name one that is up."""

    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC",
            help="4x4, 2x4x4, the hosts of each leaf as 3,4,1,8, a topology source, or a name.",
        ),
    ]
    host: Annotated[str | None, typer.Option("--host-rate", metavar="RATE", help="Of host links, bits/s: 100M.")] = None
    uplink: Annotated[
        str | None, typer.Option("--uplink-rate", metavar="RATE,...", help="Of links above, by level from the leaves.")
    ] = None
    hosts: Annotated[
        str | None, typer.Option("--host-rates", metavar="HOSTS=RATE,...", help="Of some hosts' links: h0-h7=50M.")
    ] = None

    @property
    def rates(self) -> LinkRates:
        """The rates of the links."""
        return LinkRates.parse(self.host, self.uplink, self.hosts)


Slurm = Annotated[bool, typer.Option("--slurm", help="With a Slurm whose nodes are the hosts; needs its packages.")]
Cores = Annotated[int, PER_HOST("--cores", help="Processors per host that Slurm is told.")]


@app.command()
@grouped
def up(
    wanted: NetworkOptions,
    name: Annotated[str, typer.Option(help="What to call the network.")] = NAME,
    slurm: Slurm = False,
    cores: Cores = 4,
) -> None:
    """Make a network that stays until it is taken down."""
    network = Emulated(wanted.spec, wanted.rates, name=name)
    network.up()
    if slurm:
        _started(network, cores)
    print(_described(network))
    print(f"fabric: {network.path}")
    if slurm:
        print(f"slurm: all nodes are idle; osu_like_bench emulate run {name} --slurm -- sinfo")


@app.command()
@grouped
def run(
    wanted: NetworkOptions,
    words: Annotated[list[str], typer.Argument(metavar="-- ARGS...", help="Module, script or program to run.")],
    mpi: Annotated[str | None, typer.Option(metavar="|".join(PEERS), help="MPI library and its settings.")] = None,
    ranks: Annotated[int | None, RANKS("-n", help="Ranks; one a host by default.")] = None,
    ppn: Annotated[
        str | None, typer.Option(metavar="N|N/N/...", help="Ranks per host; 3/1/4/2 for hosts with different numbers.")
    ] = None,
    order: Annotated[str, typer.Option(help="block, cyclic, leaf-cyclic or random:SEED.")] = "block",
    python: Annotated[str, typer.Option(metavar="PATH", help="Interpreter whose MPI runs the job.")] = sys.executable,
    background: Annotated[str | None, typer.Option(metavar="BYTES", help="A second job's alltoall meanwhile.")] = None,
    timeout: Annotated[float, SECONDS(metavar="SECONDS", help="End the job after this.", min=0.1)] = 600.0,
    export: Annotated[
        list[str] | None, typer.Option("-x", metavar="NAME[=VALUE]", help="Variable for the ranks.")
    ] = None,
    placement: Annotated[str, typer.Option(metavar="OPTIONS", help="Of mpirun, to place ranks instead.")] = "",
    slurm: Slurm = False,
    cores: Cores = 4,
    json: Annotated[bool, typer.Option("--json", help="The closing line as JSON.")] = False,
) -> int:
    """Run a program on a network that is up, given by name or spec, or on one made for this run.

    With --slurm the words are a command for the first host, such as srun or sbatch, and a whole Slurm runs beside it.
    """
    if slurm:
        network = _existing(wanted.spec, wanted.rates)
        if network is not None:
            return _run_with_slurm(network, words, cores, timeout)
        with Emulated(wanted.spec, wanted.rates) as fresh:
            return _run_with_slurm(fresh, words, cores, timeout)
    options = LaunchOptions(
        mpi=mpi,
        ranks=ranks,
        ppn=ppn,
        order=order,
        python=python,
        background=parse_bytes(background, "--background") if background else 0,
        timeout=timeout,
        environment=_exports(export or []),
        placement=shlex.split(placement),
    )
    network = _existing(wanted.spec, wanted.rates)
    if network is not None:
        return _run(network, words, options, json)
    with Emulated(wanted.spec, wanted.rates) as fresh:
        return _run(fresh, words, options, json)


@app.command()
@grouped
def check(
    wanted: NetworkOptions,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Measure one link of each level and rate with TCP, in both directions at once."""
    network = _existing(wanted.spec, wanted.rates)
    if network is not None:
        return _check(network, json)
    with Emulated(wanted.spec, wanted.rates) as fresh:
        return _check(fresh, json)


@app.command()
def status(json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the networks."""
    found = list(states())
    if json:
        print(
            jsonlib.dumps([{"name": s.name, "spec": s.spec, "hosts": len(s.hosts), "in_use": s.in_use} for s in found])
        )
        return
    if not found:
        print("no emulated network")
    for state in found:
        print(f"{state.name}: {state.spec}, {len(state.hosts)} hosts{_fate(state)}")


@app.command()
def down(
    name: Annotated[str | None, typer.Argument(help="The network; all but those of running jobs by default.")] = None,
) -> None:
    """End the processes on a network and remove it, also if its maker has crashed."""
    gone = take_down(name)
    print("\n".join(f"removed {one}" for one in gone) or "nothing to remove")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; exit code 0, the job's, 1 for an error, or 2 for wrong usage."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    debug = "--debug" in arguments[: [*arguments, "--"].index("--")]
    if debug:
        arguments.remove("--debug")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)  # raises, so that a network of this run is taken down
    try:
        return int(app(arguments, prog_name="osu_like_bench emulate", standalone_mode=False) or 0)
    except UsageError as error:
        message, code = error.format_message() or "expecting up, run, check, status or down, got no command", 2
    except (TopompiError, OSError) as error:
        message, code = str(error), 1
        if debug:
            traceback.print_exc()
    except (KeyboardInterrupt, typer.Abort):
        message, code = "interrupted; what was up for this run is down", 130
    print(f"osu_like_bench emulate: {' '.join(message.split())}", file=sys.stderr)
    return code


def _leave(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _existing(spec: str, rates: LinkRates) -> Emulated | None:
    """Return a network that is up: the one with this name, else one with the same fabric; None if there is none."""
    check_rights()
    lasting = [state for state in states() if state.owner == 0]
    named = [state for state in lasting if state.name == spec]
    if named:
        return Emulated.existing(named[0])
    routes = emulated_routes(spec, rates)
    wanted = fabricjson.write(routes.fabric, routes)
    same = [state for state in lasting if _text(state) == wanted]
    return Emulated.existing(same[0]) if same else None


def _text(state: NetworkRecord) -> str:
    path = state.path / fabricjson.NAME
    return read_text(path, BenchmarkError, "a topology") if path.exists() else ""


def _run(network: Emulated, words: Sequence[str], options: LaunchOptions, json: bool) -> int:
    done = network.run(words, options, capture=False)
    usage = done.usage
    if done.background:
        print(f"# {done.background.strip()}", file=sys.stderr)
    if json:
        fields = {"returncode": done.returncode, "idle": usage.idle, "busiest": usage.busiest, "bytes": usage.nbytes}
        print(jsonlib.dumps(fields), file=sys.stderr)
    else:
        print(f"# {usage}", file=sys.stderr)
    return done.returncode


def _started(network: Emulated, cores: int) -> EmulatedSlurm:
    slurm = EmulatedSlurm(network, SlurmOptions(cores=cores))
    try:
        slurm.up()
    except BaseException:
        network.down()
        raise
    return slurm


def _run_with_slurm(network: Emulated, words: Sequence[str], cores: int, timeout: float) -> int:
    """Run a command on a network's first host with Slurm: the Slurm that is up there, else one for this run only."""
    slurm = EmulatedSlurm(network, SlurmOptions(cores=cores))
    try:
        if slurm.is_up:
            return slurm.run(words, timeout, capture=False).returncode
        with slurm:
            return slurm.run(words, timeout, capture=False).returncode
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"emulate run: expecting the command to end within {timeout:g} s, got no end") from None


def _check(network: Emulated, json: bool) -> None:
    measured = []
    if not json:
        print(_described(network))
        print(f"{'link':24}{'nominal':>10}{'up':>10}{'down':>10}  Mbit/s; payload of TCP over nominal")
    for link in measure_rates(network.fabric, network.state):
        measured.append(link)
        if not json:
            rates = "".join(f"{rate / 1e6:10.1f}" for rate in (link.nominal, link.up, link.down))
            print(f"{' - '.join(link.link):24}{rates}  {link.shares[0]:.1%} {link.shares[1]:.1%}", flush=True)
    trip = measure_round_trip(network.fabric, network.state)
    if json:
        rows = [{"link": one.link, "nominal": one.nominal, "up": one.up, "down": one.down} for one in measured]
        print(jsonlib.dumps({"links": rows, "round_trip": trip}))
    else:
        print(f"round trip of a byte, {network.fabric.hosts[0]} - {network.fabric.hosts[-1]}: {trip * 1e6:.0f} us")


def _described(network: Emulated) -> str:
    fabric = network.fabric
    leaves = len(set(fabric.adapter_leaf.tolist()))
    rates = sorted({f"{8 * rate / 1e6:g}" for rate in fabric.link_rate.tolist()}, key=float)
    counts = f"{fabric.num_hosts} hosts on {leaves} leaf switches, {fabric.num_switches} switches"
    return f"{network.name}: {network.spec}: {counts}, links of {', '.join(rates)} Mbit/s"


def _fate(state: NetworkRecord) -> str:
    if state.owner == 0:
        return ""
    return (
        f", in use by process {state.owner}" if state.in_use else ", left behind by a process that ended: take it down"
    )


def _exports(entries: Sequence[str]) -> dict[str, str]:
    """Parse variables for the ranks: ``NAME=VALUE``, or ``NAME``, whose value is that of this process."""
    given = read_pairs(entries, "-x", "NAME=VALUE or NAME", BenchmarkError, bare=True)
    return {name: value if f"{name}={value}" in entries else os.environ.get(name, "") for name, value in given.items()}
