"""Rings in depth-first order and in the order that follows routes: busiest link, and times of 16 MiB.

python -m benchmarks.orders                     # the table of docs/lab/orders.md, about two minutes
python -m benchmarks.orders --only torus        # the fabrics whose names contain a word
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topompi.netsim import run as flow
from topompi.netsim.packets import PRESETS, Tables
from topompi.netsim.packets import run as packets
from topompi.netsim.packets.deadlock import least_hop_lanes
from topompi.schedules import Network, make
from topompi.schedules.analysis.loads import messages_of
from topompi.schedules.network import DEPTH_FIRST
from topompi.schedules.orders import depth_first_hosts, with_order
from topompi.schedules.ringsearch import RingLoads
from topompi.topology import Routes, TopologyInterface, load_routes
from topompi.views.network import network_of
from topompi.views.program import program_of, wiring_of

from .paths import SHARED_DATA
from .schedules import facts

FDR = PRESETS["fdr"]
NBYTES = 16 << 20
MOST_SIMULATED = 256  # hosts; a ring of n hosts has 2 n (n - 1) messages
MOST_PACKETS = 72
ENGINES = ("minhop", "dfsssp", "nue")
JANUS = SHARED_DATA / "fabrics" / "janus-2014.ibnetdiscover.xz"


Slow = Callable[[Tables, np.random.Generator], NDArray[np.integer]]


def _between_switches(tables: Tables, random: np.random.Generator) -> NDArray[np.integer]:
    """One link in ten between switches."""
    inner = np.flatnonzero((tables.source >= tables.first_switch) & (tables.target >= tables.first_switch))
    return random.choice(inner, len(inner) // 10, replace=False)


def _of_one_host(tables: Tables, random: np.random.Generator) -> NDArray[np.integer]:
    """The link on which one host sends."""
    return random.choice(tables.uplink, 1)


@dataclass(frozen=True)
class Case:
    """A job with one rank per host.

    :param name: name of the fabric and the placement.
    :param spec: specification of a synthetic fabric, or the routing engine of tables of Janus.
    :param hosts: number of hosts; None for all.
    :param seed: seed of the random hosts and their random order; None for the first hosts in their own order.
    :param slow: function that returns the links that get half their rate.
    """

    name: str
    spec: str
    hosts: int | None = None
    seed: int | None = None
    slow: Slow | None = None

    @property
    def tables(self) -> Path:
        """The path of the tables of Janus."""
        return SHARED_DATA / "fabrics" / "derived-ibsim-opensm" / f"janus.{self.spec}.opensm-lfts.dump.xz"

    @property
    def missing(self) -> bool:
        """Whether the files of a real fabric are not here."""
        return self.spec in ENGINES and not (JANUS.exists() and self.tables.exists())

    @cached_property
    def job(self) -> tuple[list[str], Routes]:
        """The names of the job's hosts, in the order of its ranks, and the routes of the fabric."""
        real = self.spec in ENGINES
        routes = load_routes(JANUS, lfts=self.tables) if real else load_routes(self.spec)
        numbers = np.arange(routes.fabric.num_hosts)
        if self.seed is not None:
            numbers = np.random.default_rng(self.seed).permutation(numbers)
        numbers = np.sort(numbers[: self.hosts]) if real else numbers[: self.hosts]
        return [routes.fabric.hosts[one] for one in numbers], routes

    def network(self) -> Network:
        """Return the job's network."""
        network = network_of(TopologyInterface.place(*self.job))
        network = replace(network, latency=np.nan_to_num(network.latency, nan=FDR.latency))
        if self.slow is None:
            return network
        capacity = network.capacity.copy()
        capacity[self.slow(tables_of(network), np.random.default_rng(1))] /= 2
        return replace(network, capacity=capacity)


CASES = (
    Case("torus 4x4x4, block", "torus:4x4x4"),
    Case("torus 4x4x4, random", "torus:4x4x4", seed=1),
    Case("torus 8x8, block", "torus:8x8"),
    Case("torus 8x8, random", "torus:8x8", seed=1),
    Case("torus 8x8x4, random", "torus:8x8x4", seed=1),
    Case("torus 8x8x8, a quarter", "torus:8x8x8", hosts=128, seed=3),
    Case("torus 16x8x8, random", "torus:16x8x8", seed=1),
    Case("dragonfly 4,2,2, block", "dragonfly:4,2,2"),
    Case("dragonfly 4,2,2, random", "dragonfly:4,2,2", seed=1),
    Case("dragonfly 8,4,4, block", "dragonfly:8,4,4"),
    Case("XGFT 2:1, random", "XGFT(2; 8,8; 1,4)", seed=1),
    *(Case(f"Janus, {engine}, {hosts} random", engine, hosts, seed=2) for engine in ENGINES for hosts in (64, 256)),
    Case("torus 4x4x4, slow links", "torus:4x4x4", slow=_between_switches),
    Case("dragonfly 4,2,2, slow links", "dragonfly:4,2,2", slow=_between_switches),
    Case("XGFT 2:1, slow links", "XGFT(2; 8,8; 1,4)", slow=_between_switches),
    Case("torus 4x4x4, a slow host", "torus:4x4x4", slow=_of_one_host),
)


def tables_of(network: Network) -> Tables:
    """Return the links and next-hop links of a network as a simulation takes them."""
    wiring = wiring_of(network)
    if not isinstance(wiring, Tables):
        raise TypeError(f"expecting tables of next-hop links, got {type(wiring).__name__}")
    return wiring


def hosts_of(network: Network) -> NDArray[np.int64]:
    """Return the hosts in the order of the network's rings."""
    return network.order if network.order is not None and len(network.order) else depth_first_hosts(network)


def seconds(
    network: Network, collective: str, algorithm: str, blocks: int | None, *, by_packets: bool = False
) -> float:
    """Return the simulated seconds of a call of 16 MiB, as flows or as packets."""
    schedule = make(collective, algorithm, network, blocks=blocks)
    program = program_of(schedule, network, NBYTES / schedule.blocks)
    tables = tables_of(network)
    if not by_packets:
        return float(flow(tables, [program], hosts=FDR.hosts).job_seconds[0])
    sent = messages_of(schedule)
    ends = network.rank_host[np.stack((sent.source, sent.destination))]
    pairs = np.unique(np.concatenate((ends, ends[::-1]), axis=1), axis=1)  # requests and answers go the other way
    lanes = least_hop_lanes(tables, *pairs)
    settings = replace(FDR.settings, lanes=lanes, hop_lanes=lanes)
    return float(packets(tables, [program], hosts=FDR.hosts, settings=settings).job_seconds[0])


def row(case: Case) -> str:
    """Return the table's row of a case."""
    network = case.network()
    plain = replace(network, order=DEPTH_FIRST)
    began = time.perf_counter()
    routed = with_order(network)
    took = time.perf_counter() - began
    loads = RingLoads(network)
    before, after = (loads.judge(hosts_of(one)[None])[0][0] for one in (plain, routed))
    cells = [f"{case.name:28} {network.num_hosts:5} {before:6.2f} {after:6.2f} {took:7.3f}"]
    for collective, algorithm, blocks in (("allreduce", "ring", None), ("bcast", "chain", 512)):
        for by_packets, most in ((False, MOST_SIMULATED), (True, MOST_PACKETS)):
            if network.num_hosts > most:
                cells.append(f"{'-':>7} {'-':>7}")
                continue
            both = (seconds(one, collective, algorithm, blocks, by_packets=by_packets) for one in (plain, routed))
            cells.append(" ".join(f"{1e3 * one:7.2f}" for one in both))
    return "  ".join(cells)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="word in the names of the fabrics")
    options = parser.parse_args()
    print(facts())
    print(
        f"{'':28} {'':5} {'busiest link':>13} {'search':>7}  {'ring allreduce of 16 MiB, ms':^31}  {'chain bcast':^31}"
    )
    heads = "  ".join([f"{'flows':>15}", f"{'packets':>15}"] * 2)
    print(f"{'fabric':28} {'hosts':>5} {'before':>6} {'after':>6} {'s':>7}  {heads}")
    for case in CASES:
        if options.only in case.name:
            print(f"{case.name:28} not measured: no shared data" if case.missing else row(case), flush=True)


if __name__ == "__main__":
    main()
