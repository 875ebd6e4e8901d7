"""The cost of communicators that are made, used never or once, and freed: ``python -m benchmarks.lifetimes``.

There is one job per place: the real hosts, a virtual placement, the same with rules that leave calls to the library or
force a schedule, and a network to which the model applies. In a job, native and ours take turns in blocks of a few
cycles; the time of a block is that of the slowest rank. The output has microseconds per cycle, the ratio of ours to
native block by block (median, and the middle half), and whether the median is at most 2.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .jobs import run_ranks

FABRIC = "xgft:2,2,2;1,1,1@rate=4xQDR"
MOST = 2.0  # goal for the ratio to native
CYCLES = 5  # per block
HOSTS = ("h0000", "h0001", "h0005")
RULES = {"native": "native", "schedule": "doubling"}


def measure(place: str, blocks: int, calls: list[int]) -> None:
    """Measure, and print the table of one place; runs on any number of ranks.

    :param place: ``default``, ``virtual``, a key of ``RULES``, or ``model``.
    :param blocks: number of timed blocks of each side.
    :param calls: numbers of calls between making a communicator and freeing it, one table row each.
    """
    from mpi4py import MPI

    import topompi
    from topompi.topology import TopologyInterface, load

    world = MPI.COMM_WORLD
    hosts = [HOSTS[rank * len(HOSTS) // world.size] for rank in range(world.size)]
    options: dict[str, Any] = {} if place == "default" else {"topology": FABRIC, "hosts": hosts}
    if place == "model":
        options = {"topology": TopologyInterface.place(hosts, load(FABRIC).routes)}
    ours, native = topompi.Intracomm(world.Dup(), **options), world.Dup()
    send, receive = np.ones(1), np.empty(1)
    if world.rank == 0:
        version = MPI.Get_library_version().split(",")[0].splitlines()[0]
        print(f"# {version}, {world.size} ranks, {place}: {topompi.interface(ours).describe()}")
        print("# made by            used  topompi(us)  native(us)  ratio     middle half  of fastest")
    for name, make in _makers(world.rank, world.size).items():
        for used in calls:
            times = np.array(
                [_block(world, comm, make, used, send, receive) for _ in range(blocks + 2) for comm in (native, ours)]
            )
            slowest = np.empty_like(times)
            world.Allreduce(times, slowest, MPI.MAX)
            theirs, mine = slowest.reshape(-1, 2)[2:].T / CYCLES * 1e6
            if world.rank == 0:
                low, middle, high = np.percentile(mine / theirs, [25, 50, 75])
                quiet = mine.min() / theirs.min()
                verdict = "" if min(middle, quiet) <= MOST else f"  expecting at most {MOST}"
                print(
                    f"{name:<20} {used:4} {np.median(mine):12.1f} {np.median(theirs):11.1f} {middle:6.2f}"
                    f"  {low:5.2f} to {high:5.2f} {quiet:10.2f}{verdict}",
                    flush=True,
                )


def _makers(rank: int, size: int) -> dict[str, Callable[[Any], Any]]:
    return {
        "Dup": lambda comm: comm.Dup(),
        "Split, one group": lambda comm: comm.Split(0, rank),
        "Split, two groups": lambda comm: comm.Split(rank % 2, rank),
        "Split, other order": lambda comm: comm.Split(0, -rank),
        "Create_cart": lambda comm: comm.Create_cart([size]),
        "Create": _created,
    }


def _created(comm: Any) -> Any:
    whole = comm.Get_group()
    some = whole.Excl([comm.size - 1]) if comm.size > 2 else whole.Incl([0, 1])
    made = comm.Create(some)
    some.Free()
    whole.Free()
    return made


def _block(world: Any, comm: Any, make: Callable[[Any], Any], used: int, send: Any, receive: Any) -> float:
    """Return the seconds of some cycles of making, using and freeing a communicator on this rank."""
    world.Barrier()
    begin = time.perf_counter()
    for _ in range(CYCLES):
        made = make(comm)
        if made:
            for _ in range(used):
                made.Allreduce(send, receive)
            made.Free()
    return time.perf_counter() - begin


def main() -> None:
    """Start the jobs, or, as a rank of one, print its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--blocks", type=int, default=30)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--used", type=int, nargs="+", default=[0, 1], help="calls of 8 bytes on each communicator")
    parser.add_argument("place", nargs="*", help="default, virtual, native, schedule, model; all by default")
    parser.add_argument("--within", action="store_true", help="used within")
    options = parser.parse_args()
    places = options.place or ["default", "virtual", *RULES, "model"]
    if options.within:
        measure(places[0], options.blocks, options.used)
        return
    with tempfile.TemporaryDirectory() as scratch:
        for place in places:
            variables = {"TOPOMPI_TUNE": "", "TOPOMPI_RULES": "", "XDG_CACHE_HOME": scratch}
            if place in RULES:
                rules = Path(scratch, f"{place}.json")
                rule = {"collective": "allreduce", "algorithm": RULES[place]}
                rules.write_text(json.dumps({"format": "topompi rules", "version": 1, "rules": [rule]}))
                variables["TOPOMPI_RULES"] = str(rules)
            words = ["-m", "benchmarks.lifetimes", "--within", "--blocks", options.blocks, place]
            words += ["--used", *options.used]
            if run_ranks(options.ranks, words, variables=variables):
                raise SystemExit(1)


if __name__ == "__main__":
    main()
