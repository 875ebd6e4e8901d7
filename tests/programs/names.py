"""Collectives of communicators whose classes define names of their own, compared with those of plain communicators.

The words on the command line are the names. The classes are those of the launcher; without it, those of topompi.
"""

import sys

import numpy as np
from mpi4py import MPI
from mpi4py.MPI import Cartcomm, Intracomm

KINDS = [Intracomm, Cartcomm]
if not hasattr(Intracomm, "_topompi_lineage"):
    import topompi

    KINDS = [topompi.Intracomm, topompi.Cartcomm]
NAMES = sys.argv[1:]
WORLD = MPI.COMM_WORLD
PLAIN = WORLD.Dup()
SIZE, RANK = WORLD.size, WORLD.rank
MPI_NAMES = [name for name in dir(MPI.Cartcomm) if not name.startswith("_")]


def refuse(*_, **__):
    raise AssertionError("topompi used a name of the user's class")


def proxy(self, name):
    raise AssertionError(f"topompi asked the user's class for {name}")


# What a class of a user's has under its own names: data, methods, properties, slots, and catch-alls.
BODIES = {
    "attributes": dict.fromkeys(NAMES, "mine"),
    "methods": dict.fromkeys(NAMES, refuse),
    "properties": dict.fromkeys(NAMES, property(refuse)),
    "slots": {"__slots__": tuple(NAMES)},
    "catch-alls": {"__getattr__": proxy, "__setattr__": refuse},
    "of MPI": dict.fromkeys(MPI_NAMES, property(refuse)),
}


def results(kind, comm):
    """The results of every collective on a communicator, called as functions of a class."""
    sent = np.arange(4.0 * SIZE) / 3 + RANK
    few, total, each, all_ = sent[:4].copy(), np.empty(4 * SIZE), np.empty(4), np.empty((SIZE, 4))
    counts = [4] * SIZE
    calls = {
        "Bcast": (few,),
        "Gather": (few, all_),
        "Gatherv": (few, [all_, counts]),
        "Scatter": (sent, each),
        "Scatterv": ([sent, counts], each),
        "Allgather": (few, all_),
        "Allgatherv": (few, [all_, counts]),
        "Alltoall": (sent, total),
        "Alltoallv": ([sent, counts], [total, counts]),
        "Reduce": (sent, total),
        "Allreduce": (sent, total),
        "Reduce_scatter": (sent, each, counts),
        "Reduce_scatter_block": (sent, each),
        "Scan": (sent, total),
        "Exscan": (sent, total),
        "Barrier": (),
    }
    found = []
    for name, arguments in calls.items():
        for one in (total, each, all_):
            one[:] = 0
        getattr(kind, name)(comm, *arguments)
        found.append([name, *(np.round(one, 9).tolist() for one in (total, each, all_, few))])
    found += [kind.bcast(comm, {"a": RANK}, SIZE - 1), kind.scan(comm, RANK), kind.allreduce(comm, RANK)]
    request = kind.Allreduce_init(comm, sent, total)
    request.Start()
    request.Wait()
    request.Free()
    kind.barrier(comm)
    return [*found, np.round(total, 9).tolist()]


grid = PLAIN.Create_cart([SIZE])
for kind in KINDS:
    origin = grid if kind is KINDS[1] else PLAIN
    right = results(type(origin), origin)
    for form, body in BODIES.items():
        own = origin.Dup()
        comm = type("Mine", (kind,), dict(body))(own)
        for turn in range(2):
            assert results(kind, comm) == right, (kind, form, turn)
        if form == "attributes":
            assert {getattr(comm, name) for name in NAMES} <= {"mine"}
        child = kind.Split(comm, RANK % 2, RANK)
        parts = MPI.Comm.Get_size(child)
        assert kind.allreduce(child, 1) == parts
        kind.Free(child)
        if kind is KINDS[1]:
            got = np.full((2, 2), -1.0)
            kind.Neighbor_allgather(comm, np.array([float(RANK)]), got[0])
            MPI.Topocomm.Neighbor_allgather(origin, np.array([float(RANK)]), got[1])
            assert (got[0] == got[1]).all()
            kind.Free(kind.Sub(comm, [True]))
        kind.Free(kind.Dup(comm))
        kind.free(comm)
        own.Free()
if RANK == 0:
    print("right", len(NAMES), *BODIES)
