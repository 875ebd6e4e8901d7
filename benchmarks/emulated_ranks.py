"""What each rank of ``emulated`` runs: time the cells of a plan, and print on rank 0 the seconds of each call as JSON.

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

from osu_like_bench.emulate.monitor import idle_ticks

SETTLING, SETTLING_BLOCK = 1.0, 1024  # seconds, and bytes from each rank to each


class Buffers:
    """What the calls of a collective send and receive; ``size`` is of a rank's block, or of all if there are none."""

    def __init__(self, comm: MPI.Intracomm, collective: str, size: int) -> None:
        self.one, self.everyone = np.zeros(size // 4, np.float32), np.zeros((comm.size, size // 4), np.float32)
        self.other = np.zeros_like(self.one)
        self.at_root = self.everyone if comm.rank == 0 else None
        self.received = np.zeros_like(self.everyone) if collective == "alltoall" else self.everyone


def bind(comm: MPI.Intracomm, collective: str, buffers: Buffers) -> Callable[[], object]:
    """The call of a collective, of code of its own: what Python learns of it is of this communicator."""
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
    """Of each call the time of its slowest rank, in seconds."""
    times = np.empty(iterations)
    for number in range(iterations):
        native.Barrier()
        start = time.perf_counter()
        call()
        times[number] = time.perf_counter() - start
    slowest = np.empty_like(times)
    native.Allreduce(times, slowest, MPI.MAX)
    return slowest.tolist()


def settle(native: MPI.Intracomm) -> None:
    """Exchange for a while, all with all: for a second after its start a job takes a tenth longer, the more it did."""
    sent, received = (np.zeros((native.size, SETTLING_BLOCK), np.uint8) for _ in range(2))
    more, end = np.ones(1, np.uint8), time.monotonic() + SETTLING
    while more[0]:
        native.Alltoall(sent, received)
        more[0] = time.monotonic() < end
        native.Bcast(more)


def warm_up(comm: MPI.Intracomm, call: Callable[[], object]) -> None:
    """Make a call once, in which connections and plans are made, and with topompi until no trial is under way."""
    call()
    levels = getattr(comm, "_levels", None)
    while levels is not None and levels.selector.trying:
        call()


def main() -> None:
    """Time all cells of the plan, after every pair of ranks has met and the first call has made what it needs."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    native = comm = MPI.COMM_WORLD
    if plan["ours"]:
        import topompi

        comm = topompi.Intracomm(MPI.COMM_WORLD)
    for first in plan["cells"][:1]:
        bind(comm, first["collective"], Buffers(comm, first["collective"], first["size"]))()
    settle(native)
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
