"""Alltoalls on a lossless network: time over the bound under flows, under packets, and with one queue per input.

python -m benchmarks.packets                       # the numbers of docs/lab/checks.md, some minutes
python -m benchmarks.packets --case small          # 64 hosts with one rank each
python -m benchmarks.packets --speed               # packet-hops/s
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from topompi.netsim import Hosts, Program
from topompi.netsim import run as flow
from topompi.netsim.packets import PRESETS, Settings, Tables, run
from topompi.schedules import Network, make
from topompi.topology import TopologyInterface, load
from topompi.topology.computed import compute_routes
from topompi.views.network import network_of
from topompi.views.program import program_of
from topompi.views.tables import tables_of

SPEC = "XGFT(2; 20,16; 1,16)@rate=4xFDR"
ALGORITHMS = ("pairwise", "at_once", "even", "colouring", "tacs1", "shift")
FDR = PRESETS["fdr"]
TOLERANCE = 0.01  # relative, of the flow model: completions within it are processed together


@dataclass(frozen=True)
class Case:
    """An alltoall on some hosts.

    :param ranks: ranks per host.
    :param nbytes: bytes of each message.
    :param random: number of hosts from which the job's hosts are drawn; 0 for the first hosts.
    :param hosts: number of the job's hosts.
    """

    ranks: int
    nbytes: int
    random: int = 0
    hosts: int = 64

    def job(self, seed: int) -> tuple[Network, Tables]:
        """Return the job's network, and its tables."""
        routes = compute_routes(load(SPEC).fabric)
        hosts = np.arange(self.hosts)
        if self.random:
            hosts = np.random.default_rng(seed).permutation(self.random)[: self.hosts]
        names = [routes.fabric.hosts[host] for host in hosts for _ in range(self.ranks)]
        interface = TopologyInterface.place(names, routes)
        if interface.routes is None:
            raise RuntimeError(f"{SPEC}: expecting routes, got none")
        return network_of(interface), tables_of(interface.routes, latency=FDR.latency)

    def program(self, algorithm: str, network: Network) -> Program:
        """Return the alltoall with the reference table's window: four steps with one rank per host, otherwise one."""
        windows = {"even": 4, "colouring": 4, "tacs1": 4} if self.ranks == 1 else dict.fromkeys(ALGORITHMS, 1)
        one = program_of(make("alltoall", algorithm, network), network, self.nbytes)
        return one if algorithm == "at_once" else replace(one, window=windows.get(algorithm, 1))


CASES = {
    "small": Case(1, 65536),
    "ranks": Case(16, 65536),
    "random": Case(16, 65536, random=160),
    "short": Case(8, 4096),
}
VARIANTS = {
    "packets": FDR.settings,
    "16 KiB": replace(FDR.settings, buffer=16384),
    "one queue": replace(FDR.settings, queueing="input"),
}


def ratios(case: Case, algorithm: str, variant: Settings, seeds: int) -> list[float]:
    """Return the time over the bound for each seed."""
    found = []
    for seed in range(seeds):
        network, tables = case.job(seed)
        done = run(tables, [case.program(algorithm, network)], hosts=FDR.hosts, settings=variant, seed=seed)
        found.append(float(done.job_seconds[0] / done.bounds[0]))
    return found


def of_flows(case: Case, algorithm: str) -> float:
    """Return the time over the bound if messages start without cost and all at once."""
    network, tables = case.job(0)
    done = flow(tables.wiring(), [case.program(algorithm, network)], hosts=Hosts(), tolerance=TOLERANCE)
    return float(done.job_seconds[0] / done.bounds[0])


def table(names: list[str], seeds: int) -> Iterator[str]:
    """Yield the table's rows: the mean over the seeds, with their spread if it is above 0.005."""
    for name in names:
        case = CASES[name]
        yield f"{name}: 64 hosts x {case.ranks}, {case.nbytes // 1024} KiB, {seeds} seed(s)"
        for algorithm in ALGORITHMS:
            cells = [f"flow {of_flows(case, algorithm):.2f}"] if case.ranks == 1 else []
            for variant, settings in VARIANTS.items():
                found = ratios(case, algorithm, settings, seeds)
                spread = max(found) - min(found)
                cells.append(f"{variant} {np.mean(found):.2f}" + (f" (+-{spread / 2:.2f})" if spread > 0.005 else ""))
            yield f"  {algorithm:12} " + "  ".join(cells)


def speed() -> Iterator[str]:
    """Yield packet-hops/s of whole runs, with the preparation of arrays."""
    for case, algorithm in ((CASES["small"], "at_once"), (CASES["ranks"], "shift"), (CASES["ranks"], "at_once")):
        network, tables = case.job(0)
        one = case.program(algorithm, network)
        began = time.perf_counter()
        done = run(tables, [one], hosts=FDR.hosts, settings=FDR.settings)
        took = time.perf_counter() - began
        hops = done.counts["hops"] / 1e6
        yield f"64 x {case.ranks} {algorithm}: {took:.2f} s, {hops:.1f} M hops, {hops / took:.1f} M hops/s"


def main() -> None:
    """Print the selected table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    for line in speed() if options.speed else table(options.case or list(CASES), options.seeds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
