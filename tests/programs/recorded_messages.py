"""Runs calls of the MPI library and writes how many messages and bytes each rank sent to each other one.

The library is MPICH over UCX, and ``count_messages.c`` is loaded before it. Arguments: a file of calls (JSON: method,
bytes, root, whether the operation commutes), and the file to write, an array of shape (calls, 2, p, p).
"""

from __future__ import annotations

import ctypes
import json
import sys

import numpy as np
from mpi4py import MPI

LIBRARY = ctypes.CDLL(None)
MOST = 4096
ENDPOINTS, MESSAGES, BYTES = ((kind * MOST)() for kind in (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64))
IN_ORDER = MPI.Op.Create(lambda a, b, datatype: None, commute=False)
ITEM = 8


def counted(call):
    """What a call sent: messages and bytes by endpoint."""
    LIBRARY.count_messages(1)
    call()
    LIBRARY.count_messages(0)
    found = LIBRARY.take_messages(ENDPOINTS, MESSAGES, BYTES)
    return [(ENDPOINTS[i], MESSAGES[i], BYTES[i]) for i in range(found)]


def endpoints(comm):
    """The rank behind each endpoint, from a message to each."""
    rank_of = {}
    for other in range(comm.size):
        if other == comm.rank:
            continue
        item = np.zeros(1)
        requests = [comm.Irecv(np.zeros(1), other)]
        sent = counted(lambda: requests.append(comm.Isend(item, other)))  # noqa: B023, called at once
        MPI.Request.Waitall(requests)
        rank_of |= {endpoint: other for endpoint, _, _ in sent}
    if not comm.allreduce(bool(rank_of) or comm.size == 1, op=MPI.LOR):
        sys.exit("no messages by UCX")
    return rank_of


def prepared(comm, method, nbytes, root, commutes):
    """A call without arguments."""
    size, items = comm.size, nbytes // ITEM
    op = MPI.SUM if commutes else IN_ORDER
    one, every = np.zeros(items), np.zeros(items * size)
    counts = [items] * size
    arguments = {
        "Bcast": (one, root),
        "Gather": (one, every, root),
        "Gatherv": (one, [every, counts], root),
        "Scatter": (every, one, root),
        "Scatterv": ([every, counts], one, root),
        "Allgather": (one, every),
        "Allgatherv": (one, [every, counts]),
        "Reduce": (one, np.zeros(items), op, root),
        "Allreduce": (one, np.zeros(items), op),
        "Reduce_scatter_block": (one, np.zeros(items // size), op),
        "Reduce_scatter": (one, np.zeros(items // size), [items // size] * size, op),
        "Scan": (one, np.zeros(items), op),
        "Exscan": (one, np.zeros(items), op),
        "Alltoall": (every, every.copy()),
        "Alltoallv": ([every, counts], [every.copy(), counts]),
    }[method]
    return lambda: getattr(comm, method)(*arguments)


def main():
    """See the module."""
    comm = MPI.COMM_WORLD
    with open(sys.argv[1]) as file:
        calls = json.load(file)
    rank_of = endpoints(comm)
    mine = np.zeros((len(calls), 2, comm.size), dtype=np.int64)
    for number, call in enumerate(calls):
        run = prepared(comm, *call)
        comm.Barrier()
        for endpoint, messages, nbytes in counted(run):
            mine[number, :, rank_of[endpoint]] = messages, nbytes
    table = comm.gather(mine)
    if comm.rank == 0:
        np.save(sys.argv[2], np.stack(table, axis=2))


main()
