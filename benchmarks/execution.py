"""The cost of running a plan against the same messages written by hand: ``python -m benchmarks.execution``.

Starts its own MPI jobs, of 8 and of 2 ranks, with the mpirun beside this Python. The two ways of each row take turns in
one run; a sample is a few calls, and its time is that of the slowest rank. The output has the median of the ratios of
paired samples, the 95 % confidence interval of that median, and the medians of both ways.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from topompi.mpi.dispatch.common import Common
from topompi.mpi.dispatch.state import Lineage, State
from topompi.mpi.execution import running
from topompi.mpi.execution.executor import Executor
from topompi.mpi.execution.timing import interleave, slowest, time_in_turn
from topompi.mpi.selection.policy import Policy
from topompi.topology import TopologyInterface, load

from .jobs import run_ranks

Way = Callable[[], object]
WARMING = 3  # first samples, which do not count


def executor_of(comm: MPI.Intracomm) -> Executor:
    """Make an executor for ranks on hosts of their own, on two leaves of an unslimmed tree."""
    size = comm.Get_size()
    fabric = load(f"xgft:2,{max(size // 2, 1)},2;1,1,1")
    hosts = [fabric.fabric.hosts[rank] for rank in range(size)]
    interface = TopologyInterface.place(hosts, fabric.routes, virtual=True)
    return State(comm, Common(lambda: interface, Policy()), Lineage()).executor


def by_hand(comm: MPI.Intracomm, send: NDArray[np.uint8], receive: NDArray[np.uint8], shift: bool) -> Way:
    """Return the pairwise exchange as a user writes it in mpi4py.

    :param comm: communicator of the ranks.
    :param send: blocks to send, shape (p, n).
    :param receive: received blocks, shape (p, n).
    :param shift: whether the partners in step s are the ranks s above and below, instead of rank XOR s.
    """
    rank, size = comm.Get_rank(), comm.Get_size()

    def run() -> None:
        receive[rank] = send[rank]
        for step in range(1, size):
            to = (rank + step) % size if shift else rank ^ step
            source = (rank - step) % size if shift else to
            comm.Sendrecv(send[to], to, 0, receive[source], source, 0)

    return run


def alltoalls(comm: MPI.Intracomm, executor: Executor, bytes_: int) -> Iterator[tuple[str, Way, Way]]:
    """Yield rows of a plan and of the same exchange by hand, on the same buffers.

    :param comm: communicator of the ranks.
    :param executor: executor of the plan, on these ranks.
    :param bytes_: bytes of a block.
    """
    size = comm.Get_size()
    send, receive = np.ones((size, bytes_), dtype=np.uint8), np.empty((size, bytes_), dtype=np.uint8)
    for algorithm in ("pairwise", "shift"):
        arguments = (send, receive)
        hand = by_hand(comm, send, receive, algorithm == "shift")
        name = f"alltoall {algorithm}, {size} ranks x {bytes_} bytes"
        yield name, partial(running.run, executor, "Alltoall", algorithm, arguments), hand
        request = running.prepare(executor, "Alltoall", algorithm, arguments)
        yield f"{name}, persistent plan", partial(started, request), hand


def started(request: MPI.Prequest | None) -> None:
    """Start a persistent collective and wait for it."""
    assert request is not None
    request.Start()
    request.Wait()


def broadcasts(comm: MPI.Intracomm, executor: Executor, bytes_: int) -> Iterator[tuple[str, Way, Way]]:
    """Yield a row of our persistent broadcast and the MPI library's; no row if the library has none.

    :param comm: communicator of the ranks.
    :param executor: executor of the plan, on these ranks.
    :param bytes_: bytes of the message.
    """
    data = np.ones(bytes_, dtype=np.uint8)
    try:
        native = comm.Bcast_init(data, 0)
    except NotImplementedError:
        print("this MPI library has no persistent broadcast")
        return
    ours = running.prepare(executor, "Bcast", "binomial", (data, 0))
    name = f"persistent bcast, {comm.Get_size()} ranks, {bytes_} bytes"
    yield name, partial(started, ours), partial(started, native)


def paired(comm: MPI.Intracomm, ours: Way, theirs: Way, samples: int, calls: int) -> NDArray[np.float64]:
    """Time two ways, which alternate in going first.

    :param comm: communicator of the ranks, which wait for each other before each sample.
    :param ours: one way.
    :param theirs: the other way.
    :param samples: number of samples.
    :param calls: number of calls per sample.
    :returns: seconds of a call on the slowest rank, shape (samples, 2).
    """
    ways = [[partial(repeated, way, calls)] for way in (ours, theirs)]
    order = interleave(2, WARMING + samples)
    return slowest(comm, time_in_turn(ways, order, comm.Barrier)).T[WARMING:] / calls


def repeated(way: Way, calls: int) -> None:
    """Call a way ``calls`` times."""
    for _ in range(calls):
        way()


def line(name: str, seconds: NDArray[np.float64], limit: float) -> str:
    """Format a row: the median ratio with its interval, from order statistics.

    :param name: name of the row.
    :param seconds: seconds of both ways, shape (samples, 2).
    :param limit: largest ratio that is accepted.
    """
    ratio = np.sort(seconds[:, 0] / seconds[:, 1])
    half = 0.98 * np.sqrt(len(ratio))
    low, high = (int(np.clip(len(ratio) / 2 + side, 0, len(ratio) - 1)) for side in (-half, half))
    ours, theirs = np.median(seconds, axis=0) * 1e6
    median = float(np.median(ratio))
    verdict = "reached" if median <= limit else "missed" if ratio[low] > limit else "missed, within its interval"
    return (
        f"{name:58} {median:6.3f} [{ratio[low]:.3f}, {ratio[high]:.3f}]  at most {limit:.2f}: {verdict}"
        f"  ({ours:.1f} us, {theirs:.1f} us)"
    )


def measure(options: argparse.Namespace) -> None:
    """Measure and print the rows of one MPI job."""
    world = MPI.Intracomm(MPI.COMM_WORLD).Dup()
    executor = executor_of(world)
    if world.Get_size() > 2:
        rows = [(row, 1.05, 2) for row in alltoalls(world, executor, 65536)]
    else:
        rows = [(row, 1.15, 50) for bytes_ in (8, 1024, 65536) for row in broadcasts(world, executor, bytes_)]
    for (name, ours, theirs), limit, calls in rows:
        seconds = paired(world, ours, theirs, options.samples, calls)
        if world.Get_rank() == 0:
            print(line(name, seconds, limit), flush=True)


def main() -> int:
    """Start the MPI jobs, or, as a rank of one, measure its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=200, help="paired samples of each row")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for each MPI job")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        measure(options)
        return 0
    average = ", ".join(f"{one:.2f}" for one in os.getloadavg())
    print(f"{MPI.Get_library_version().splitlines()[0]}; {os.cpu_count()} cores, load {average}", flush=True)
    own = ["-m", "mpi4py", "-m", "benchmarks.execution", "--samples", options.samples, "--inside"]
    return max(run_ranks(size, own, timeout=options.timeout) for size in (8, 2))


if __name__ == "__main__":
    sys.exit(main())
