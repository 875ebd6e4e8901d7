"""Communicators made together: whom they know of each other, and their alltoalls at one time; runs on all ranks.

To be run by ``pytest_on_ranks`` of ``tests/support.py``; a failure on one rank ends all.
"""

import os

import numpy as np
import pytest
from mpi4py import MPI

import topompi
from tests.programs.derived import FABRIC, HOSTS, RANK, SIZE, WORLD
from topompi.mpi.communicator.state import state_of
from topompi.mpi.execution import running as planned
from topompi.schedules.alltoall.joint import joint_steps
from topompi.topology import TopologyInterface

pytestmark = pytest.mark.mpi

os.environ["TOPOMPI_NATIVE_CALLS"] = "0"  # so that split communicators run what is chosen at once


@pytest.fixture
def comm():
    view = TopologyInterface.place(HOSTS, FABRIC.routes)  # on a virtual one all is the library's
    made = topompi.Intracomm(WORLD.Dup(), topology=view)
    yield made
    made.Free()


def members(child):
    """Ranks in the world of a communicator, in its order."""
    return child.allgather(RANK)


def groups_of(comm, child):
    """All the communicators of a split, each by its ranks in its order, found out by asking everyone."""
    told = comm.allgather(None if child == MPI.COMM_NULL else tuple(members(child)))
    return {one for one in told if one is not None}


WAYS = {
    "columns": lambda comm: comm.Split(RANK % 2, RANK),
    "backwards": lambda comm: comm.Split(7 * (RANK % 3), -RANK),
    "by keyword": lambda comm: comm.Split(color=RANK // 2, key=0),
    "some left out": lambda comm: comm.Split(MPI.UNDEFINED if RANK % 3 == 2 else RANK % 3, RANK % 2),
    "rows of a grid": lambda comm: grid(comm).Sub([False, True]),
    "columns of a grid": lambda comm: grid(comm).Sub([True, False]),
    "of a part": lambda comm: comm.Split(RANK % 2, -RANK).Split(RANK // 2 % 2, 0),
    "a duplicate": lambda comm: comm.Split(RANK % 2, RANK).Dup(),
}


def grid(comm):
    return comm.Create_cart(MPI.Compute_dims(SIZE, 2))


@pytest.mark.parametrize("name", WAYS)
def test_a_communicator_knows_those_made_with_it(comm, name):
    child = WAYS[name](comm)
    parent = comm.Split(RANK % 2, RANK) if name == "of a part" else comm
    true = groups_of(parent, child)
    if child == MPI.COMM_NULL:
        return
    siblings = state_of(child).common.siblings
    if len(true) < 2:
        assert siblings is None
        return
    assert {tuple(siblings.ranks[group].tolist()) for group in siblings.groups} == true
    assert siblings.ranks[siblings.groups[siblings.number]].tolist() == members(child)
    hosts = [HOSTS[rank] for rank in siblings.ranks]
    there = state_of(child).executor.network.siblings.network
    assert [hosts[a] == hosts[b] for a in range(len(hosts)) for b in range(len(hosts))] == [
        bool(there.rank_host[a] == there.rank_host[b]) for a in range(len(hosts)) for b in range(len(hosts))
    ]
    child.Free()


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("algorithm", ["joint", "paced", "even"])
def test_exchanges_at_one_time_are_right(comm, name, algorithm):
    """Alltoall, Alltoallv and Alltoallw give what the MPI library's own give, whatever the siblings run meanwhile."""
    child = WAYS[name](comm)
    if child == MPI.COMM_NULL:
        return
    executor, size = state_of(child).executor, child.size
    siblings = state_of(child).common.siblings
    mine = "shift" if algorithm == "paced" and siblings and siblings.number == 1 else algorithm
    sent, received = np.arange(3 * size) + 100 * RANK, np.zeros((2, 3 * size), int)
    MPI.Intracomm(child).Alltoall(sent, received[0])
    assert planned.run(executor, "Alltoall", mine, (sent, received[1])) == (mine if size > 1 else "native") or size == 1
    assert np.array_equal(*received)
    counts = np.array([[(a + 2 * b) % 4 for b in range(size)] for a in range(size)])
    out, into = counts[child.rank], counts[:, child.rank]
    received = np.zeros((3, max(1, into.sum())), int)
    spec = ([sent, out], [received[0], into])
    MPI.Intracomm(child).Alltoallv(*spec)
    planned.run(executor, "Alltoallv", mine, ([sent, out], [received[1], into]))
    ends = [8 * (np.cumsum(some) - some) for some in (out, into)]
    types = [[MPI.INT64_T] * size for _ in range(2)]
    planned.run(executor, "Alltoallw", mine, ([sent, out, ends[0], types[0]], [received[2], into, ends[1], types[1]]))
    assert np.array_equal(received[0], received[1])
    assert np.array_equal(received[0], received[2])
    child.Free()


def test_each_runs_its_part_of_one_schedule(comm):
    """The steps that a communicator makes are those of the schedule for all of them."""
    child = comm.Split(RANK % 2, RANK)
    siblings = state_of(child).common.siblings
    if siblings is not None:
        together = joint_steps(siblings.network, siblings.groups)
        shared = state_of(child).executor.network.siblings
        assert np.array_equal(together[siblings.number], joint_steps(shared.network, shared.groups)[shared.number])
        assert len(together[siblings.number]) == child.size
    child.Free()


def outcome(comm, given):
    """The class of the error that a split raises; of the communicator that it makes, freed, the group."""
    try:
        made = comm.Split(*given)
    except Exception as error:
        return type(error)
    if made == MPI.COMM_NULL:
        return None
    group = made.Get_group()
    made.Free()
    return group


def test_a_split_makes_what_the_library_would(comm):
    """Members and their order; ranks in no part; colors and keys that the library refuses, on all ranks."""
    generator, most = np.random.default_rng(27), 2**31 - 1
    colors = generator.choice([0, 1, 2, most, MPI.UNDEFINED], (12, SIZE)).tolist()
    keys = generator.choice([-most - 1, -1, 0, 0, 1, most], (12, SIZE)).tolist()
    asked = [(color[RANK], key[RANK]) for color, key in zip(colors, keys, strict=True)]
    for given in [*asked, *asked, (-7, 0), ("a", 0), (0, 1.5), (2**40, 0), (0, -(2**40)), (None,), (0, 0, 0)]:
        theirs, ours = (outcome(one, given) for one in (MPI.Intracomm(comm), comm))
        if isinstance(theirs, MPI.Group):
            assert MPI.Group.Compare(theirs, ours) == MPI.IDENT
            theirs.Free()
            ours.Free()
        else:
            assert ours is theirs, given


def test_a_split_like_an_earlier_one_shares_what_that_one_found_out(comm):
    """Whatever it is the ranks of; one of other ranks, or in another order, shares nothing."""
    first, other = comm.Split(RANK % 2, RANK), comm.Split(RANK % 2, -RANK)
    first.Allreduce(np.ones(1), np.empty(1))
    again, grid_rows = comm.Split(RANK % 2, RANK), [grid(comm).Sub([False, True]) for _ in range(2)]
    if SIZE > 1:
        assert state_of(again).common is state_of(first).common is not state_of(other).common
        assert state_of(grid_rows[0]).common is state_of(grid_rows[1]).common
    assert again.allgather(RANK) == first.allgather(RANK)
    for one in (first, other, again, *grid_rows):
        one.Free()


def test_nothing_is_asked_where_no_network_is_known(comm):
    """On one host, or without routes, a split is the MPI library's and no more."""
    plain = topompi.Intracomm(WORLD.Dup(), topology=TopologyInterface.place(HOSTS))
    alone = topompi.Intracomm(
        WORLD.Dup(), topology=TopologyInterface.place(HOSTS[:1] * SIZE, FABRIC.routes, virtual=True)
    )
    for one in (plain, alone):
        child = one.Split(RANK % 2, RANK)
        assert state_of(child).common.siblings is None
        child.Free()
        one.Free()


def test_calls_with_blocks_of_any_sizes_are_chosen_by_those_of_the_first():
    """All ranks agree on a size, that of the rank that sends most; what moves nothing says nothing."""
    asked = []
    comm = topompi.Intracomm(WORLD.Dup(), topology=TopologyInterface.place(HOSTS, FABRIC.routes))
    selector = state_of(comm).selector
    choose = selector.choose

    def note(method, nbytes, needs, **more):
        asked.append((method, nbytes))
        return choose(method, nbytes, needs, **more)

    selector.choose = note
    for each in (0, 40, 3):
        data, received = np.zeros(each * SIZE * (1 + RANK)), np.zeros(each * SIZE * SIZE)
        counts = np.full(SIZE, each * (1 + RANK))
        comm.Alltoallv([data, counts], [received, each * np.arange(1, SIZE + 1)])
    if SIZE > 1:  # else calls are native, and nobody asks
        assert asked == [("Alltoallv", 0), ("Alltoallv", 320 * SIZE), ("Alltoallv", 320 * SIZE)][: len(asked)]
    types = [MPI.DOUBLE] * SIZE
    blocks = (np.full(SIZE, 5), 40 * np.arange(SIZE), types)
    received = np.zeros(5 * SIZE)
    comm.Alltoallw([np.arange(5.0 * SIZE), *blocks], [received, *blocks])
    assert np.array_equal(received.reshape(SIZE, 5), np.tile(np.arange(5.0) + 5 * RANK, (SIZE, 1)))
    assert asked[-1:] in ([("Alltoallw", 40)], [])
    comm.Free()
