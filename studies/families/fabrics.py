"""Simulated times of allreduces on trees, tori and a dragonfly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from topompi.inputs.figures import size_name
from topompi.netsim import Program, Tables
from topompi.netsim import run as flow
from topompi.netsim.packets import PRESETS, least_hop_lanes, run
from topompi.schedules import Network, Schedule, make
from topompi.schedules.registry import suited
from topompi.schedules.symmetric.swing import allgather_swing, allreduce_swing, reduce_scatter_swing
from topompi.schedules.trees import depth_first, rank_clusters
from topompi.topology import TopologyInterface, load_routes
from topompi.views.network import network_of
from topompi.views.program import program_of
from topompi.views.tables import tables_of

__all__ = [
    "CASES",
    "ON_PORTS",
    "PACKETS",
    "SIZES",
    "Case",
    "head_of",
    "ports_rows_of",
    "program_of_call",
    "rows_of",
    "simulated",
]

FDR = PRESETS["fdr"]
FORMER = ("doubling", "halving", "ring")
NEW = ("grouped",)
ON_TORI = ("bucket", "swing_ports", "bucket_ports")  # and swing
ONE_PORT = ("ring", "grouped", "swing", "bucket", "bine")
SWINGS = {"allgather": allgather_swing, "allreduce": allreduce_swing, "reduce_scatter": reduce_scatter_swing}
SIZES = tuple(kib << 10 for kib in (1, 16, 64, 256, 1024, 16384))


@dataclass(frozen=True)
class Case:
    """A job with one rank per host.

    :param spec: fabric.
    :param number: number of hosts.
    :param seed: seed of the hosts' random order; None for the first hosts in the fabric's order.
    """

    spec: str
    number: int
    seed: int | None = None

    def __str__(self) -> str:
        return f"`{self.spec}`, {self.number} {'in order' if self.seed is None else 'at random'}"

    @cached_property
    def job(self) -> tuple[Network, Tables]:
        """The network of the job, and the tables of its simulation."""
        routes = load_routes(f"{self.spec}{',' if '@' in self.spec else '@'}rate=4xFDR")
        hosts = np.array(routes.fabric.hosts)
        chosen = hosts if self.seed is None else np.random.default_rng(self.seed).permutation(hosts)
        interface = TopologyInterface.place(chosen[: self.number].tolist(), routes)
        assert interface.routes is not None
        return network_of(interface), tables_of(interface.routes, latency=FDR.latency)

    def seconds(self, algorithm: str, nbytes: int, model: str, collective: str = "allreduce") -> float:
        """The simulated seconds of one call.

        :param algorithm: name of the algorithm.
        :param nbytes: size of the vector, or of all shares together, in bytes.
        :param model: ``flows`` or ``packets``.
        :param collective: allreduce, allgather or reduce_scatter.
        """
        network, tables = self.job
        return simulated(program_of_call(algorithm, network, nbytes, collective), tables, model)


def program_of_call(algorithm: str, network: Network, nbytes: int, collective: str = "allreduce") -> Program:
    """The program of one call.

    :param algorithm: name of the algorithm.
    :param network: the job's network.
    :param nbytes: bytes of the vector, or of all shares together.
    :param collective: allreduce, allgather or reduce_scatter.
    """
    schedule = _made(algorithm, network, collective)
    parts = 1 if collective == "allreduce" else network.num_ranks
    return program_of(schedule, network, nbytes / (parts * schedule.blocks))


def _made(algorithm: str, network: Network, collective: str) -> Schedule:
    """The schedule of an algorithm, also of those that are no algorithms of topompi's own.

    These are ``bine``, Swing over the ranks in depth-first order; ``bucket``, which fills one port of a host here; and
    ``bucket_ports``, which fills all.
    """
    if algorithm == "bine":
        return SWINGS[collective](depth_first(rank_clusters(network), network.num_ranks))
    if algorithm == "bucket":
        return make(collective, algorithm, network, ports=1)
    return make(collective, {"bucket_ports": "bucket"}.get(algorithm, algorithm), network)


def simulated(program: Program, tables: Tables, model: str) -> float:
    """The simulated seconds of a program alone on a network, with the hosts and switches of the preset ``fdr``.

    :param program: the program.
    :param tables: routes of the network.
    :param model: ``flows`` or ``packets``.
    """
    if model == "flows":
        return float(flow(tables, [program], hosts=replace(FDR.hosts, skew=0.0)).job_seconds[0])
    one, other = np.nonzero(~np.eye(int(program.hosts.max()) + 1, dtype=bool))
    lanes = least_hop_lanes(tables, one, other)
    settings = replace(FDR.settings, lanes=lanes, hop_lanes=lanes)
    return float(run(tables, [program], hosts=FDR.hosts, settings=settings).job_seconds[0])


TREES = ("XGFT(2; 8,3; 1,8)", "XGFT(2; 8,3; 1,4)", "XGFT(2; 8,6; 1,8)", "XGFT(2; 8,6; 1,4)")
CASES = (
    Case(TREES[0], 24),
    Case(TREES[1], 24),
    Case(TREES[2], 48),
    Case(TREES[3], 48),
    Case(TREES[3], 37, 1),
    Case("torus:8x8", 64),
    Case("torus:8x8", 64, 1),
    Case("torus:4x4x4", 64),
    Case("torus:6x6", 36),
    Case("torus:4x4x4@ports=6", 64),
    Case("torus:6x5x2@ports=6", 60),
    Case("dragonfly:4,2,2", 72),
    Case("dragonfly:4,2,2", 64, 1),
)
PACKETS = (CASES[0], CASES[1], CASES[4], CASES[5])


ON_PORTS = (CASES[9], CASES[10], Case("torus:8x8@ports=4", 64))


def rows_of(cases: Sequence[Case], sizes: Sequence[int], model: str) -> Iterator[list[str]]:
    """Yield a row for the fastest former algorithm of each case, then one for each new one.

    The first has microseconds and the algorithm's name; the others say how many times as fast each new one is.

    :param cases: fabrics with jobs.
    :param sizes: bytes of the vector.
    :param model: ``flows`` or ``packets``.
    """
    for case in cases:
        former = []
        for nbytes in sizes:
            seconds = {name: case.seconds(name, nbytes, model) for name in FORMER}
            best = min(seconds, key=seconds.__getitem__)
            former.append((seconds[best], best))
        yield [str(case), "fastest former, us", *(f"{1e6 * seconds:,.0f} {name}" for seconds, name in former)]
        known = suited("allreduce", case.job[0])
        ports = case.job[0].ports > 1
        tori = [name for name in ON_TORI if "bucket" in known and (ports or not name.endswith("_ports"))]
        for name in (*NEW, *("swing",) * bool(tori), *tori, "bine"):
            times = [case.seconds(name, nbytes, model) for nbytes in sizes]
            ratios = (before[0] / now for before, now in zip(former, times, strict=True))
            yield ["", f"`{name}`", *(f"{ratio:.2f}" for ratio in ratios)]


def ports_rows_of(cases: Sequence[Case], sizes: Sequence[int]) -> Iterator[list[str]]:
    """Yield rows of allgathers and reduce-scatters by flows, for hosts that can fill several links at the same time.

    The first of a case and collective has the microseconds and the name of the fastest algorithm with one port; the
    others say how many times as fast the algorithms with all ports are.

    :param cases: fabrics with jobs.
    :param sizes: bytes of all shares together.
    """
    for case, collective in product(cases, ("allgather", "reduce_scatter")):
        best = []
        for nbytes in sizes:
            best.append(min((case.seconds(name, nbytes, "flows", collective), name) for name in ONE_PORT))
        yield [str(case), collective, "fastest, us", *(f"{1e6 * seconds:,.0f} {name}" for seconds, name in best)]
        for name in ("swing_ports", "bucket_ports"):
            times = [case.seconds(name, nbytes, "flows", collective) for nbytes in sizes]
            yield ["", "", f"`{name}`", *(f"{one[0] / now:.2f}" for one, now in zip(best, times, strict=True))]


def head_of(sizes: Sequence[int]) -> list[str]:
    """The head of the table."""
    return ["hosts", "algorithm", *map(size_name, sizes)]
