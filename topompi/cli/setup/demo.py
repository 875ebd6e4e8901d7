"""``topompi demo``: a recorded fabric and a recorded program, drawn, mapped and simulated in a minute, without MPI."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.table import Table

from ...errors import TopompiError
from ...inputs.figures import size_name
from ...inputs.hostlist import compress
from ...inputs.slurm.environment import HOSTS as JOB_HOSTS
from ...mapping.graph import CommunicationGraph
from ...mapping.mappers.portfolio import best
from ...mapping.mapping import Mapping
from ...mapping.placement import place
from ...mapping.readers import read_graph
from ...netsim import RECEIVE, SEND, Hosts, Program, Tables, run
from ...schedules import Network, Schedule
from ...schedules.registry import make
from ...topology import Routes, TopologyInterface, load_routes
from ...topology.hostnames import require_hosts
from ...topology.summary import levels_of
from ...views.machine import machine_of
from ...views.network import network_of
from ...views.picture.fabricscene import DrawnJob, fabric_scene
from ...views.picture.loads import Loads, link_loads
from ...views.picture.names import amount, link_name
from ...views.picture.writers import write
from ...views.program import program_of, wiring_of
from ..terminal import Screen, console

if TYPE_CHECKING:
    from ...mpi.prediction.libraries import Library

__all__ = ["DemoError", "demo"]

DATA = "osu_like_bench"  # the package that contains the recorded data
FABRIC, TABLES, GRAPH = "fabrics/fattree64.ibnetdiscover.xz", "fabrics/fattree64.lfts.xz", "graphs/stencil3d.txt"
# Number of hosts of the job, number of ranks on each, and seed of the random order of the hosts. The job has every
# fourth host of the fabric, as a busy scheduler may leave them.
HOSTS, PER_HOST, SEED = 16, 2, 2
# For each simulated collective, the bytes of the call and the name of topompi's algorithm. The collective with the
# largest gain on this fabric, and one without gain, are among them.
COLLECTIVES = {
    "allreduce": (1 << 20, "halving"),
    "bcast": (1 << 20, "scatter_allgather"),
    "alltoall": (1 << 16, "even"),
}
LIBRARIES = ("Open MPI 5", "MPICH")  # names of the libraries of prediction.libraries.KNOWN
LATENCY = 1.5e-7  # assumed seconds of a link and the switch behind it, because the recorded report has no latencies
OVERHEADS = Hosts(send_overhead=1e-6, receive_overhead=1e-6, eager=8192)
TITLES = {"given": "in the order given", "mapped": "mapped by topompi"}
MOST_BUSY = 3  # number of busiest links that are printed


class DemoError(TopompiError, ValueError):
    """The recorded data of the demo are not installed."""


@dataclass(frozen=True, eq=False)
class DemoJob:
    """The job of the demonstration on its fabric.

    :param routes: routes of the whole fabric.
    :param names: host of each rank in the given order.
    :param graph: communication graph (bytes between ranks) of the recorded program.
    """

    routes: Routes
    names: list[str]
    graph: CommunicationGraph

    def network(self, names: list[str]) -> Network:
        """Return the network of the job with its ranks on the given hosts; all links have the latency ``LATENCY``.

        :param names: host of each rank.
        """
        found = network_of(TopologyInterface.place(names, self.routes, virtual=True))
        return replace(found, latency=np.full(len(found.capacity), LATENCY))

    def loads(self, names: list[str]) -> Loads:
        """Return the bytes of the program's messages on each link, with its ranks on the given hosts.

        :param names: host of each rank.
        """
        numbers = require_hosts(self.routes.fabric, names).astype(np.int64)
        return link_loads(self.routes, numbers, (self.graph.sources, self.graph.targets, self.graph.volume))

    def job(self, names: list[str]) -> DrawnJob:
        """Return the job in the form that pictures take: numbers of its hosts, and ranks on each host.

        :param names: host of each rank.
        """
        numbers = require_hosts(self.routes.fabric, names)
        of_host = {int(host): np.flatnonzero(numbers == host).tolist() for host in np.unique(numbers)}
        return DrawnJob(np.unique(numbers).astype(np.int64), of_host)


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the pictures.")] = Path("topompi-demo"),
) -> None:
    """Show in a minute what topompi does: a fabric, a job scattered over it, its traffic in the order given and mapped.

    Nothing is measured and no MPI library is needed: a fabric with OpenSM's tables and a program's communication graph
    come with topompi; times are predicted from the bytes on links, and simulated by topompi's own networks.
    """
    start, screen = time.monotonic(), console()
    output.mkdir(parents=True, exist_ok=True)
    stage = _stage(screen)
    _draw_job(screen, stage, output)
    mapped = _exchange(screen, stage)
    _busiest(screen, stage, mapped, output)
    _collectives(screen, stage)
    _next(screen, output, time.monotonic() - start)


def _say(screen: Screen, words: str, *, heading: bool = False) -> None:
    screen.print(words, style="bold" if heading else None, soft_wrap=True)


def _stage(screen: Screen) -> DemoJob:
    try:
        folder = files(DATA)
    except ModuleNotFoundError as error:
        raise DemoError(f"demo: expecting the package {DATA}, which is installed with topompi, got none") from error
    with as_file(folder / FABRIC) as fabric, as_file(folder / TABLES) as tables, as_file(folder / GRAPH) as graph:
        routes = load_routes(fabric, tables)
        program = read_graph(graph, HOSTS * PER_HOST)
    found = routes.fabric
    _say(screen, "1. A fabric, as ibnetdiscover and OpenSM report it", heading=True)
    _say(
        screen,
        f"   {found.num_hosts} hosts, {found.num_switches} switches, {found.num_links} directed links, {routes.engine}",
    )
    for level in levels_of(routes)[:-1]:
        ratio = level["oversubscription"]
        _say(screen, f"   level {level['level']}: {level['switches']} switches, {ratio:.3g} : 1 over-subscribed")
    hosts = sorted(found.hosts)[:: found.num_hosts // HOSTS]
    shuffled = [hosts[one] for one in np.random.default_rng(SEED).permutation(len(hosts)).tolist()]
    return DemoJob(routes, place(HOSTS * PER_HOST, shuffled, "block"), program)


def _draw_job(screen: Screen, stage: DemoJob, output: Path) -> None:
    _say(screen, "2. A job scattered over it", heading=True)
    hosts = sorted(set(stage.names))
    _say(screen, f"   {len(stage.names)} ranks, {PER_HOST} a host, on {compress(hosts)}")
    scene = fabric_scene(stage.routes, f"A job of {len(hosts)} hosts, scattered over a fabric", stage.job(stage.names))
    write(scene, output / "job.html")
    write(scene, output / "job.svg")
    _say(screen, f"   drawn: {output / 'job.html'} (zoom with the wheel), {output / 'job.svg'}")


def _exchange(screen: Screen, stage: DemoJob) -> list[str]:
    """Map the recorded program, print the times of its messages in both orders, and return each rank's mapped host."""
    graph, names = stage.graph, stage.names
    _say(screen, "3. A program's exchange, in the order given and mapped", heading=True)
    volume = amount(float(graph.volume.sum()), "B")
    _say(screen, f"   recorded: a stencil of {graph.size} ranks, {len(graph.targets)} pairs, {volume}")
    interface = TopologyInterface.place(names, stage.routes, virtual=True)
    machine = machine_of(interface)
    mapping = best(graph, machine, SEED, objective="busiest link")
    mapped = [mapping.hosts[host] for host in mapping.host_of_rank.tolist()]
    given = Mapping.identity(machine, graph.size)
    table = Table("   order", "predicted", "simulated", "within hosts", "ranks moved", box=None, pad_edge=False)
    times = []
    for name, hosts, found in (("given", names, given), ("mapped", mapped, mapping)):
        loads, seconds = stage.loads(hosts), _simulated(stage, hosts)
        times.append(seconds)
        inside = _share_within(graph, found)
        moved = sum(one != other for one, other in zip(hosts, names, strict=True))
        table.add_row(f"   {name}", _ms(loads.seconds.max()), _ms(seconds), f"{inside:.0%}", str(moved))
    screen.print(table)
    _say(screen, "   predicted: the busiest link's bytes at its rate; simulated: all messages share the links at once")
    _say(screen, f"   the mapped exchange is {times[0] / times[1]:.2f}x as fast by simulation")
    return mapped


def _share_within(graph: CommunicationGraph, mapping: Mapping) -> float:
    host = mapping.host_of_rank
    return float(graph.volume[host[graph.sources] == host[graph.targets]].sum() / graph.volume.sum())


def _simulated(stage: DemoJob, names: list[str]) -> float:
    """Return the simulated seconds until all messages of the graph, which all ranks send at once, have arrived."""
    network, graph = stage.network(names), stage.graph
    apart = graph.sources != graph.targets
    source, target, volume = graph.sources[apart], graph.targets[apart], graph.volume[apart].astype(np.float64)
    program = Program(
        network.rank_host,
        rank=np.concatenate((source, target)),
        step=np.zeros(2 * len(source), dtype=np.int64),
        kind=np.repeat([SEND, RECEIVE], len(source)),
        peer=np.concatenate((target, source)),
        amount=np.tile(volume, 2),
        name="exchange",
    )
    return float(run(wiring_of(network), [program], hosts=OVERHEADS).job_seconds[0])


def _busiest(screen: Screen, stage: DemoJob, mapped: list[str], output: Path) -> None:
    _say(screen, "4. The busiest links, before and after", heading=True)
    full = float(stage.loads(stage.names).seconds.max())  # link widths have the same scale in both pictures
    for name, names in (("given", stage.names), ("mapped", mapped)):
        loads = stage.loads(names)
        busy = [
            f"{link_name(stage.routes.fabric, link)} {amount(loads.bytes[link], 'B')}"
            for link in loads.busiest(MOST_BUSY)
        ]
        _say(screen, f"   {name:<7} {'; '.join(busy)}")
        write(
            fabric_scene(stage.routes, f"A program's exchange, ranks {TITLES[name]}", stage.job(names), loads, full),
            output / f"{name}.html",
        )
    _say(screen, f"   drawn: {output / 'given.html'}, {output / 'mapped.html'}")


def _collectives(screen: Screen, stage: DemoJob) -> None:
    """Simulate collectives over all hosts by algorithms of MPI libraries and of topompi, and print the times."""
    from ...mpi.prediction.libraries import KNOWN
    from ...netsim.packets import running

    model = "flows" if running.Engine is None else "packets"
    hosts = sorted(stage.routes.fabric.hosts)
    given = [hosts[one] for one in np.random.default_rng(SEED).permutation(len(hosts)).tolist()]
    network = stage.network(given)
    _say(screen, f"5. Collectives of all {len(hosts)} hosts in random order, one rank a host", heading=True)
    table = Table("   collective", *LIBRARIES, "topompi", "times as fast", box=None, pad_edge=False)
    patterns: dict[str, list[str]] = {name: [] for name in (*LIBRARIES, "topompi")}
    for collective, (size, algorithm) in COLLECTIVES.items():
        schedules = [_of_library(library, collective, size, network) for library in KNOWN]
        schedules.append(make(collective, algorithm, network))
        times = [_seconds(schedule, network, size) for schedule in schedules]
        for found, schedule in zip(patterns.values(), schedules, strict=True):
            found.append(schedule.algorithm)
        gain = min(times[:-1]) / times[-1]
        name = f"   {collective}, {size_name(size)}"
        table.add_row(name, *map(_ms, times), f"{gain:.2f}x" if gain > 1 else f"{gain:.2f}x: the library's")
    screen.print(table)
    for name, algorithms in patterns.items():
        _say(screen, f"   {name}: {'; '.join(algorithms)}")
    _say(
        screen,
        f"   simulated as {model}; compared with the faster library, whose algorithm runs if it is faster than ours",
    )


def _of_library(library: Library, collective: str, size: int, network: Network) -> Schedule:
    """Return the schedule of the algorithm that an MPI library chooses; it takes all hosts as equally far apart."""
    from ...mpi.prediction.libraries import CallShape

    decision = library.decide(CallShape(collective.capitalize(), size, np.asarray(network.rank_host)))
    if decision is None:
        raise DemoError(f"demo: expecting a known algorithm of {library.name} for {collective}, got none")
    return decision.schedule(network)


def _seconds(schedule: Schedule, network: Network, size: int) -> float:
    """Return the simulated seconds of a schedule, by the model of packets if it is compiled, else by that of flows.

    :param schedule: the schedule.
    :param network: the network of its ranks.
    :param size: bytes of the call's message; for an alltoall, bytes from each rank to each other one.
    """
    from ...netsim import packets

    block = size if schedule.collective == "alltoall" else -(-size // schedule.blocks)
    program, wiring = program_of(schedule, network, block), wiring_of(network)
    if packets.running.Engine is None or not isinstance(wiring, Tables):
        return float(run(wiring, [program], hosts=OVERHEADS).job_seconds[0])
    fdr = packets.PRESETS["fdr"]
    return float(packets.run(wiring, [program], hosts=fdr.hosts, settings=fdr.settings).job_seconds[0])


def _next(screen: Screen, output: Path, seconds: float) -> None:
    _say(screen, f"Done in {seconds:.0f} s.", heading=True)
    job = os.environ.get(JOB_HOSTS)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        _say(screen, "as root, real MPI on emulated links: osu_like_bench emulate run --help")
    if job:
        command = "scontrol show topology > topology.txt && topompi topology draw topology.txt -o job.html"
        _say(screen, f"your job: {job}; next command: {command}")
    else:
        _say(screen, "your job: none here (no Slurm job); next command: topompi doctor")


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.2f} ms"
