"""What each rank of ``advice`` runs: exchange a graph's messages in two orders by turns; rank 0 prints the seconds.

``mpirun ... python -m benchmarks.advice_ranks PLAN.json``: the plan has the ``graph`` as columns of sources, targets
and bytes, ``seats`` with the process that takes each rank's part in each order, and ``rounds``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

Messages = list[tuple[np.ndarray, int]]


def messages(graph: list[list[int]], seats: list[int], me: int) -> tuple[Messages, Messages]:
    """What this process sends and receives, each with the other process."""
    part = seats.index(me)
    rows = [row for row in zip(*graph, strict=True) if row[0] != row[1]]
    sent = [(np.zeros(nbytes, np.uint8), seats[target]) for source, target, nbytes in rows if source == part]
    return sent, [(np.empty(nbytes, np.uint8), seats[source]) for source, target, nbytes in rows if target == part]


def exchange(comm: MPI.Intracomm, sent: Messages, got: Messages) -> float:
    """The slowest process's seconds for all messages at once."""
    comm.Barrier()
    began = MPI.Wtime()
    requests = [comm.Irecv(buffer, peer) for buffer, peer in got]
    requests += [comm.Isend(buffer, peer) for buffer, peer in sent]
    MPI.Request.Waitall(requests)
    return float(comm.allreduce(MPI.Wtime() - began, MPI.MAX))


def main() -> None:
    """Exchange by turns; the first round makes the connections and does not count."""
    comm, plan = MPI.COMM_WORLD, json.loads(Path(sys.argv[1]).read_text())
    orders = [messages(plan["graph"], seats, comm.rank) for seats in plan["seats"]]
    rounds = [[exchange(comm, *order) for order in orders] for _ in range(1 + plan["rounds"])]
    if comm.rank == 0:
        print(json.dumps(list(zip(*rounds[1:], strict=True))))


if __name__ == "__main__":
    main()
