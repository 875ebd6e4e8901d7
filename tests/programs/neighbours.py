"""Neighbourhood collectives of random graphs against the MPI library's own; each test runs on all ranks.

To be run by ``pytest_on_ranks`` of ``tests/support.py``; a failure on one rank ends all.
"""

import os

import numpy as np
import pytest
from mpi4py import MPI

import topompi
from topompi.mpi.execution.native import NativeTopocomm
from topompi.mpi.execution.requests import PersistentRequest, PlanRequest
from topompi.topology import TopologyInterface, load

pytestmark = pytest.mark.mpi

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()
FABRIC = load("xgft:2,2,2;1,1,1")
SEEDS = range(int(os.environ.get("NEIGHBOUR_SEEDS", "4")))
METHODS = tuple(f"Neighbor_{name}" for name in ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"))


def placed(rng):
    """A communicator on some of the fabric's hosts, in any order."""
    hosts = [FABRIC.fabric.hosts[one] for one in rng.integers(0, rng.integers(2, 7), SIZE)]
    view = TopologyInterface.place(hosts, FABRIC.routes, virtual=True)
    return topompi.Intracomm(WORLD, topology=view)


def random_graph(comm, rng):
    """Random edges, several between two ranks and from a rank to itself; each rank lists its own in any order."""
    edges = rng.integers(0, SIZE, (rng.integers(0, 6 * SIZE), 2))
    sources = rng.permutation(edges[edges[:, 1] == RANK, 0]).tolist()
    destinations = edges[edges[:, 0] == RANK, 1].tolist()
    rng.bit_generator.state = np.random.default_rng(int(edges.sum())).bit_generator.state  # equal on all ranks again
    return comm.Create_dist_graph_adjacent(sources, destinations)


def grid(comm, rng):
    """A grid of two or three dimensions, some of them periodic, with sides of one or two ranks."""
    dims = MPI.Compute_dims(SIZE, int(rng.integers(2, 4)))
    return comm.Create_cart(dims, [bool(one) for one in rng.integers(0, 2, len(dims))])


def graph(comm, rng):
    """A graph of MPI-1: a ring."""
    edges = [one % SIZE for rank in range(SIZE) for one in (rank - 1, rank + 1)]
    return comm.Create_graph(list(range(2, 2 * SIZE + 1, 2)), edges)


KINDS = {"distributed graph": random_graph, "grid": grid, "graph": graph}


class Blocks:
    """Blocks of random sizes, with holes between them, that both ends of each edge know."""

    def __init__(self, made, method, rng):
        self.shares, self.equal = "allgather" in method, method[-1] not in "vw"
        self.typed = method.endswith("w")
        out, into = made.outedges, made.inedges
        most = int(rng.choice([1, 3, 40, 3000]))
        sizes = rng.integers(0, most + 1, (SIZE, SIZE))
        sizes[:] = rng.integers(0, most + 1) if self.equal else sizes
        if self.shares:
            sizes[:] = sizes[:, :1]
        self.out = [0 if one < 0 else int(sizes[RANK, one]) for one in out]
        self.into = [0 if one < 0 else int(sizes[one, RANK]) for one in into]
        self.each = int(sizes[0, 0])
        if self.equal:
            self.out, self.into = ([self.each] * len(some) for some in (out, into))
        gap = 0 if self.equal else int(rng.integers(0, 3))
        self.strided = bool(rng.integers(0, 2)) and not self.equal
        self.out_at, self.into_at = (
            np.cumsum([0, *some])[:-1] + gap * np.arange(len(some)) for some in (self.out, self.into)
        )
        own = np.random.default_rng((RANK, int(sizes.sum())))
        length = int(sizes[RANK, 0]) if self.shares else sum(self.out) + gap * len(out)
        self.sent = own.integers(0, 2**31, 2 * length + 2, dtype=np.int64)
        self.room = sum(self.into) + gap * len(into)
        self.length = length
        self.type = MPI.INT64_T.Create_vector(1, 1, 1).Create_resized(0, 16).Commit() if self.strided else MPI.INT64_T

    def message(self, memory, counts, begins, length):
        if self.typed:
            extent = 16 if self.strided else 8
            return [memory, (counts, [extent * int(one) for one in begins]), [self.type] * len(counts)]
        if counts is None:
            return [memory, length, self.type]
        return [memory, (counts, begins), self.type]

    def arguments(self):
        received = np.full(2 * self.room + 2, -7, dtype=np.int64)
        if self.equal and not self.shares:
            send = [self.sent, self.each, self.type]
        elif self.shares:
            send = [self.sent, self.length, self.type]
        else:
            send = self.message(self.sent, self.out, self.out_at, 0)
        if self.equal:
            return send, [received, self.each, self.type], received  # Open MPI sends nothing where this count is 0
        return send, self.message(received, self.into, self.into_at, 0), received

    def elsewhere(self):
        """The same arguments in other memory."""
        self.sent = self.sent.copy()
        return self.arguments()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_calls_equal_native_calls(kind, seed):
    """All methods in turn on one communicator, with other sizes each time: blocks outgrow what was planned."""
    rng = np.random.default_rng(seed)
    comm = placed(rng)
    made = KINDS[kind](comm, rng)
    for turn in range(5):
        for method in METHODS:
            blocks = Blocks(made, method, rng)
            send, receive, got = blocks.arguments()
            _, wanted_in, wanted = blocks.arguments()
            getattr(NativeTopocomm, method)(made, send, wanted_in)
            for _ in range(3):
                getattr(made, method)(send, receive)
                assert (got == wanted).all(), (method, turn)
                send, receive, got = blocks.elsewhere()
            request = getattr(made, f"{method}_init")(send, receive)
            ours = isinstance(request, PersistentRequest)
            for time in range(2 * ours):  # Open MPI's own pairs several edges of two ranks otherwise
                got[:] = -7
                request.Start()
                while time and not request.Test():
                    pass
                request.Wait()
                assert (got == wanted).all(), (method, "persistent", turn)
            request.Free()
    made.Free()
    comm.free()


def waited(requests, native, way):
    """Complete requests of topompi and of the library in one of the ways of MPI."""
    if way == "together":
        MPI.Request.Waitall([*native, *requests])
    elif way == "one by one":
        for request in [*requests[RANK % 2 :], *requests[: RANK % 2], *native]:
            request.Wait()
    elif way == "tested":
        while not all(request.Test() for request in requests):
            pass
        MPI.Request.Waitall(native)
    else:
        while MPI.Request.Waitsome(requests):
            pass
        assert MPI.Request.Testall(requests)
        MPI.Request.Waitall(native)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_non_blocking_calls_equal_native_calls(kind, seed):
    """Several calls at once, more than there are channels, among the library's own messages, completed in any order."""
    rng = np.random.default_rng(1000 + seed)
    comm = placed(rng)
    made = KINDS[kind](comm, rng)
    for method in METHODS[:3:2]:  # they make the plans of allgathers and of alltoalls
        send, receive, _ = Blocks(made, method, rng).arguments()
        getattr(made, method)(send, receive)
    for way in ("together", "one by one", "tested", "some", "together"):
        under, expected, got = [], [], []
        native = [WORLD.Isend(b"*", (RANK + 1) % SIZE, 7), WORLD.Irecv(bytearray(1), (RANK - 1) % SIZE, 7)]
        for method in rng.choice(METHODS, int(rng.integers(1, 10))):
            blocks = Blocks(made, str(method), rng)
            send, receive, arrived = blocks.arguments()
            _, wanted_in, wanted = blocks.arguments()
            getattr(NativeTopocomm, method)(made, send, wanted_in)
            start = getattr(made, f"I{method.lower()}")
            request = start(send, receive)
            if not isinstance(request, PlanRequest):  # Open MPI's own pairs several edges of two ranks otherwise
                request.Wait()
                continue
            under.append(request)
            got.append(arrived)
            for _ in range(int(rng.integers(0, 6))):  # the fifth has the plan of the first
                send, receive, arrived = blocks.elsewhere()
                start(send, receive).Wait()
                assert (arrived == wanted).all(), (method, way)
            expected.append(wanted)
        waited(under, native, way)
        for one, other in zip(got, expected, strict=True):
            assert (one == other).all(), way
    made.Free()
    comm.free()
