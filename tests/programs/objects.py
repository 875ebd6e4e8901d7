"""Scans and broadcasts of objects by every schedule equal the MPI library's; run on any number of ranks."""

import numpy as np
import pytest
from mpi4py import MPI

import topompi
from topompi.mpi.communicator.state import state_of
from topompi.mpi.selection.choice import Choice
from topompi.schedules import ALGORITHMS
from topompi.topology import TopologyInterface, load

WORLD = MPI.COMM_WORLD
HOSTS = [f"h000{rank // 2 % 8}" for rank in range(WORLD.size)]
PLACED = TopologyInterface.place(HOSTS, load("xgft:2,2,2;1,1,1").routes)


class Always:
    """A selector with one answer."""

    def __init__(self, algorithm):
        self.algorithm = algorithm

    def choose(self, *_, **__):
        return Choice(self.algorithm, "forced")


@pytest.mark.parametrize("algorithm", ALGORITHMS["scan"])
@pytest.mark.parametrize("name", ["scan", "exscan"])
@pytest.mark.parametrize(
    ("of_rank", "op"),
    [
        (lambda rank: f"{rank},", lambda one, other: one + other),  # does not commute
        (lambda rank: rank + 1, MPI.PROD),
        (lambda rank: [rank] * (5_000 if rank % 2 else 1), lambda one, other: one + other),  # beyond eager messages
        (lambda rank: np.array([[1, rank], [0, 1]]), lambda one, other: one @ other),
    ],
)
def test_objects_are_combined_in_the_order_of_ranks(name, algorithm, of_rank, op):
    comm = topompi.Intracomm(WORLD.Dup(), topology=PLACED)
    state_of(comm).selector = Always(algorithm)
    mine = of_rank(WORLD.rank)
    expected, got = getattr(WORLD, name)(mine, op), getattr(comm, name)(mine, op)
    assert np.array_equal(got, expected) if isinstance(expected, np.ndarray) else got == expected
    comm.Free()


def never(low, high):
    raise KeyError(low)


class Unsendable:
    """An object that cannot be pickled."""

    def __reduce__(self):
        raise ArithmeticError


@pytest.mark.skipif(WORLD.size == 1, reason="one rank combines nothing")
@pytest.mark.parametrize("algorithm", ["chain", "doubling", "leaders"])
def test_an_operation_that_raises_keeps_no_rank_waiting(algorithm):
    comm = topompi.Intracomm(WORLD.Dup(), topology=PLACED)
    state_of(comm).selector = Always(algorithm)

    def raised(call):
        try:
            call()
        except Exception as error:
            return type(error)
        return None

    inclusive = raised(lambda: comm.scan(comm.rank, never))
    exclusive = raised(lambda: comm.exscan(comm.rank, never))
    assert comm.rank < 1 or inclusive is KeyError
    assert comm.rank < 2 or exclusive is KeyError
    raised(lambda: comm.scan(Unsendable() if comm.rank == 1 else comm.rank, lambda low, high: low))
    assert comm.scan(comm.rank, lambda low, high: low + high) == comm.rank * (comm.rank + 1) // 2
    comm.Free()


@pytest.mark.parametrize("algorithm", ["native", *ALGORITHMS["bcast"]])
@pytest.mark.parametrize("root", sorted({0, WORLD.size - 1}))
def test_an_object_is_broadcast_as_what_it_was(algorithm, root):
    comm = topompi.Intracomm(WORLD.Dup(), topology=PLACED)
    state_of(comm).selector = Always(algorithm)
    for sent in ("word", {"key": [1, 2.5, None]}, list(range(5_000))):
        got = comm.bcast(sent if WORLD.rank == root else "ignored", root)
        assert got == sent
        assert got is not sent
    comm.Free()


def test_a_root_out_of_range_is_an_error_of_mpi():
    comm = topompi.Intracomm(WORLD.Dup(), topology=PLACED)
    with pytest.raises(MPI.Exception):
        comm.bcast(1, WORLD.size)
    comm.Free()
