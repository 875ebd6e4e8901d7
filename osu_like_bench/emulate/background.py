"""A second job on the same links, which repeats an alltoall until it is told to end or its time is over.

``mpirun ... python -m osu_like_bench.emulate.background BYTES SECONDS DIRECTORY``: rank 0 makes DIRECTORY/running after
the first alltoall, and all ranks end once DIRECTORY/end exists.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

__all__ = ["END", "RUNNING", "load_links"]

RUNNING, END = "running", "end"


def load_links(nbytes: int, seconds: float, directory: Path) -> int:
    """Repeat an alltoall until the file ``end`` exists or the time is over; collective over COMM_WORLD.

    :param nbytes: bytes that each rank sends to each other rank in one alltoall.
    :param seconds: maximum run time in seconds.
    :param directory: folder of the files ``running``, made after the first alltoall, and ``end``.
    :returns: number of completed alltoalls.
    """
    from mpi4py import MPI  # imported here, because a process that only needs the file names may have no MPI

    world = MPI.COMM_WORLD
    send = np.zeros((world.size, nbytes), dtype=np.uint8)
    receive = np.empty_like(send)
    rounds, until = 0, time.monotonic() + seconds
    while world.bcast(time.monotonic() < until and not (directory / END).exists()):
        world.Alltoall(send, receive)
        rounds += 1
        if rounds == 1 and world.rank == 0:
            (directory / RUNNING).touch(0o644)
    if world.rank == 0:
        print(f"background: {rounds} alltoalls of {nbytes} bytes", file=sys.stderr, flush=True)
    return rounds


if __name__ == "__main__":
    load_links(int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3]))
