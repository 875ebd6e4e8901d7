"""The program of each rank of ``side_by_side``: two jobs in one world, each alone and both at once, by the clock.

``mpirun ... python -m benchmarks.side_by_side_ranks PLAN.json``: the plan has ``jobs`` (``kind``, ``nbytes``, and the
``ranks`` of the world in the order of the job), ``seconds`` of a phase, and ``rounds``. Rank 0 prints, as JSON, the
seconds per iteration that each job took in each phase of each round: ``[job][round] = [alone, beside the other]``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from mpi4py import MPI

from .side_by_side import neighbours, tree

REST = 0.3  # seconds between two phases, in which messages on the way arrive and idle ranks sleep
CHUNK = 0.1  # seconds of iterations after which a job looks at the clock


def iteration(comm: MPI.Comm, kind: str, nbytes: int) -> Callable[[], None]:
    """Return one iteration of a job as a function without arguments.

    :param comm: communicator of the job.
    :param kind: a key of ``side_by_side.KINDS``.
    :param nbytes: bytes of a message.
    """
    rank, size = comm.rank, comm.size
    out, into = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    parent, children = tree(rank, size)
    around = neighbours(rank, size)
    halos = [np.zeros(nbytes, np.uint8) for _ in around]

    def alltoall() -> None:
        for step in range(1, size):
            comm.Sendrecv(out, (rank + step) % size, 0, into, (rank - step) % size, 0)

    def bcast() -> None:
        if parent is not None:
            comm.Recv(into, parent)
        for child in children:
            comm.Send(out, child)
        for child in children:  # the next iteration begins when all have this one
            comm.recv(source=child, tag=1)
        if parent is not None:
            comm.send(None, parent, tag=1)

    def stencil() -> None:
        receives = [comm.Irecv(halo, peer) for halo, peer in zip(halos, around, strict=True)]
        MPI.Request.Waitall([*receives, *(comm.Isend(out, peer) for peer in around)])

    return {"alltoall": alltoall, "bcast": bcast, "stencil": stencil}[kind]


def run_until(comm: MPI.Comm, one: Callable[[], None], chunk: int, begin: float, end: float) -> float:
    """Run iterations from a moment to another; return the seconds per iteration in the middle of this time.

    :param comm: communicator of the job.
    :param one: an iteration.
    :param chunk: number of iterations after which all ranks learn from rank 0 whether to go on.
    :param begin: time of the beginning on all hosts' clock.
    :param end: time of the end.
    """
    time.sleep(max(0.0, begin - time.time()))
    ends = [time.time()]
    while comm.bcast(ends[-1] < end):
        for _ in range(chunk):
            one()
        ends.append(time.time())
    margin = (end - begin) / 8
    middle = [at for at in ends if begin + margin <= at <= end - margin]
    return (middle[-1] - middle[0]) / (chunk * (len(middle) - 1)) if len(middle) > 1 else float("nan")


def main() -> None:
    """Run the phases of the plan."""
    world = MPI.COMM_WORLD
    plan = json.loads(Path(sys.argv[1]).read_text())
    mine = next(at for at, job in enumerate(plan["jobs"]) if world.rank in job["ranks"])
    job = plan["jobs"][mine]
    comm = world.Split(mine, job["ranks"].index(world.rank))
    one = iteration(comm, job["kind"], job["nbytes"])
    found, chunk = [], 1
    for number in range(-1, plan["rounds"]):  # the first makes connections, and finds how many iterations are a chunk
        seconds = []
        for alone in (0, 1, None):
            begin = world.bcast(time.time()) + REST
            end = begin + plan["seconds"]
            if alone in (mine, None):
                seconds.append(run_until(comm, one, chunk, begin, end))
            time.sleep(max(0.0, end + REST - time.time()))
        if number >= 0:
            found.append(seconds)
        elif comm.rank == 0:
            chunk = max(1, round(CHUNK / max(seconds)))
        chunk = comm.bcast(chunk)
    gathered = world.gather(found if comm.rank == 0 else None)
    if gathered is not None:
        print(json.dumps([gathered[job["ranks"][0]] for job in plan["jobs"]]))


if __name__ == "__main__":
    main()
