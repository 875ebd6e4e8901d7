"""Communicators made from ours: classes, placement, results, object methods; each test runs on all ranks.

To be run by ``pytest_on_ranks`` of ``tests/support.py``; a failure on one rank ends all.
"""

import copy
import pickle
import threading

import numpy as np
import pytest
from mpi4py import MPI

import topompi
import topompi.mpi.communicator
import topompi.mpi.communicator.state
from topompi.mpi.communicator import Cartcomm, Distgraphcomm, Graphcomm, Intercomm, Intracomm
from topompi.mpi.dispatch.state import attached
from topompi.topology import TopologyInterface, load

pytestmark = pytest.mark.mpi

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()
FABRIC = load("xgft:2,2,2;1,1,1")
HOSTS = [FABRIC.fabric.hosts[rank * 5 // 2 % 8] for rank in range(SIZE)]


@pytest.fixture
def comm():
    """A communicator with a virtual placement that no environment and no file knows."""
    view = TopologyInterface.place(HOSTS, FABRIC.routes, virtual=True)
    made = topompi.Intracomm(WORLD.Dup(), topology=view)
    yield made
    made.Free()


@pytest.fixture(autouse=True)
def _nothing_is_looked_up(monkeypatch):
    """Children sit in their parent's topology: nobody may look for one again."""

    def refuse(*_):
        raise AssertionError("looked for a topology again")

    monkeypatch.setattr(topompi.mpi.communicator.state, "find_topology", refuse)


def ring():
    return [(RANK - 1) % SIZE, (RANK + 1) % SIZE]


CHILDREN = {
    "Dup": (Intracomm, lambda comm: comm.Dup()),
    "Dup with info": (Intracomm, lambda comm: comm.Dup_with_info(MPI.INFO_NULL)),
    "Clone": (Intracomm, lambda comm: comm.Clone()),
    "Idup": (Intracomm, lambda comm: completed(comm.Idup())),
    "Split": (Intracomm, lambda comm: comm.Split(RANK % 2, -RANK)),
    "Split_type": (Intracomm, lambda comm: comm.Split_type(MPI.COMM_TYPE_SHARED, key=-RANK)),
    "Create": (Intracomm, lambda comm: in_group(comm, comm.Create)),
    "Create_group": (Intracomm, lambda comm: in_group(comm, comm.Create_group)),
    "Create_cart": (Cartcomm, lambda comm: comm.Create_cart(MPI.Compute_dims(SIZE, 2), reorder=True)),
    "Sub": (Cartcomm, lambda comm: comm.Create_cart(MPI.Compute_dims(SIZE, 2)).Sub([True, False])),
    "Create_graph": (Graphcomm, lambda comm: comm.Create_graph(list(range(2, 2 * SIZE + 1, 2)), edges())),
    "Create_dist_graph": (Distgraphcomm, lambda comm: comm.Create_dist_graph([RANK], [1], [ring()[1]])),
    "Create_dist_graph_adjacent": (Distgraphcomm, lambda comm: comm.Create_dist_graph_adjacent(ring()[:1], ring()[1:])),
}


def edges():
    return [neighbour % SIZE for rank in range(SIZE) for neighbour in (rank - 1, rank + 1)]


def completed(made):
    child, request = made
    request.Wait()
    return child


def in_group(comm, create):
    """A communicator of all ranks backwards."""
    group = comm.Get_group()
    backwards = group.Incl(range(SIZE)[::-1])
    child = create(backwards)
    group.Free()
    backwards.Free()
    return child


def ranks_of(child, parent):
    groups = child.Get_group(), parent.Get_group()
    ranks = groups[0].Translate_ranks(None, groups[1])
    for group in groups:
        group.Free()
    return ranks


@pytest.mark.parametrize("name", CHILDREN)
def test_children_are_ours_and_sit_where_their_ranks_sat(comm, name):
    kind, make = CHILDREN[name]
    child = make(comm)
    assert type(child) is kind
    assert isinstance(child, topompi.Intracomm)
    native = next(base for base in kind.__mro__ if base.__module__ == "mpi4py.MPI")
    assert native.__name__ == kind.__name__
    ranks = ranks_of(child, comm)
    interface = topompi.interface(child)
    assert [interface.hosts[host] for host in interface.rank_host] == [HOSTS[rank] for rank in ranks]
    assert interface.virtual
    again = TopologyInterface.place([HOSTS[rank] for rank in ranks], FABRIC.routes, virtual=True)
    assert (interface.hop_matrix == again.hop_matrix).all()
    assert [(one.name, one.cluster.tolist()) for one in interface.levels] == [
        (one.name, one.cluster.tolist()) for one in again.levels
    ]
    works(child)
    child.Free()
    assert child == MPI.COMM_NULL


@pytest.mark.parametrize("name", CHILDREN)
def test_a_call_known_to_be_the_librarys_on_these_ranks_needs_no_state_of_a_further_communicator(name):
    comm = topompi.Intracomm(WORLD.Dup(), topology=TopologyInterface.place(HOSTS, FABRIC.routes))
    first, second = (CHILDREN[name][1](comm) for _ in range(2))
    for child in (first, second):
        child.Barrier()
    assert attached(second) is None
    for one in (first, second, comm):
        one.Free()


@pytest.mark.parametrize("name", CHILDREN)
def test_grandchildren_of_unused_children_are_placed_too(comm, name):
    child = CHILDREN[name][1](comm)
    grandchild = child.Split(0, -child.rank)
    child.free()  # before anybody has used it
    assert child == MPI.COMM_NULL
    ranks = ranks_of(grandchild, comm)
    interface = topompi.interface(grandchild)
    assert [interface.hosts[host] for host in interface.rank_host] == [HOSTS[rank] for rank in ranks]
    works(grandchild)
    grandchild.Free()


def works(comm):
    """Collectives of every shape do what they do."""
    size, rank = comm.size, comm.rank
    data = np.array([rank, 7])
    comm.Bcast(data, size - 1)
    assert data.tolist() == [size - 1, 7]
    total = np.empty(1, int)
    comm.Allreduce(np.array([rank]), total)
    assert total[0] == size * (size - 1) // 2
    received = np.empty(size, int)
    comm.Alltoall(np.arange(size) + 100 * rank, received)
    assert (received == 100 * np.arange(size) + rank).all()
    assert comm.allgather(rank) == list(range(size))
    request = comm.Bcast_init(data)
    request.Start()
    request.Wait()
    request.Free()


def test_objects_travel_as_with_mpi4py(comm):
    everything = {"rank": [RANK, "x" * RANK]}
    for root in (0, SIZE - 1):
        of_root = {"rank": [root, "x" * root]}
        assert comm.bcast(everything if root == RANK else None, root) == of_root
        assert comm.bcast(everything, root=root) == of_root
        gathered = comm.gather(RANK, root)
        assert gathered == (list(range(SIZE)) if root == RANK else None)
        assert comm.scatter([f"for {rank}" for rank in range(SIZE)] if root == RANK else None, root) == f"for {RANK}"
        reduced = comm.reduce([RANK], MPI.SUM, root)
        assert reduced == (list(range(SIZE)) if root == RANK else None)
    assert comm.allreduce(RANK, op=MPI.MAX) == SIZE - 1
    assert comm.allreduce({RANK}, lambda one, other: one | other) == set(range(SIZE))
    assert comm.scan(1) == RANK + 1
    assert comm.exscan(1) == (RANK or None)
    assert comm.alltoall([(RANK, rank) for rank in range(SIZE)]) == [(rank, RANK) for rank in range(SIZE)]
    comm.barrier()


def test_ranks_left_out_get_null(comm):
    child = comm.Split(MPI.UNDEFINED if RANK % 2 else 0, RANK)
    assert (child == MPI.COMM_NULL) == bool(RANK % 2)
    assert not (RANK % 2 and child)
    if RANK % 2:
        with pytest.raises(MPI.Exception):
            child.Bcast(np.zeros(1))
        child.free()  # of nothing: nothing happens, as in mpi4py
    else:
        works(child)
        child.Free()


def test_cartesian_neighbours(comm):
    cart = comm.Create_cart([SIZE], periods=[True])
    assert cart.Get_coords(cart.rank) == [cart.rank]
    assert cart.neighbor_allgather(cart.rank) == [(cart.rank - 1) % SIZE, (cart.rank + 1) % SIZE]
    received = np.empty(2, int)
    cart.Neighbor_allgather(np.array([cart.rank]), received)
    assert received.tolist() == [(cart.rank - 1) % SIZE, (cart.rank + 1) % SIZE]
    assert cart.Shift(0, 1) == ((cart.rank - 1) % SIZE, (cart.rank + 1) % SIZE)
    with pytest.raises(TypeError):
        Cartcomm(comm)  # it has no such topology
    cart.Free()


@pytest.mark.skipif(SIZE < 2, reason="two groups need two ranks")
def test_intercommunicators_fall_through_and_merge_into_ours(comm, monkeypatch):
    half = comm.Split(RANK % 2, RANK)
    between = half.Create_intercomm(0, comm, 1 - RANK % 2)
    assert type(between) is Intercomm
    assert between.allgather(RANK) == [rank for rank in range(SIZE) if rank % 2 != RANK % 2]
    monkeypatch.undo()  # of the other group's ranks nothing is known
    merged = between.Merge(high=bool(RANK % 2))
    assert type(merged) is Intracomm
    works(merged)
    for made in (merged, between, half):
        made.Free()


def test_names_attributes_and_equality(comm):
    child = comm.Dup()
    child.name = "ours"
    assert child.name == "ours"
    assert child == MPI.Intracomm(child)
    with pytest.raises(TypeError, match="unhashable"):
        hash(child)
    assert child != comm
    assert MPI.Comm.Compare(child, comm) == MPI.CONGRUENT
    child.Free()


def test_pickling_is_mpi4pys(comm):
    """Predefined communicators are pickled by name; any other refuses."""
    world = topompi.Intracomm(WORLD, topology=TopologyInterface.place(["a"] * SIZE))
    for how in (lambda one: pickle.loads(pickle.dumps(one)), copy.copy, copy.deepcopy):
        assert how(world) == WORLD
        assert type(how(world)) is Intracomm
        with pytest.raises(ValueError, match="cannot serialize"):
            how(comm)
    works(pickle.loads(pickle.dumps(world)))
    world.free()


def test_distinct_communicators_in_distinct_threads(comm):
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        pytest.skip("the MPI library was not started with MPI_THREAD_MULTIPLE")
    children, errors = [comm.Dup() for _ in range(3)], []

    def use(child):
        try:
            for _ in range(20):
                works(child)
        except BaseException as error:  # whatever it is, the test is to tell
            errors.append(error)

    threads = [threading.Thread(target=use, args=(child,)) for child in children]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for child in children:
        child.Free()
