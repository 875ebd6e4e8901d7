"""The program of each rank of ``emulated``: it times both sides of each cell in turn; rank 0 writes seconds as JSON.

``mpirun ... python -m benchmarks.emulated_ranks PLAN.json``: the plan has ``cells`` (each a collective and its bytes),
``seconds`` (for both sides of a cell), ``tuning`` (whether the job only lets topompi's trials decide), ``most``
(seconds after which no cell begins) and ``found`` (a file that gets a line as soon as a cell is timed, so that a job
that dies loses only one).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from itertools import cycle, islice, permutations
from pathlib import Path
from types import FunctionType

import numpy as np
from mpi4py import MPI

import topompi
from topompi.mpi.execution.timing import interleave, slowest, time_in_turn

from .decisions import decided, is_undecided

WARMING, WARMING_BLOCK = 1.0, 1024  # seconds, and bytes from each rank to each
TURN = 10  # most calls of a side in a row, after one that is not counted
LONGEST = 0.2  # seconds of a turn, unless one call takes longer
TURNS = (6, 960)  # least and most turns of each side


class Buffers:
    """The buffers of a collective.

    :param comm: communicator of the ranks.
    :param collective: name of the collective.
    :param size: bytes of one rank's block, or of the whole message if the collective has no blocks.
    """

    def __init__(self, comm: MPI.Intracomm, collective: str, size: int) -> None:
        self.one, self.everyone = np.zeros(size // 4, np.float32), np.zeros((comm.size, size // 4), np.float32)
        self.other = np.zeros_like(self.one)
        self.at_root = self.everyone if comm.rank == 0 else None
        self.received = np.zeros_like(self.everyone) if collective == "alltoall" else self.everyone


def bind(comm: MPI.Intracomm, collective: str, buffers: Buffers) -> Callable[[], object]:
    """Return a call of a collective as a function without arguments.

    Its code object is a copy, because Python specialises code to the types that it meets, and here these should be of
    one communicator only.

    :param comm: communicator of the call.
    :param collective: name of the collective, a key of ``calls``.
    :param buffers: buffers made for this collective.
    """
    one, other, everyone, at_root = buffers.one, buffers.other, buffers.everyone, buffers.at_root
    received = buffers.received
    calls: dict[str, Callable[[], object]] = {
        "bcast": lambda: comm.Bcast(one),
        "gather": lambda: comm.Gather(one, at_root),
        "scatter": lambda: comm.Scatter(at_root, one),
        "allgather": lambda: comm.Allgather(one, everyone),
        "reduce": lambda: comm.Reduce(one, other),
        "allreduce": lambda: comm.Allreduce(one, other),
        "reduce_scatter": lambda: comm.Reduce_scatter_block(everyone, one),
        "alltoall": lambda: comm.Alltoall(everyone, received),
    }
    call = calls[collective]
    return FunctionType(call.__code__.replace(), globals(), closure=call.__closure__)


def measure(native: MPI.Intracomm, call: Callable[[], object], iterations: int) -> list[float]:
    """Time calls: return the slowest rank's seconds of each. Collective.

    :param native: communicator of all ranks, which wait for each other before each call.
    :param call: function to time.
    :param iterations: number of calls.
    """
    times: list[float] = slowest(native, time_in_turn([[call]], interleave(1, iterations), native.Barrier))[0].tolist()
    return times


def warm_links(native: MPI.Intracomm) -> None:
    """Exchange data between all ranks for a second, because calls in a job's first second take a tenth longer."""
    sent, received = (np.zeros((native.size, WARMING_BLOCK), np.uint8) for _ in range(2))
    more, end = np.ones(1, np.uint8), time.monotonic() + WARMING
    while more[0]:
        native.Alltoall(sent, received)
        more[0] = time.monotonic() < end
        native.Bcast(more)


def warm_up(comm: MPI.Intracomm, call: Callable[[], object]) -> None:
    """Repeat a call until one-time work is done: connections, plans, topompi's trials."""
    call()
    while is_undecided(comm):
        call()


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
    for order in islice(cycle(permutations(range(len(sides)))), turns):
        for number in order:
            times[number] += measure(native, sides[number], turn + 1)[1:]
    return times


def main() -> None:
    """Time the cells of the plan through topompi and through the library."""
    begin, plan = time.monotonic(), json.loads(Path(sys.argv[1]).read_text())
    native, comm = MPI.COMM_WORLD, topompi.Intracomm(MPI.COMM_WORLD)
    communicators = {"topompi": comm, "library": native}
    warm_links(native)
    for collective, size in plan["cells"]:
        if native.bcast(time.monotonic() - begin) > plan["most"]:
            break
        buffers = Buffers(native, collective, size)  # the same for all sides, because their position in memory matters
        sides = {name: bind(communicators[name], collective, buffers) for name in communicators}
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
