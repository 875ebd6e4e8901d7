"""``python -m osu_like_bench simulate``: our algorithms and other libraries' choices on a fabric, by simulation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from topompi.cli.terminal import HELP, Limit, console
from topompi.errors import BenchmarkError
from topompi.inputs.hostlist import read_hosts
from topompi.inputs.writing import write_text
from topompi.mapping.placement import place as placed
from topompi.schedules.registry import ALGORITHMS
from topompi.schedules.segments import pieces_of
from topompi.topology import Report, TopologyInterface, load_routes
from topompi.views.network import network_of

from ..command import run_command
from ..kernels import FORMER, KERNELS, make_kernel
from ..options import Options, message_sizes, parse_bytes
from ..record import Circumstances
from . import commandline as cli
from .background import Background
from .commandline import NETWORKS, SYSTEMS
from .drawing import draw, drawable
from .flowarena import LIBRARIES, METHODS, FlowArena
from .ground import MOST_MESSAGES
from .kernelstudy import KernelStudy, others_of, ours_of
from .study import study
from .table import Findings, facts_of, lines, record

__all__ = ["main"]

app = typer.Typer(add_completion=False, context_settings=HELP)


@app.command()
def command(
    collective: cli.Collective,
    topology: cli.Topology,
    algorithm: cli.Algorithm = "all",
    lfts: cli.Lfts = None,
    hosts: cli.Hosts = None,
    ppn: cli.PerHost = 1,
    sizes: cli.Sizes = "1K,64K,1M",
    peers: cli.Peers = "all",
    place: cli.Place = "block",
    root: cli.Root = 0,
    grid: cli.Grid = None,
    periodic: cli.Periodic = False,
    faces: cli.Faces = None,
    background: cli.SecondJob = None,
    system: cli.System = SYSTEMS[0],
    network: cli.Network = NETWORKS[0],
    seeds: cli.Seeds = 0,
    bracket: cli.Bracket = False,
    eager: cli.Eager = None,
    window: cli.Window = None,
    json: cli.Json = None,
    drawing: cli.Drawing = None,
    jobs: cli.Jobs = 2,
    most: cli.MostMessages = MOST_MESSAGES,
    debug: cli.Debug = False,
    limit: Limit = None,
) -> int:
    """Time algorithms, and the choices of other MPI libraries, on a fabric by simulation.

    Routes, rates and latencies are the fabric's own; latencies that it lacks come from table 1.1 of the reference. The
    message size is the whole message of bcast, reduce and allreduce; one rank's share of gather, scatter, allgather and
    reduce_scatter; a block from one rank to one other of alltoall. Messages are flows with max-min fair shares, and
    other libraries run the algorithms of our models of them; --network packet sends packets through switches with
    finite buffers instead.

    For the kernels stencil3d, stencil4d and pcg the command compares orders of the ranks: our mappings, and those that
    a user has without them. For fft3d and p3dfft it compares our joint alltoalls of rows and columns with those of the
    libraries.

    Compare: python -m osu_like_bench compare A.json A.json --side shift,mpich
    """
    collective = FORMER.get(collective, collective)
    _one_of("--network", network, NETWORKS)
    _refuse_grid(collective, grid=grid, periodic=periodic, faces=faces)
    _refuse_bracket(network, collective, bracket=bracket)
    sides = (*_algorithms(collective, algorithm), *_peers(collective, peers))
    options = Options(collective, sizes=sizes, root=str(root), sides=sides, topology=topology, lfts=lfts, hosts=hosts)
    options = replace(options, place=place, json=None if json is None else str(json), periodic=periodic, faces=faces)
    system, second = _one_of("--system", system, SYSTEMS), None if background is None else Background.parse(background)
    settings = {"system": system, "background": second, "most_messages": most, "seeds": seeds, "bracket": bracket}
    settings["eager"] = None if eager is None else parse_bytes(eager, "--eager")
    own = len(_algorithms(collective, algorithm))
    trial = SimulationPlan(
        options.sides[:own], options.sides[own:], _sizes(sizes), root, window, jobs, background or "none"
    )
    drawable(drawing)
    with _progress() as report:
        interface = _job_on(topology, lfts, hosts, ppn, place, report)
        options, about, found = _timed(network, settings, interface, options, trial, grid, report)
    _show(options, facts_of(interface, about), found, json, drawing)
    return 0


@dataclass(frozen=True)
class SimulationPlan:
    """The simulations to run for a job.

    :param names: names of topompi's algorithms.
    :param others: names of other libraries, or, for kernels, of other orders.
    :param sizes: message sizes in bytes.
    :param root: root of a rooted collective.
    :param window: number of steps in flight; if it is None, each algorithm's own.
    :param jobs: number of simultaneous simulations.
    :param background: description of the second job, as the user gave it.
    """

    names: tuple[str, ...]
    others: tuple[str, ...]
    sizes: tuple[int, ...]
    root: int
    window: int | None
    jobs: int
    background: str


def _job_on(
    topology: str, lfts: str | None, hosts: str | None, ppn: int, place: str, report: Report
) -> TopologyInterface:
    """Return the virtual job that the command's options describe.

    :param topology: a topology source.
    :param lfts: path of the source's forwarding tables; None if they are in the source.
    :param hosts: a host list, a file, or a number N for the first N hosts; if it is None, all hosts.
    :param ppn: ranks per host.
    :param place: placement policy: block, cyclic or random:SEED.
    :param report: object that shows the progress of reading.
    :raises BenchmarkError: if the hosts or the policy do not exist.
    """
    routes = load_routes(topology, lfts, report)
    names = list(routes.fabric.hosts)
    if hosts is not None and hosts.isascii() and hosts.isdigit():
        if not 1 <= int(hosts) <= len(names):
            raise BenchmarkError(f"--hosts: expecting 1 to {len(names)} hosts of {topology}, got {hosts}")
        names = names[: int(hosts)]
    elif hosts is not None:
        names = read_hosts(hosts)
    try:
        ranks = placed(ppn * len(names), names, place)
    except ValueError as error:
        raise BenchmarkError(f"--place: {error}") from error
    return TopologyInterface.place(ranks, routes, source=topology, virtual=True)


def _timed(
    network: str,
    settings: dict[str, Any],
    interface: TopologyInterface,
    options: Options,
    trial: SimulationPlan,
    grid: str | None,
    report: Report,
) -> tuple[Options, dict[str, object], Findings]:
    """Run the simulations; return the options with the kernel's grid, facts about the network, and the times.

    :param network: simulator, one of ``NETWORKS``.
    :param settings: keyword arguments of the simulated network (``FlowArena``).
    :param interface: topology of the job.
    :param options: options of the run.
    :param trial: the simulations to run.
    :param grid: extents of a kernel's process grid; if it is None, its default.
    :param report: object that shows the progress.
    """
    name, given = options.benchmark, (trial.names, trial.others, trial.sizes)
    kernel = None
    if name in KERNELS:
        kernel = make_kernel(name, interface.rank_host.tolist(), grid, options.periodic, options.faces)
    if network == "packet":
        settings = {**settings, "routes": interface.routes}
    with FlowArena(network_of(interface), **settings) as arena:
        about: dict[str, object] = {
            "network": arena.describe(),
            "simulator": arena.simulator,
            "background": trial.background,
            "window": trial.window,
        }
        if kernel is None:
            found = study(
                arena, name, *given, root=trial.root, window=trial.window, jobs=trial.jobs, progress=report.step
            )
            return options, about, found
        of_kernel = KernelStudy(arena, kernel, interface)
        found = of_kernel.run(*given, jobs=trial.jobs, progress=report.step)
        return replace(options, grid=kernel.shape), about | of_kernel.about(), found


def _show(options: Options, facts: Circumstances, found: Findings, json: Path | None, drawing: Path | None) -> None:
    """Print the table, and write the record and the drawing if they are asked for."""
    print("\n".join(lines(options, facts, found)))
    if json is not None:
        write_text(json, record(options, facts, found).to_json())
    if drawing is not None and found.timed:
        draw(options, facts, found, drawing)


def _algorithms(collective: str, text: str) -> tuple[str, ...]:
    """Return the names of the algorithms to simulate; raise before any long work if one does not exist."""
    if collective in KERNELS:
        known = ours_of(collective)
        return known if text == "all" else tuple(_one_of("--algorithm", name, known) for name in _words(text))
    names = ALGORITHMS[_one_of("COLLECTIVE", collective, (*ALGORITHMS, *KERNELS))] if text == "all" else _words(text)
    try:
        for name in names:
            pieces_of(collective, name, 1)
    except ValueError as error:
        raise BenchmarkError(f"--algorithm: {error}") from error
    return tuple(names)


def _peers(collective: str, text: str) -> tuple[str, ...]:
    """Return the names of the libraries to simulate; empty if they have no models for this collective."""
    known = others_of(collective) if collective in KERNELS else tuple(LIBRARIES) if collective in METHODS else ()
    if text in ("none", "all") or not known:
        return () if text == "none" else tuple(known)
    return tuple(_one_of("--peers", name, known) for name in _words(text))


def _refuse_grid(collective: str, **given: object) -> None:
    """Raise if an option that only kernels have is given to a collective.

    :param collective: name of the collective or kernel.
    :param given: value of each option by its name; false if it is not given.
    """
    wrong = next((option for option, value in given.items() if value), None)
    if wrong is not None and collective not in KERNELS:
        raise BenchmarkError(f"--{wrong}: expecting a kernel ({', '.join(KERNELS)}) with it, got {collective}")


def _refuse_bracket(network: str, collective: str, *, bracket: bool) -> None:
    """Raise if ``--bracket`` is given with another network than ``packet``, or with a kernel."""
    if bracket and (network != "packet" or collective in KERNELS):
        raise BenchmarkError(
            f"--bracket: expecting --network packet and a collective with it, got {network}, {collective}"
        )


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(text.split(",")))


def _one_of(option: str, value: str, known: Collection[str]) -> str:
    if value not in known:
        raise BenchmarkError(f"{option}: expecting one of {', '.join(known)}, got {value!r}")
    return value


def _sizes(text: str) -> tuple[int, ...]:
    """Parse sizes in bytes, ascending: a list, or a range whose sizes double."""
    if ":" in text:
        return message_sizes(text, 1)
    return tuple(sorted({parse_bytes(part, "-m") for part in text.split(",")}))


@contextmanager
def _progress() -> Iterator[Report]:
    """A context of an object that shows the progress of reading a topology on the terminal."""
    with console(to_error=True).status("reading") as status:

        def told(what: str, done: int, total: int) -> None:
            status.update(f"{what} {done}/{total}" if total else what)

        yield Report(progress=told)


def main(arguments: Sequence[str]) -> int:
    """Run the command ``simulate``, and return its exit code; see ``run_command``.

    :param arguments: arguments after ``simulate``.
    """
    return run_command(app, "simulate", arguments)
