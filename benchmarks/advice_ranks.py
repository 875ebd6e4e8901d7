"""The program of each rank of ``advice``; rank 0 prints seconds.

``mpirun ... python -m benchmarks.advice_ranks PLAN.json`` exchanges a graph's messages in two orders in turn. The plan
has ``graph``, as columns of sources, targets and bytes; ``seats``, the process of each rank in each order; and
``rounds``. With a number in place of the plan, the number of hosts per leaf, it measures the costs of messages: seconds
of a short message within and beyond the leaf switch, seconds of each further message when all ranks send, and bytes/s
of a long message.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median

import numpy as np
from mpi4py import MPI

Messages = list[tuple[np.ndarray, int]]
TIMES, MANY, LONG = 50, 200, 1 << 20  # round trips; short messages at once; bytes of a long message


def messages(graph: list[list[int]], seats: list[int], me: int) -> tuple[Messages, Messages]:
    """Return the messages that this process sends and receives, each with the other process."""
    part = seats.index(me)
    rows = [row for row in zip(*graph, strict=True) if row[0] != row[1]]
    sent = [(np.zeros(nbytes, np.uint8), seats[target]) for source, target, nbytes in rows if source == part]
    return sent, [(np.empty(nbytes, np.uint8), seats[source]) for source, target, nbytes in rows if target == part]


def exchange(comm: MPI.Intracomm, sent: Messages, got: Messages) -> float:
    """Return the slowest process's seconds for all messages at once."""
    comm.Barrier()
    began = MPI.Wtime()
    requests = [comm.Irecv(buffer, peer) for buffer, peer in got]
    requests += [comm.Isend(buffer, peer) for buffer, peer in sent]
    MPI.Request.Waitall(requests)
    return float(comm.allreduce(MPI.Wtime() - began, MPI.MAX))


def costs(comm: MPI.Intracomm, leaf: int) -> list[float]:
    """Return seconds of a short message within and beyond the leaf, and of each of many, and bytes/s of a long one."""
    there = [ping_pong(comm, 8, peer, TIMES) for peer in (1, leaf)]
    after, before = ((comm.rank + way) % comm.size for way in (1, -1))
    many = [(np.zeros(8, np.uint8), after)] * MANY, [(np.empty(8, np.uint8), before) for _ in range(MANY)]
    further = median(exchange(comm, *many) for _ in range(9)) / MANY
    return [*there, further, LONG / ping_pong(comm, LONG, 1, 3)]


def ping_pong(comm: MPI.Intracomm, nbytes: int, peer: int, times: int) -> float:
    """Return the seconds of a message one way between rank 0 and a peer, without the first round trip."""
    message, began = np.zeros(nbytes, np.uint8), 0.0
    comm.Barrier()
    for number in range(1 + times if comm.rank in (0, peer) else 0):
        began = MPI.Wtime() if number == 1 else began
        for turn in (0, 1) if comm.rank == 0 else (1, 0):
            comm.Recv(message, peer - comm.rank) if turn else comm.Send(message, peer - comm.rank)
    return float(comm.bcast((MPI.Wtime() - began) / times / 2))


def main() -> None:
    """Exchange in turn; the first round makes the connections and does not count."""
    comm = MPI.COMM_WORLD
    if sys.argv[1].isdigit():
        found = costs(comm, int(sys.argv[1]))
        print(json.dumps(found)) if comm.rank == 0 else None
        return
    plan = json.loads(Path(sys.argv[1]).read_text())
    orders = [messages(plan["graph"], seats, comm.rank) for seats in plan["seats"]]
    rounds = [[exchange(comm, *order) for order in orders] for _ in range(1 + plan["rounds"])]
    if comm.rank == 0:
        print(json.dumps(list(zip(*rounds[1:], strict=True))))


if __name__ == "__main__":
    main()
