"""The time that recording from inside adds to calls of two ranks on 8 bytes, by form of the call.

Run it as ``mpirun -n 2 python -m benchmarks.recording``. Rounds with and without the
recording take turns. The least time of each counts, because other programs and the scheduler can only add to it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI


def forms(comm: Any) -> dict[str, Callable[[], object]]:
    """Return the measured calls by their text, with two ranks in all of which rank 0 sends first."""
    a, b, both, each = np.zeros(1), np.zeros(1), np.zeros(2), np.zeros(2)
    other, ring = 1 - comm.rank, comm.Create_cart([2], [True])
    blocks = [both, [1, 1]], [each, [1, 1]]

    def ping_pong() -> None:
        for sends in (comm.rank == 0, comm.rank == 1):
            comm.Send(a, other, 0) if sends else comm.Recv(b, other, 0)

    return {
        "Send(a, dest, 0) and Recv": ping_pong,
        "Sendrecv(a, dest, 0, b, source, 0)": lambda: comm.Sendrecv(a, other, 0, b, other, 0),
        "Sendrecv(a, dest=..., recvbuf=b, source=...)": lambda: comm.Sendrecv(a, dest=other, recvbuf=b, source=other),
        "Bcast(a)": lambda: comm.Bcast(a),
        "Bcast(a, root=0)": lambda: comm.Bcast(a, root=0),
        "Bcast([a, MPI.DOUBLE])": lambda: comm.Bcast([a, MPI.DOUBLE]),
        "Bcast([a, 1, MPI.DOUBLE])": lambda: comm.Bcast([a, 1, MPI.DOUBLE]),
        "Allreduce(a, b)": lambda: comm.Allreduce(a, b),
        "Alltoall(a, b)": lambda: comm.Alltoall(both, each),
        "Barrier()": lambda: comm.Barrier(),
        "Alltoallv([a, counts], [b, counts])": lambda: comm.Alltoallv(*blocks),
        "Neighbor_alltoall(a, b)": lambda: ring.Neighbor_alltoall(both, each),
    }


def measure(calls: int, rounds: int, path: Path) -> None:
    """Print microseconds of each call without and with the recording, the larger of both ranks."""
    import topompi
    from topompi.profile import record
    from topompi.profile.live import running

    world = MPI.COMM_WORLD
    with record(topompi.Intracomm(world), path, every=3600) as comm:
        recording = running()
        assert recording is not None
        for name, call in forms(comm).items():
            least = [float("inf")] * 2
            for recorded in [0, 1, 1, 0] * (rounds // 2):
                (recording.start if recorded else recording.stop)()
                for _ in range(20):
                    call()
                world.Barrier()
                begin = time.perf_counter()
                for _ in range(calls):
                    call()
                least[recorded] = min(least[recorded], 1e6 * (time.perf_counter() - begin) / calls)
            without, recorded_us = (world.allreduce(one, MPI.MAX) for one in least)
            if world.rank == 0:
                print(
                    f"{name}: {without:.2f} us, recorded {recorded_us:.2f}, more {recorded_us - without:.2f}",
                    flush=True,
                )
        recording.start()


def main() -> None:
    """Measure with the numbers of calls and rounds that the command line gives."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(given.calls, given.rounds, Path(MPI.COMM_WORLD.bcast(folder)) / "run.topoprof")
        MPI.COMM_WORLD.Barrier()


if __name__ == "__main__":
    main()
