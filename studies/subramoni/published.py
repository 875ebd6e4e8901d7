"""Published measurements beside the results of flows and packets for the same jobs.

    python -m studies subramoni published -o docs/lab     # writes the table of docs/lab/published.md

Both models run the same programs on the same hosts: those of the preset ``fdr``, at the rates of the systems. Results
are medians of three seeds. The reference is H. Subramoni, *Topology-Aware MPI Communication and Scheduling for High
Performance Computing Systems*, 2013.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from osu_like_bench.simulate.flowarena import repeated_alltoall
from topompi.netsim import RECEIVE, SEND, Hosts, Program, Tables
from topompi.netsim import run as flows
from topompi.netsim.packets import PRESETS
from topompi.netsim.packets import run as packets
from topompi.schedules import Network, make
from topompi.schedules.network import DEPTH_FIRST
from topompi.topology import Routes, TopologyInterface, load_routes
from topompi.views.network import network_of
from topompi.views.program import program_of
from topompi.views.tables import tables_of

from .jobs import SEED, allocated, view, view_of_three_switches

FDR = PRESETS["fdr"]
SDR, DDR, FAST = 1e9, 2e9, 6.75e9  # bytes/s of InfiniBand SDR, DDR and FDR links
COPY = 1.5e9  # bytes/s inside a host of the age of Ranger and Glenn; assumed
SEEDS = range(3)
MIB, KIB = 1 << 20, 1 << 10


@dataclass(frozen=True)
class Job:
    """A job that is simulated under flows and under packets.

    :param interface: topology of the job, with the places of its ranks.
    :param rate: bytes/s of links whose rate the fabric does not know.
    :param hosts: times that hosts add to messages.
    :param seeds: seeds of the runs, of which the median counts.
    """

    interface: TopologyInterface
    rate: float
    hosts: Hosts = FDR.hosts
    seeds: Sequence[int] = SEEDS

    @property
    def network(self) -> Network:
        """Network for the generators of schedules."""
        return network_of(self.interface)

    @property
    def tables(self) -> Tables:
        """Tables for the simulation of programs."""
        routes = self.interface.routes
        assert routes is not None  # all systems here have routes
        return tables_of(routes, rate=self.rate, latency=FDR.latency)

    def seconds(self, program: Program, beside: Sequence[Program] = ()) -> np.ndarray:
        """Return the seconds under flows and under packets, shape (2,).

        :param program: the job's program.
        :param beside: programs of other jobs, which run at the same time.
        """
        tables, programs = self.tables, [program, *beside]
        found = [
            (
                flows(tables, programs, hosts=self.hosts, seed=seed).job_seconds[0],
                packets(tables, programs, hosts=self.hosts, settings=FDR.settings, seed=seed).job_seconds[0],
            )
            for seed in self.seeds
        ]
        return np.array(np.median(found, axis=0))

    def run(
        self, collective: str, algorithm: str, nbytes: int, beside: Sequence[Program] = (), *, blind: bool = False
    ) -> np.ndarray:
        """Return the seconds of a schedule under flows and under packets, shape (2,).

        :param collective: name of the collective.
        :param algorithm: name of the algorithm.
        :param nbytes: bytes of the message, or of a block.
        :param beside: programs of other jobs, which run at the same time.
        :param blind: whether the schedule is made without knowledge of switches.
        """
        network = self.network
        made = make(collective, algorithm, without_clusters(network) if blind else network)
        return self.seconds(program_of(made, network, nbytes / made.blocks), beside)


def without_clusters(network: Network) -> Network:
    """Return the same ranks, hosts and links, without the clusters of hosts below switches, and no order by routes."""
    return replace(network, clusters=np.zeros((1, network.num_hosts), dtype=np.int64), order=DEPTH_FIRST)


def three_switches() -> Job:
    """Return the job of the reference's section 3: 4 hosts of 16 ranks on A, 29 of 8 on B, two DDR links each to C."""
    return Job(view_of_three_switches(), DDR, replace(FDR.hosts, copy_rate=COPY))


HEAD = ("figure", "what", "measured there", "flows", "packets", "agree, and why")
Line = tuple[str, str, np.ndarray, str]  # row: what, measured there, flows and packets (a row per draw), why

RESTS = "no: the second job here never rests, and takes its share of the trunks"
STORES = "no: a leader here stores all that it sends on, and a message costs its receiver 0.3 us only"
SLOWEST = "no: half; the slow hosts' links bound both trees"
SWITCHES = "no: the preset has 0.1 us a switch and 0.6 us in hosts; there a switch costs 0.2 to 0.44 us"
NETWORK = "no, too much: here only the network costs; there hosts cost, and sharing hides behind them"


def figure_3_1() -> Iterator[Line]:
    """Yield the rows of figure 3.1: gather and scatter of 296 ranks, 16 KiB each."""
    job, size = three_switches(), 16 * KIB
    quiet = job.run("gather", "binomial", size)
    for background, paper in ((MIB, "1.21"), (4 * MIB, "about 1.31")):
        beside = [repeated_alltoall(33, background)]
        loaded = job.run("gather", "binomial", size, beside)
        yield f"default gather beside an alltoall of {background >> 20} MiB", paper, loaded / quiet, RESTS
        ours = job.run("gather", "leaders", size, beside)
        yield "gain of gather over leaf leaders beside it", "1.50 to 1.54", loaded / ours, STORES
    yield (
        "gain of gather over host leaders beside it",
        "",
        loaded / job.run("gather", "nodes", size, beside),
        "hosts instead of leaves gather first",
    )
    found = job.run("scatter", "binomial", size) / job.run("scatter", "leaders", size)
    yield "gain of scatter over leaf leaders, quiet", "1.23", found, STORES


def figure_4_3() -> Iterator[Line]:
    """Yield the rows of figure 4.3: broadcast of 1 MiB on 1,024 ranks, with hosts in random order."""
    random = np.random.default_rng(SEED)
    chosen = random.choice(1024, 64, replace=False)
    job = Job(view(load_routes("ranger"), chosen.tolist(), 16), SDR, replace(FDR.hosts, copy_rate=COPY))
    blind = job.run("bcast", "scatter_allgather_hosts", MIB, blind=True)
    ordered = job.run("bcast", "scatter_allgather_hosts", MIB)
    yield "gain of ordering scatter-allgather, 1 MiB", "1.14", blind / ordered, "yes: the ring crosses each border once"
    found = job.run("bcast", "knomial", MIB) / job.run("bcast", "reordered", MIB)
    yield "gain of ordering the k-nomial tree, 1 MiB", "", found, "MVAPICH runs scatter-allgather there"
    found = job.run("bcast", "knomial", KIB) / job.run("bcast", "reordered", KIB)
    yield "gain of ordering the k-nomial tree, 1 KiB", "1.00", found, "yes: start-ups decide"


def figure_4_4() -> Iterator[Line]:
    """Yield the rows of figure 4.4: broadcast on 16 SDR and 16 DDR hosts of 8 ranks, over five random orders."""
    routes, hosts = load_routes("glenn"), replace(FDR.hosts, copy_rate=COPY)
    gains: dict[int, list[np.ndarray]] = {16 * KIB: [], MIB: []}
    over: dict[int, list[np.ndarray]] = {16 * KIB: [], MIB: []}
    for seed in range(SEED, SEED + 5):
        random = np.random.default_rng(seed)
        slow, fast = random.choice(877, 16, replace=False), 877 + random.choice(650, 32, replace=False)
        mixed = random.permutation(np.concatenate((slow, fast[:16])))
        job, pure = (Job(view(routes, some.tolist(), 8), SDR, hosts, (0,)) for some in (mixed, np.sort(fast)))
        for size, found in gains.items():
            ordered = job.run("bcast", "dft_rate", size)
            found.append(job.run("bcast", "knomial", size) / ordered)
            over[size].append(ordered / pure.run("bcast", "dft_rate", size))
    for size, found in gains.items():
        yield f"gain of the tree by rates, {size >> 10} KiB", "1.7 to 2.0", np.array(found), SLOWEST
        paper = "1.0" if size < MIB else ""
        yield f"it over all-DDR hosts, {size >> 10} KiB", paper, np.array(over[size]), SLOWEST if paper else "-"


def figure_6_2() -> Iterator[Line]:
    """Yield the rows of figure 6.2: time of alltoall on hosts that share links, over its time on other hosts."""
    routes = load_routes("stampede")
    for hosts, paper in ((4, "1.15"), (8, "1.21")):
        for size in (16 * KIB, 256 * KIB):
            times = []
            for share in (True, False):
                half = hosts // 2
                first = [pair + 16 * other for pair in range(half // 2) for other in (0, 1)] if share else range(half)
                job = Job(view(routes, [*first, *(20 + host for host in first)], 16), FAST)
                times.append(job.run("alltoall", "pairwise", size))
            yield f"{hosts * 16} ranks on {hosts} hosts, {size >> 10} KiB", paper, times[0] / times[1], NETWORK


def figure_6_7() -> Iterator[Line]:
    """Yield the rows of figure 6.7: alltoall of 1,024 ranks on 64 hosts of 5:4 leaves."""
    job = Job(allocated("stampede", 64, 16, among=64), FAST, seeds=(0,))
    for size in (KIB, 16 * KIB):
        pairwise = job.run("alltoall", "pairwise", size)
        yield (
            f"gain of tacs1 over pairwise, 1,024 ranks, {size >> 10} KiB",
            "up to 1.15",
            pairwise / job.run("alltoall", "tacs1", size),
            "no: without barriers ranks drift, and conflicts spread; see below",
        )


def table_1_1() -> Iterator[Line]:
    """Yield the rows of table 1.1: the time of 8 bytes between two hosts, by the number of switches between them."""
    for system, paper in (("ranger", (1.57, 2.45, 2.85)), ("stampede", (1.07, 1.76, 2.54))):
        routes = load_routes(system)
        for hops, measured in zip((1, 3, 5), paper, strict=True):
            job = Job(view(routes, pair_at(routes, hops), 1), SDR if system == "ranger" else FAST)
            one = message(8)
            quiet = replace(job, hosts=replace(job.hosts, skew=0.0))
            yield f"us of 8 bytes, {hops} switches, {system}", f"{measured}", quiet.seconds(one) * 1e6, SWITCHES


def message(nbytes: int) -> Program:
    """Return the program of one message from rank 0 to rank 1."""
    ends, once = np.arange(2), np.zeros(2, dtype=np.int64)
    return Program(ends, ends, once, np.array([SEND, RECEIVE]), ends[::-1], np.full(2, float(nbytes)))


def pair_at(routes: Routes, hops: int) -> list[int]:
    """Return two hosts with ``hops`` switches between them."""
    other = next(host for host in range(1, routes.fabric.num_hosts) if switches(routes, host) == hops)
    return [0, other]


def switches(routes: Routes, host: int) -> int:
    """Return the number of switches between host 0 and another host."""
    tables = tables_of(routes, rate=1.0, latency=0.0)
    return int((tables.paths(np.array([0]), np.array([host])) >= 0).sum()) - 1


FIGURES: dict[str, Callable[[], Iterator[Line]]] = {
    "3.1": figure_3_1,
    "4.3": figure_4_3,
    "4.4": figure_4_4,
    "6.2": figure_6_2,
    "6.7": figure_6_7,
    "1.1": table_1_1,
}


def words(found: np.ndarray) -> str:
    """Format one number, or the least and the most of several."""
    return f"{found[0]:.2f}" if len(found) == 1 else f"{found.min():.2f} to {found.max():.2f}"


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the whole table, computed one after another."""
    for name, lines in FIGURES.items():
        for what, paper, found, why in lines():
            yield (name, what, paper or "-", *map(words, np.atleast_2d(found).T), why)
