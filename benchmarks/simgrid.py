"""Flows beside SimGrid on 128 to 512 hosts: ``python -m benchmarks.simgrid [HOSTS ...]``; needs SimGrid.

The trees are ``XGFT(2; 16,h; 1,8)`` with one rank per host, messages have 100,000 bytes, and all ranks start together.
The bound is the time that the busiest link needs for the schedule's bytes; a time below it is an error of SimGrid's
lazy update of flows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from studies.simgrid import Arena
from topompi.netsim import run
from topompi.schedules import make
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of
from topompi.views.program import program_of, wiring_of

RATE, LATENCY, NBYTES = 1e9, 1e-7, 100_000
SCHEDULES = (("bcast", "knomial"), ("allgather", "ring"), ("alltoall", "shift"))
TIMEOUT = 120.0  # time limit of one run of SimGrid, in seconds


@dataclass(frozen=True)
class Pair:
    """The results of a schedule in both models.

    :param ours: seconds under flows.
    :param theirs: seconds under SimGrid, NaN if it failed.
    :param bound: seconds that the busiest link needs.
    :param took: real seconds that flows and SimGrid needed for the simulation.
    """

    ours: float
    theirs: float
    bound: float
    took: tuple[float, float]


def pairs(hosts: int) -> Iterator[tuple[str, Pair]]:
    """Yield each schedule on ``hosts`` hosts, a multiple of 16, with its results."""
    routes = load(f"XGFT(2; 16,{hosts // 16}; 1,8)").routes
    assert routes is not None  # every XGFT has routes
    network = network_of(TopologyInterface.place(routes.fabric.hosts, routes))
    links = len(network.capacity)
    network = replace(network, capacity=np.full(links, RATE), latency=np.full(links, LATENCY))
    with Arena(network, timeout=TIMEOUT) as arena:
        for collective, algorithm in SCHEDULES:
            schedule = make(collective, algorithm, arena.network)
            begun = time.perf_counter()
            ours = run(wiring_of(network), [program_of(schedule, network, NBYTES)])
            between = time.perf_counter()
            theirs = arena.time(schedule, NBYTES)
            took = between - begun, time.perf_counter() - between
            seconds = theirs if isinstance(theirs, float) else np.nan
            yield f"{collective} {algorithm}", Pair(float(ours.job_seconds[0]), seconds, float(ours.bounds[0]), took)


def main() -> None:
    """Print a row for each schedule and number of hosts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hosts", nargs="*", type=int, default=[128, 256, 512])
    chosen = parser.parse_args().hosts
    print("| hosts | schedule | flows over SimGrid | SimGrid over the bound | flows took | SimGrid took |")
    print("| --- | --- | --- | --- | --- | --- |")
    for hosts in chosen:
        for name, one in pairs(hosts):
            over = one.theirs / one.bound
            note = ", which cannot be" if over < 1 else ""
            print(
                f"| {hosts} | {name} | {one.ours / one.theirs:.4f} | {over:.3f}{note} | {one.took[0]:.2f} s "
                f"| {one.took[1]:.1f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
