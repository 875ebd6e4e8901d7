"""The overhead of calls that topompi leaves to the library, and of communicators: ``python -m benchmarks.overhead``.

It starts five jobs. The first three compare 8-byte collectives on 2 ranks with the same calls of mpi4py, interleaved,
by the slowest rank's time of each iteration. One has a flat communicator. The other two have two virtual hosts and a
rule that leaves the calls to the library, one with our modules in C and one without, and repeat the calls with work on
8 MB between them. The last two jobs measure start-up on a virtual placement over 64 hosts, and the memory of a
communicator, both with 16 ranks; the results are upper bounds if there are fewer cores.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from osu_like_bench.statistics import compare

from .jobs import run_ranks

if TYPE_CHECKING:
    from mpi4py import MPI

FABRIC = "xgft:16,4;1,4"  # 64 hosts on 4 leaf switches
CALLS = 10  # timed together, because one call is too short for the clock
WORK = np.zeros(1 << 20)  # numbers, 8 MB: more than a core's own caches hold
NATIVE = '{"format": "topompi rules", "version": 1, "rules": [{"algorithm": "native"}]}'
AT_MOST = {"Bcast": 1.3, "Gather": 1.3, "Alltoall": 1.3, "Allreduce": 1.3, "Bcast_init": 1.15}


def overhead(iterations: int) -> None:
    """Print the ratio of 8-byte calls through topompi to native ones; on 2 ranks."""
    from mpi4py import MPI

    import topompi

    world = MPI.COMM_WORLD
    ours = topompi.Intracomm(world.Dup())
    if world.rank == 0:
        print(f"{MPI.Get_library_version().split(',')[0]}, {world.size} ranks, {topompi.interface(ours).describe()}")
        print("# 8 bytes        topompi(us)  native(us)   ratio   95% interval   at most")
    for method, most in AT_MOST.items():
        calls = [_call(comm, method) for comm in (ours, world.Dup())]
        times = _interleaved(world, calls, iterations)
        if world.rank == 0:
            found = compare(times[1], times[0])  # the ratio by which ours is slower
            took, native = np.median(times, axis=1) * 1e6
            interval = f"[{found.low:.2f}, {found.high:.2f}]"
            print(f"{method:<16} {took:12.2f} {native:11.2f} {found.ratio:7.2f}   {interval} {most:9.2f}", flush=True)


def left(iterations: int, compiled: bool) -> None:
    """Print the same ratios for calls that topompi leaves to the library.

    :param iterations: number of timed calls of each side.
    :param compiled: whether topompi's modules in C are imported, as if a compiler had been available.
    """
    from mpi4py import MPI

    if not compiled:
        sys.modules.update(dict.fromkeys(("topompi.mpi.dispatch._calls", "topompi.mpi.execution._keys")))  # type: ignore[arg-type]

    import topompi

    world = MPI.COMM_WORLD
    ours = topompi.Intracomm(world.Dup(), topology=FABRIC, hosts=["h0000", "h0016"])
    for work in (None, WORK):
        if world.rank == 0:
            way = "looked up in C" if compiled else "looked up in Python, without a compiler"
            between = "no work" if work is None else "8 MB of work"
            print(f"# 8 bytes, left to the library, {way}; {between} between two calls")
            print("#                topompi(us)  native(us)   ratio   95% interval")
        for method in (name for name in AT_MOST if not name.endswith("_init")):
            times = _interleaved(world, [_call(comm, method) for comm in (ours, world.Dup())], iterations, work)
            if world.rank == 0:
                found, (took, native) = compare(times[1], times[0]), np.median(times, axis=1) * 1e6
                interval = f"[{found.low:.2f}, {found.high:.2f}]"
                print(f"{method:<16} {took:12.2f} {native:11.2f} {found.ratio:7.2f}   {interval}", flush=True)


def _call(comm: MPI.Intracomm, method: str) -> Callable[[], None]:
    """Return a call without arguments that runs a collective of 8 bytes."""
    send, receive = np.zeros(comm.size), np.zeros(comm.size)
    one, other = send[:1], receive[:1]
    if method == "Bcast_init":
        request = comm.Bcast_init(one)

        def repeat() -> None:
            request.Start()
            request.Wait()

        return repeat
    into = receive if comm.rank == 0 else None
    return {
        "Bcast": lambda: comm.Bcast(one),
        "Gather": lambda: comm.Gather(one, into),
        "Alltoall": lambda: comm.Alltoall(send, receive),
        "Allreduce": lambda: comm.Allreduce(one, other),
    }[method]


def _interleaved(
    world: MPI.Intracomm, calls: list[Callable[[], None]], iterations: int, work: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the slowest rank's seconds of one call of each side, shape (sides, iterations).

    :param world: communicator of all ranks.
    :param calls: a call of each side.
    :param iterations: number of timed iterations.
    :param work: array that is changed before each call, so that calls find cold caches and are timed singly; None for
        no work.
    """
    repeats, warming = CALLS if work is None else 1, iterations // 10

    def repeated(call: Callable[[], None]) -> None:
        for _ in range(repeats):
            call()

    def ready() -> None:
        if work is not None:
            np.add(work, 1, out=work)
            world.Barrier()  # the first barrier after work is slow, and differs by rank
        world.Barrier()

    from topompi.mpi.execution.timing import interleave, slowest, time_in_turn

    sides = [[partial(repeated, call)] for call in calls]
    times = time_in_turn(sides, interleave(len(calls), warming + iterations), ready)[:, warming:]
    return slowest(world, times) / repeats


def start(repeats: int) -> None:
    """Print the seconds of the import, and of making communicators with their topology and sub-communicators."""
    from mpi4py import MPI

    begin = time.perf_counter()
    import topompi.mpi.communicator

    world = MPI.COMM_WORLD
    imported, spent, splits = time.perf_counter() - begin, [], []
    for _ in range(repeats):
        world.Barrier()
        begin = time.perf_counter()
        comm = topompi.Intracomm(world.Dup(), topology=FABRIC, hosts=[f"h{4 * rank:04}" for rank in range(world.size)])
        parts, interface = topompi.sub_communicators(comm), topompi.interface(comm)
        spent.append(time.perf_counter() - begin)
        world.Barrier()
        begin = time.perf_counter()
        plain = [MPI.Intracomm(world).Dup(), *(MPI.Intracomm(world).Split(rank // 4, 0) for rank in (world.rank, 0))]
        splits.append(time.perf_counter() - begin)
        for one in (*plain, comm):
            one.Free()
    middle, native = (float(np.median(times[1:])) for times in (spent, splits))
    took = np.max(world.allgather([imported, spent[0], middle, native]), axis=0)
    if world.rank == 0:
        print(f"start-up, {world.size} ranks, {interface.describe()}")
        print(f"  import {took[0]:.3f} s; topology and {len(parts)} sub-communicators {took[1]:.3f} s the first time,")
        print(f"  {took[2]:.3f} s in the median of {repeats - 1} later times, the slowest rank's; at most 0.3 s;")
        print(f"  MPI's own duplicate and two splits take {took[3]:.3f} s of it")


def memory(count: int) -> None:
    """Print the memory of a communicator of ours and of MPI's duplicates."""
    from mpi4py import MPI

    import topompi

    world = MPI.COMM_WORLD
    hosts = [f"h{4 * rank:04}" for rank in range(world.size)]
    first = topompi.Intracomm(world.Dup(), topology=FABRIC, hosts=hosts)
    data = np.zeros(1)
    used = {}
    for what in ("plain", "made", "used"):
        before, kept = _resident(), []
        for _ in range(count):
            comm = MPI.Intracomm(world).Dup() if what == "plain" else first.Dup()
            if what == "used":
                comm.Bcast(data)
            kept.append(comm)
        used[what] = (_resident() - before) / count
        world.Barrier()
        for comm in kept:
            comm.Free()
    rows = world.gather(used)
    if rows is not None:
        median = {what: np.median([row[what] for row in rows]) / 1024 for what in used}
        print(f"memory of a communicator, {world.size} ranks, median of ranks over {count} communicators:")
        print(
            f"  plain duplicate {median['plain']:.1f} KiB; ours as made {median['made']:.1f} KiB, "
            f"after its first collective {median['used']:.1f} KiB"
        )


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _part(ranks: int, *arguments: object, **variables: str) -> None:
    """Run a part of this program on some ranks; exit if it fails."""
    code = run_ranks(ranks, ["-m", "benchmarks.overhead", *arguments], variables=variables)
    if code:
        sys.exit(code)


def main() -> None:
    """Start the jobs, or, as a rank of one, run its part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument(
        "part", nargs="?", choices=("overhead", "left", "left-in-python", "start", "memory"), help="used within"
    )
    options = parser.parse_args()
    if options.part is None:
        _part(2, "overhead", "--iterations", options.iterations)
        with tempfile.TemporaryDirectory() as scratch:
            rules = Path(scratch, "native.json")
            rules.write_text(NATIVE)
            for part in ("left", "left-in-python"):
                _part(2, part, "--iterations", options.iterations, TOPOMPI_RULES=str(rules))
        _part(16, "start")
        _part(16, "memory")
    elif options.part == "overhead":
        overhead(options.iterations)
    elif options.part.startswith("left"):
        left(options.iterations, compiled=options.part == "left")
    elif options.part == "start":
        start(10)
    else:
        memory(50)


if __name__ == "__main__":
    main()
