"""The program of each rank of ``emulated``: it times the cells of a plan; rank 0 prints each call's seconds as JSON.

``mpirun ... python -m benchmarks.emulated_ranks PLAN.json``: the plan has ``ours`` (whether topompi runs) and
``cells``: ``collective``, ``size`` in bytes, ``iterations``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

import numpy as np
from mpi4py import MPI

import topompi
from osu_like_bench.emulate.monitor import idle_ticks
from topompi.execution.timing import interleave, slowest, time_in_turn

from .decisions import is_undecided

WARMING, WARMING_BLOCK = 1.0, 1024  # seconds, and bytes from each rank to each


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


def main() -> None:
    """Time all cells of the plan, after every pair of ranks has exchanged data and a first call has been made."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    native = MPI.COMM_WORLD
    comm = topompi.Intracomm(native) if plan["ours"] else native
    for first in plan["cells"][:1]:
        bind(comm, first["collective"], Buffers(comm, first["collective"], first["size"]))()
    warm_links(native)
    found = []
    for cell in plan["cells"]:
        call = bind(comm, cell["collective"], Buffers(comm, cell["collective"], cell["size"]))
        warm_up(comm, call)
        before = idle_ticks()
        times = measure(native, call, cell["iterations"])
        after = idle_ticks()
        found.append({"times": times, "idle": after[0] - before[0], "ticks": after[1] - before[1]})
    if native.rank == 0:
        print(json.dumps({"mpi": MPI.Get_library_version().splitlines()[0], "cells": found}))


if __name__ == "__main__":
    main()
