"""The program of each rank of ``in_turn``: it times all sides of each cell in turn; rank 0 writes the seconds as JSON.

``mpirun ... python -m benchmarks.in_turn_ranks PLAN.json``: the plan has ``cells`` (each a collective and its bytes),
``sides``, ``seconds`` (for all sides of a cell), ``tuning`` (whether the job only lets topompi's trials decide),
``most`` (seconds after which no cell begins) and ``found`` (a file that gets a line as soon as a cell is timed, so that
a job that dies loses only one).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import topompi

from .decisions import decided
from .emulated_ranks import Buffers, bind, measure, warm_links, warm_up
from .sides import orders

TURN = 10  # most calls of a side in a row, after one that is not counted
LONGEST = 0.2  # seconds of a turn, unless one call takes longer
TURNS = (6, 960)  # least and most turns of each side
Native = MPI.Intracomm


class Methods(Native):
    """A communicator whose collectives are methods in Python that call the library's and do nothing else."""

    def Bcast(self, buf: Any, root: int = 0) -> None:
        """Call the library's Bcast."""
        Native.Bcast(self, buf, root)

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Call the library's Gather."""
        Native.Gather(self, sendbuf, recvbuf, root)

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Call the library's Scatter."""
        Native.Scatter(self, sendbuf, recvbuf, root)

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """Call the library's Allgather."""
        Native.Allgather(self, sendbuf, recvbuf)

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        """Call the library's Alltoall."""
        Native.Alltoall(self, sendbuf, recvbuf)

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, root: int = 0) -> None:
        """Call the library's Reduce."""
        Native.Reduce(self, sendbuf, recvbuf, op, root)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM) -> None:
        """Call the library's Allreduce."""
        Native.Allreduce(self, sendbuf, recvbuf, op)

    def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM) -> None:
        """Call the library's Reduce_scatter_block."""
        Native.Reduce_scatter_block(self, sendbuf, recvbuf, op)


def in_turn(native: MPI.Intracomm, sides: list[Callable[[], object]], seconds: float) -> list[list[float]]:
    """Time calls in turns of several calls: return the slowest rank's seconds of every call of each side. Collective.

    :param native: communicator of all ranks; rank 0's estimate of a call's time sets the number of turns on all ranks.
    :param sides: a call of each side.
    :param seconds: approximate time for all sides together.
    """
    begin = time.perf_counter()
    for side in sides:
        measure(native, side, 2)
    call = native.bcast((time.perf_counter() - begin) / 2 / len(sides))  # in seconds, with its measurement
    turn = int(np.clip(LONGEST / call, 1, TURN))
    turns = int(np.clip(seconds / len(sides) / call / (turn + 1), *TURNS))
    times: list[list[float]] = [[] for _ in sides]
    for order in islice(orders(len(sides)), turns):
        for number in order:
            times[number] += measure(native, sides[number], turn + 1)[1:]
    return times


def main() -> None:
    """Time the cells of the plan on the sides that it names."""
    begin, plan = time.monotonic(), json.loads(Path(sys.argv[1]).read_text())
    native, comm = Native(MPI.COMM_WORLD), topompi.Intracomm(MPI.COMM_WORLD)
    communicators = {"topompi": comm, "library": native, "library again": native, "method": Methods(native)}
    warm_links(native)
    for collective, size in plan["cells"]:
        if native.bcast(time.monotonic() - begin) > plan["most"]:
            break
        buffers = Buffers(native, collective, size)  # the same for all sides, because their position in memory matters
        sides = {name: bind(communicators[name], collective, buffers) for name in plan["sides"]}
        before = decided(comm)
        warm_up(comm, sides["topompi"])
        if plan["tuning"]:
            continue
        chosen = [choice for call, choice in decided(comm).items() if call not in before]
        times = in_turn(native, list(sides.values()), plan["seconds"])
        cell = {
            "library": MPI.get_vendor()[0],
            "collective": collective,
            "size": size,
            "algorithms": sorted({choice.algorithm for choice in chosen}),
            "reasons": sorted({choice.reason for choice in chosen}),
            "times": dict(zip(sides, times, strict=True)),
        }
        if native.rank == 0:
            with Path(plan["found"]).open("a", encoding="utf-8") as file:
                file.write(json.dumps(cell) + "\n")


if __name__ == "__main__":
    main()
