"""The sparse exchange: what all ranks sent arrives, in order; each test runs on all ranks.

To be run by ``pytest_on_ranks`` of ``tests/support.py``; a failure on one rank ends all.
"""

import numpy as np
import pytest
from mpi4py import MPI

import topompi

pytestmark = pytest.mark.mpi

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()


def payload(kind, rank, number):
    """Arrays in one message, an object with an array that follows it, an empty array, text, and less usual arrays."""
    return (
        np.full((3, number + 1), rank + number, dtype="f4"),
        {"values": np.arange(9000.0) + number, "rank": rank},
        np.zeros((0, 2)),
        f"{rank} {number}",
        np.full((2, 1, 3), 1j * rank + number, dtype=">c16"),
        np.array(rank % 2 == 0),
        np.asfortranarray(np.full((2, number + 2), number, dtype="u2")),
        np.full(number + 1, rank, dtype=[("a", "i4"), ("b", "f8")]),
    )[kind % 8]


def same(one, other):
    if isinstance(one, dict):
        return one["rank"] == other["rank"] and same(one["values"], other["values"])
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and bool((one == other).all())
    return bool(one == other)


@pytest.mark.parametrize("ours", [True, False])
def test_payloads_arrive_sorted_by_source(ours):
    comm = topompi.Intracomm(WORLD) if ours else WORLD
    rng = np.random.default_rng(3)
    for turn in range(12):
        many = rng.integers(0, 3, (SIZE, SIZE))
        destinations = np.repeat(np.arange(SIZE), many[RANK]).tolist()
        sent = [payload(turn + number, RANK, number) for number in range(len(destinations))]
        sources, received = topompi.exchange(comm, destinations, sent)
        assert sources == np.repeat(np.arange(SIZE), many[:, RANK]).tolist()
        first = {rank: int(many[rank, :RANK].sum()) for rank in range(SIZE)}
        for source, got in zip(sources, received, strict=True):
            assert same(payload(turn + first[source], source, first[source]), got)
            first[source] += 1


def test_arrays_that_arrive_can_be_changed():
    for length in (5, 9000):
        _, (got,) = topompi.exchange(WORLD, [(RANK + 1) % SIZE], [np.zeros(length)])
        got += 1
        assert got.sum() == length


@pytest.mark.parametrize("number", [int, np.int8, np.uint64, np.array])
def test_ranks_are_whole_numbers_of_any_type(number):
    assert topompi.exchange(WORLD, [number((RANK + 1) % SIZE)], [RANK]) == ([(RANK - 1) % SIZE], [(RANK - 1) % SIZE])


@pytest.mark.parametrize(
    "wrong",
    [
        *(([rank], ["x"]) for rank in (SIZE, -1, 0.7, 0.0, np.float64(0), "0", None, [0], float("nan"))),
        ([0], []),
        ([0], [lambda: None]),
    ],
)
def test_an_error_on_one_rank_makes_no_other_wait(wrong):
    if RANK == SIZE - 1:
        with pytest.raises(Exception, match=r"expecting|pickle"):
            topompi.exchange(WORLD, *wrong)
    else:
        sources, _ = topompi.exchange(WORLD, [SIZE - 1], [1])
        assert sources == []
