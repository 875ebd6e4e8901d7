"""Legal programs with started persistent collectives: ranks complete them before or after other calls of MPI.

``elsewhere.py FILE`` prints the class of each request, and of each other call whether the results are right after it.
"""

import sys
from itertools import cycle

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.rank, WORLD.size


def until(test):
    while not test():
        pass


STARTS = cycle((lambda one: one.Start(), lambda one: MPI.Prequest.Startall([one])))
ENDS = cycle(
    (
        lambda one: one.Wait(),
        lambda one: MPI.Request.Waitall([MPI.REQUEST_NULL, one]),
        lambda one: until(one.Test),
        lambda one: MPI.Request.Waitany([one]),
        lambda one: [until(one.Get_status), one.Wait()],
    )
)


def requests():
    """Persistent requests, by name, with the array that each fills, and what it must hold."""
    send, total, made = np.arange(6.0) + RANK, np.zeros(6), WORLD.Dup()
    request = made.Allreduce_init(send, total)
    if type(request) is not MPI.Prequest:
        made.Free()
    yield "Allreduce", request, total, sum(np.arange(6.0) + rank for rank in range(SIZE))
    graph = WORLD.Create_dist_graph_adjacent(list(range(SIZE)), list(range(SIZE)))
    blocks = np.zeros((SIZE, 6))
    request = graph.Neighbor_allgather_init(send, blocks)
    if type(request) is not MPI.Prequest:  # else Open MPI 5.0 uses the communicator after its end
        graph.Free()
    yield "Neighbor_allgather", request, blocks, [np.arange(6.0) + rank for rank in range(SIZE)]


def ring():
    """Synchronous messages around all ranks."""
    sent = WORLD.Issend(np.ones(1), (RANK + 1) % SIZE, 3)
    WORLD.Probe((RANK - 1) % SIZE, 3)
    WORLD.Recv(np.ones(1), (RANK - 1) % SIZE, 3)
    sent.Wait()


def others(path):
    """Other calls that end only if all ranks make them, by name."""
    window, file = MPI.Win.Allocate(8, comm=WORLD), MPI.File.Open(WORLD, path, MPI.MODE_RDWR | MPI.MODE_CREATE)
    fresh = [WORLD.Dup() for _ in range(8)]
    yield "Barrier", WORLD.Barrier
    yield "Ibarrier", lambda: WORLD.Ibarrier().Wait()
    yield "Waitall", lambda: MPI.Request.Waitall([WORLD.Ibarrier(), WORLD.Iallreduce(np.ones(3), np.zeros(3))])
    yield "messages", ring
    yield "first objects", lambda: fresh.pop().allreduce(RANK)
    yield "first scan of objects", lambda: fresh.pop().scan(RANK)
    yield "objects", lambda: WORLD.allgather(RANK)
    yield "fence", window.Fence
    yield "file", lambda: file.Write_at_all(8 * RANK, np.ones(1))
    yield "duplicate", lambda: WORLD.Dup().Free()
    yield "split", lambda: WORLD.Split(0, -RANK).Free()
    for last in (window, file, *fresh):
        last.Close() if last is file else last.Free()


def main():
    for name, request, room, wanted in requests():
        if RANK == 0:
            print(name, type(request).__name__)
        for other, call in others(sys.argv[1]):
            room[:] = -1
            next(STARTS)(request)
            end = next(ENDS)
            for act in (end, lambda _, call=call: call()) if RANK % 2 else (lambda _, call=call: call(), end):
                act(request)
            right = WORLD.allreduce(bool((room == wanted).all()), MPI.LAND)
            if RANK == 0:
                print(other, right, flush=True)
        request.Free()
        assert request == MPI.REQUEST_NULL


main()
