"""Misuse and missing files: the same error on all ranks, and no hang; each test runs on all ranks.

How long the slowest error took to reach all ranks is printed at the end. To be run
by ``pytest_on_ranks`` of ``tests/support.py``; a failure on one rank ends all.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

import topompi
import topompi.mpi.communicator.agreement
from topompi.errors import SourceError, TopompiError
from topompi.mpi.communicator.agreement import AgreementError
from topompi.mpi.execution.rankzero import from_rank_0
from topompi.topology import TopologyInterface

pytestmark = [pytest.mark.mpi, pytest.mark.skipif(MPI.COMM_WORLD.Get_size() < 2, reason="one rank agrees with itself")]

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()
LAST = RANK == SIZE - 1
HOSTS = [f"h000{rank % 8}" for rank in range(SIZE)]
TOOK = {}


def raised_alike(call, kind, told=""):
    """Assert that a collective call raises one error, with one message, on all ranks."""
    WORLD.Barrier()
    begin = time.monotonic()
    try:
        call()
    except kind as error:
        said = f"{type(error).__name__}: {error}"
    else:
        said = "nothing"
    took = time.monotonic() - begin
    TOOK[f"{said:.60}"] = max(WORLD.allgather(took))
    assert len(set(WORLD.allgather(said))) == 1, said
    assert told in said
    assert said != "nothing"
    return said


@pytest.fixture(params=["flat", "levels"])
def comm(request, monkeypatch):
    """A communicator whose calls are checked; only rank 0 is told so."""
    if RANK == 0:
        monkeypatch.setenv("TOPOMPI_CHECK", "1")
    else:
        monkeypatch.delenv("TOPOMPI_CHECK", raising=False)
    hosts = ["h0000"] * SIZE if request.param == "flat" else HOSTS
    made = topompi.Intracomm(WORLD.Dup(), topology="xgft:2,2,2;1,1,1", hosts=hosts)
    yield made
    made.Free()


def of_size(number):
    return np.zeros(number)


WRONG = {
    "another root": ("one root", lambda c: c.Bcast(of_size(2), 1 if LAST else 0)),
    "another root of objects": ("one root", lambda c: c.bcast(1, root=1 if LAST else 0)),
    "another root, not blocking": ("one root", lambda c: c.Ibcast(of_size(2), 1 if LAST else 0)),
    "another root, persistent": ("one root", lambda c: c.Bcast_init(of_size(2), 1 if LAST else 0)),
    "a root that is none": ("one root", lambda c: c.Gatherv(of_size(2), of_size(2 * SIZE), 99 if LAST else 0)),
    "another root of a reduction": ("one root", lambda c: c.Reduce(of_size(2), of_size(2), root=1 if LAST else 0)),
    "another count": ("one number of bytes", lambda c: c.Bcast(of_size(3 if LAST else 2))),
    "another count in a reduction": (
        "one number of bytes",
        lambda c: c.Allreduce(of_size(2 + LAST), of_size(2 + LAST)),
    ),
    "another type": ("one number of bytes", lambda c: c.Bcast(np.zeros(4, "f4" if LAST else "f8"))),
    "another operation": (
        "one operation",
        lambda c: c.Allreduce(of_size(2), of_size(2), MPI.MAX if LAST else MPI.SUM),
    ),
    "another operation on objects": ("one operation", lambda c: c.allreduce(1, op=MPI.MAX if LAST else MPI.SUM)),
    "another call": ("one collective", lambda c: c.Barrier() if LAST else c.Bcast(of_size(2))),
    "a split by some": ("one collective", lambda c: c.Dup() if LAST else c.Bcast(of_size(2))),
    "too much sent": (
        f"rank 0 expects 16 bytes from rank {SIZE - 1}, which sends 24",
        lambda c: c.Gather(of_size(3 if LAST else 2), of_size(2 * SIZE) if RANK == 0 else None),
    ),
    "too little sent": (
        f"rank 0 expects 16 bytes from rank {SIZE - 1}, which sends 8",
        lambda c: c.Gatherv(of_size(1 if LAST else 2), of_size(2 * SIZE) if RANK == 0 else None),
    ),
    "too little room": (
        f"rank {SIZE - 1} expects 8 bytes from rank 0, which sends 16",
        lambda c: c.Scatter(of_size(2 * SIZE) if RANK == 0 else None, of_size(1 if LAST else 2)),
    ),
    "other counts": (
        f"rank {SIZE - 1} expects 16 bytes from rank 0, which sends 8",
        lambda c: c.Allgatherv(of_size(1), [of_size(2 * SIZE), [2 if LAST else 1] * SIZE]),
    ),
    "blocks of two sizes": ("expects", lambda c: c.Alltoall(of_size((1 + LAST) * SIZE), of_size((1 + LAST) * SIZE))),
    "counts that do not mirror": (
        "expects",
        lambda c: c.Alltoallv([of_size(SIZE), [0 if LAST else 1] * SIZE], [of_size(SIZE), [1] * SIZE]),
    ),
    "no buffer": (f"rank {SIZE - 1}:", lambda c: c.Bcast(None if LAST else of_size(2))),
    "a list": (f"rank {SIZE - 1}:", lambda c: c.Allreduce(3 if LAST else of_size(2), of_size(2))),
}


@pytest.mark.parametrize("case", WRONG)
def test_misuse_raises_one_error_on_all_ranks(comm, case):
    told, call = WRONG[case]
    said = raised_alike(lambda: call(comm), AgreementError, told)
    assert said.startswith("AgreementError: ")
    data = np.array([RANK])
    comm.Bcast(data, SIZE - 1)  # and the communicator goes on
    assert data[0] == SIZE - 1


def test_children_are_checked_as_their_parents(comm):
    child = comm.Split(0, RANK)
    raised_alike(lambda: child.Dup().Bcast(of_size(2), 1 if LAST else 0), AgreementError, "one root")
    child.Free()


def test_right_calls_pass(comm):
    """In place at the root, nothing at the others, derived types, counts of each: all that is right is let through."""
    column = MPI.DOUBLE.Create_vector(2, 1, 2).Commit()
    counts = [rank % 3 for rank in range(SIZE)]
    everything = of_size(2 * SIZE)
    comm.Gather(MPI.IN_PLACE if RANK == 1 else of_size(2), everything if RANK == 1 else None, 1)
    comm.Scatter(everything if RANK == 0 else None, MPI.IN_PLACE if RANK == 0 else of_size(2))
    comm.Gatherv(of_size(counts[RANK]), [of_size(sum(counts)), counts] if RANK == 0 else None)
    comm.Scatterv([of_size(sum(counts)), counts] if RANK == 0 else None, of_size(counts[RANK]))
    comm.Bcast([of_size(4), 1, column] if LAST else of_size(2))
    comm.Allgather(MPI.IN_PLACE, everything)
    comm.Allgatherv(of_size(counts[RANK]), [of_size(sum(counts)), counts])
    comm.Alltoall(MPI.IN_PLACE, everything)
    comm.Alltoallv([everything, [RANK % 2] * SIZE], [everything.copy(), [rank % 2 for rank in range(SIZE)]])
    comm.Reduce(MPI.IN_PLACE if RANK == 0 else of_size(2), of_size(2) if RANK == 0 else None)
    comm.Reduce_scatter_block(everything, of_size(2))
    comm.Reduce_scatter(everything, of_size(2), [2] * SIZE)
    comm.Scan(of_size(2), of_size(2))
    comm.Ibarrier().Wait()
    comm.Iallreduce(of_size(2), of_size(2)).Wait()
    assert comm.reduce(1, root=1) == (SIZE if RANK == 1 else None)
    column.Free()


@pytest.fixture
def folder():
    """A directory of this rank alone; pytest's own would be cleared up by all ranks at once, and collide."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def test_a_topology_file_that_one_rank_has_not(folder):
    """Rank 0's file counts: where it has none all ranks hear of it; what the others have does not matter."""
    there = folder / "hosts.txt"
    there.write_text("".join(f"{host} s{place % 2} c0\n" for place, host in enumerate(dict.fromkeys(HOSTS))))
    missing = str(there) if RANK else "/nowhere/hosts.txt"
    raised_alike(lambda: topompi.Intracomm(WORLD, topology=missing), SourceError, "/nowhere/hosts.txt")
    comm = topompi.Intracomm(
        WORLD.Dup(), topology="/nowhere" if RANK else "xgft:2,2,2;1,1,1", hosts=HOSTS if RANK == 0 else None
    )
    works = np.array([RANK])
    comm.Bcast(works, 1)
    assert works[0] == 1
    comm.Free()


class UnsendableError(ValueError):
    """An error that holds what cannot be sent, as an open file is."""

    def __init__(self, words, held):
        super().__init__(words)
        self.held = held


@pytest.mark.parametrize("held", [open, lambda: None], ids=["not to be made again", "not to be sent"])
def test_an_error_of_rank_0_that_cannot_be_sent(held):
    def work():
        raise UnsendableError("a broken fabric", held)

    raised_alike(lambda: from_rank_0(WORLD, work), TopompiError, "UnsendableError: a broken fabric")
    assert from_rank_0(WORLD, lambda: RANK + 7) == 7


def test_a_rules_file_that_is_not_there(monkeypatch):
    monkeypatch.setenv("TOPOMPI_RULES", "/nowhere/rules.json" if RANK == 0 else "")
    for place in ({"topology": "xgft:2,2,2;1,1,1", "hosts": HOSTS}, {}):
        raised_alike(lambda place=place: topompi.Intracomm(WORLD, **place), TopompiError, "/nowhere/rules.json")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("TOPOMPI_TUNE", "yes", "TOPOMPI_TUNE: expecting one of measure, again, off, got 'yes'"),
        ("TOPOMPI_FALLBACK", "flat", "TOPOMPI_FALLBACK: expecting one of error, print, silent, got 'flat'"),
        ("TOPOMPI_MAP_QUALITY", "good", "TOPOMPI_MAP_QUALITY: expecting a part"),
        ("TOPOMPI_TOPOLGY", "x", "TOPOMPI_TOPOLGY: expecting a variable that topompi has, such as TOPOMPI_TOPOLOGY"),
    ],
)
def test_a_wrong_variable_of_rank_0_is_refused_at_the_start_on_all_ranks_on_one_host_too(
    monkeypatch, name, value, told
):
    if RANK == 0:
        monkeypatch.setenv(name, value)
    raised_alike(lambda: topompi.Intracomm(WORLD), TopompiError, told)
    raised_alike(lambda: topompi.Intracomm(WORLD, topology="xgft:2,2,2;1,1,1", hosts=HOSTS), TopompiError, told)
    monkeypatch.delenv(name, raising=False)
    if RANK != 0:
        monkeypatch.setenv(name, value)  # rank 0's count
    topompi.Intracomm(WORLD).Barrier()


@pytest.mark.parametrize("hosts", [["h0000"] * SIZE, HOSTS], ids=["flat", "levels"])
def test_freed_communicators_refuse_on_all_ranks(hosts):
    comm = topompi.Intracomm(WORLD.Dup(), topology="xgft:2,2,2;1,1,1", hosts=hosts)
    child, second = comm.Dup(), topompi.Intracomm(comm)
    comm.free()
    for handle in (comm, second):
        raised_alike(lambda handle=handle: handle.Bcast(of_size(1)), RuntimeError, "communicator already freed")
        raised_alike(lambda handle=handle: handle.Bcast_init(of_size(1)), RuntimeError, "communicator already freed")
    child.Bcast(of_size(1))
    child.free()
    comm.Free()
    for handle in (comm, child):
        with pytest.raises(RuntimeError) as refused:  # MPI's own exception, which is one
            handle.Bcast(of_size(1))
        assert refused.value.Get_error_class() == MPI.ERR_COMM


def test_interfaces_over_other_ranks_are_refused():
    raised_alike(
        lambda: topompi.Intracomm(WORLD, topology=TopologyInterface.place(["a"] * (SIZE + 1))), ValueError, "expecting"
    )


def test_the_slowest_is_told(capsys):
    slowest = max(TOOK, key=TOOK.get)
    with capsys.disabled():
        if RANK == 0:
            print(f"{len(TOOK)} errors on {SIZE} ranks, the slowest after {TOOK[slowest]:.3f} s: {slowest}", flush=True)
