"""The cost of a job's start with a topology service, beside the same steps of Subramoni (2013).

python -m benchmarks.service_overheads SOURCE [--lfts TABLES]; hosts are drawn at random, 16 ranks on each, as there.
Discovery is the question to the service, over the loopback, and the parsing of its answer; connected switches are the
clusters of each host at each depth; the delay matrices are those of hops and of rates. The broadcast sends the job's
part of the fabric to one rank per host, all on this machine.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence

from topompi.topology import Routes, TopologyInterface, load
from topompi.topology.client import ask

from .jobs import run_ranks
from .service import REPEATS, SIZES, serving

RANKS = 16  # per host
BROADCAST_SIZES = (8, 16, 32)
REFERENCE = {
    "discovery": (3.0, 5.2, 4.7, 17.5, 34.3, 123.7),
    "connected switches": (5.1, 4.2, 6.9),
    "delay matrix": (5.7, 23.7, 103.1),
    "broadcast": (0.5, 4.8, 5.9),
}


def main() -> None:
    """Print one row per step: our time / the reference's, in ms, for each number of hosts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="?")
    parser.add_argument("--lfts")
    parser.add_argument("--broadcast", action="store_true", help="used within")
    asked = parser.parse_args()
    if asked.broadcast:
        broadcast()
        return
    with serving(asked.source, asked.lfts) as (address, _, _):
        hosts = ask(address, {"request": "view", "fields": []})["hosts"]
        chooser = random.Random(1)
        jobs = [chooser.sample(hosts, size) for size in SIZES if size <= len(hosts)]
        steps = [steps_of(str(address), job) for job in jobs]
    print(f"{'ms: ours / reference':22}" + "".join(f"{len(job):>16}" for job in jobs))
    for name in ("discovery", "connected switches", "delay matrix"):
        row([step[name] for step in steps], name)
    for size in BROADCAST_SIZES:
        if run_ranks(size, ["-m", "benchmarks.service_overheads", "--broadcast"]):
            raise SystemExit(1)


def row(ours: Sequence[float], name: str) -> None:
    """Print the row of a step of a job's start."""
    theirs = [f"{value:g}" for value in REFERENCE[name]] + ["-"] * len(ours)
    print(f"{name:22}" + "".join(f"{f'{a:.2f} / {b}':>16}" for a, b in zip(ours, theirs, strict=False)))


def steps_of(server: str, job: list[str]) -> dict[str, float]:
    """Return the milliseconds of each step of a job's start."""
    found = load(server, hosts=job).routes
    names = [host for host in job for _ in range(RANKS)]
    return {
        "discovery": least(lambda: load(server, hosts=job)),
        "connected switches": least(lambda: connected(names, found)),
        "delay matrix": least(lambda: delays(names, found)),
    }


def connected(names: list[str], routes: Routes | None) -> None:
    view = TopologyInterface.place(names, routes)
    for depth in range(view.get_network_depth() + 1):
        for rank in range(0, view.num_ranks, RANKS):
            view.connected_switch_cluster_at_depth(rank, depth)


def delays(names: list[str], routes: Routes | None) -> None:
    view = TopologyInterface.place(names, routes)
    for by in ("hops", "rate"):
        view.delay_matrix(by)


def least(work: Callable[[], object]) -> float:
    """Return the least milliseconds of several runs, which is the time without other work on the machine."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times) * 1e3


def broadcast() -> None:
    """Broadcast a view with one host per rank, on each rank of a job; rank 0 prints the slowest rank's time."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    size, view = world.Get_size(), None
    if world.Get_rank() == 0:
        routes = load("stampede").routes
        assert routes is not None
        names = random.Random(1).sample(routes.fabric.hosts, size)
        view = TopologyInterface.place([host for host in names for _ in range(RANKS)], routes)
    times = []
    for _ in range(REPEATS):
        world.Barrier()
        began = time.perf_counter()
        world.bcast(view)
        times.append(world.allreduce(time.perf_counter() - began, MPI.MAX))
    if view is not None:
        theirs = REFERENCE["broadcast"][BROADCAST_SIZES.index(size)]
        sent = len(MPI.pickle.dumps(view))
        print(f"broadcast, {size} ranks: {min(times) * 1e3:.2f} / {theirs:g}, {sent:,} bytes", flush=True)


if __name__ == "__main__":
    main()
