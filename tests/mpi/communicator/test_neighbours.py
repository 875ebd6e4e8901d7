"""Neighbourhood collectives and the sparse exchange under mpirun: equal to the library's own, and said why."""

import re

import pytest

from tests.support import ROOT, pytest_on_ranks, run_mpi, with_reasons

PROGRAMS = ROOT / "tests" / "programs"
CARRIED = {"TOPOMPI_NATIVE_CALLS": "0", "TOPOMPI_VERBOSE": "1"}


@pytest.mark.parametrize("groups", ["hosts", "leaves"])
def test_calls_equal_native_calls(groups):
    """Random graphs, grids and rings on random hosts: one launch, many cases."""
    pytest_on_ranks(
        5, PROGRAMS / "neighbours.py", env={**CARRIED, "TOPOMPI_NEIGHBOURS": groups, "NEIGHBOUR_SEEDS": "2"}
    )


@pytest.mark.long
@pytest.mark.parametrize(("groups", "size"), [("hosts", 8), ("hosts", 1)])
def test_calls_equal_native_calls_at_more_sizes(groups, size):
    env = {**CARRIED, "TOPOMPI_NEIGHBOURS": groups, "NEIGHBOUR_SEEDS": "2"}
    pytest_on_ranks(size, PROGRAMS / "neighbours.py", env=env, timeout=300)


EVERY_FORM = """
import numpy as np, topompi
from mpi4py import MPI
from topompi.topology import TopologyInterface, load

world, fabric = MPI.COMM_WORLD, load("xgft:2,2,2;1,1,1")
hosts = [fabric.fabric.hosts[rank // 2] for rank in range(world.size)]
comm = topompi.Intracomm(world, topology=TopologyInterface.place(hosts, fabric.routes, virtual=True))
others = [rank for rank in range(world.size) if rank != world.rank]
graph = comm.Create_dist_graph_adjacent(others, others)
n = len(others)
one, all_, got = np.full(1, float(world.rank)), np.arange(float(n)), np.zeros(n)
counts, types = [1] * n, [MPI.DOUBLE] * n
places = [8 * place for place in range(n)]
for name, send, receive in (
    ("allgather", one, got), ("allgatherv", one, [got, counts]), ("alltoall", all_, got),
    ("alltoallv", [all_, counts], [got, counts]),
    ("alltoallw", [all_, (counts, places), types], [got, (counts, places), types]),
):
    got[:] = -1
    getattr(graph, f"Neighbor_{name}")(send, receive)
    wanted = others if "gather" in name else [world.rank - (world.rank > other) for other in others]
    assert got.tolist() == wanted, name
    got[:] = -1
    request = getattr(graph, f"Neighbor_{name}_init")(send, receive)
    request.Start()
    request.Wait()
    assert got.tolist() == wanted, name
    got[:] = -1
    request = getattr(graph, f"Ineighbor_{name}")(send, receive)
    assert isinstance(request, MPI.Request)
    if world.rank == 0:  # elsewhere, while the others need it as a carrier
        world.recv(source=world.size - 1)
    request.Wait()
    if world.rank == world.size - 1:
        world.send(None, 0)
    assert got.tolist() == wanted, name
if world.rank == 3:  # a neighbour of itself alone, but a carrier of its host
    others = [3]
else:
    others = [rank for rank in range(world.size) if rank not in (3, world.rank)]
graph, counts = comm.Create_dist_graph_adjacent(others, others), [1] * len(others)
for count in (1, 9):  # nine blocks where the memory has one
    got[:] = -1
    wrong = count == 9 and world.rank == 3
    try:
        graph.Neighbor_alltoallv([np.full(len(others), 1.0), [count] if wrong else counts], [got, counts])
        assert not wrong
        assert (got[: len(others)] == 1).all()
    except ValueError as error:
        assert wrong, error
    got[:] = -1
    try:
        arguments = [np.full(len(others), 1.0), [count] if wrong else counts], [got, counts]
        requests = [graph.Ineighbor_alltoallv(*arguments)]
        assert not wrong
    except ValueError as error:
        assert wrong, error
        requests = []
    if world.rank == 3:
        world.recv(source=0)
    MPI.Request.Waitall(requests)
    if world.rank == 0:
        world.send(None, 3)
    assert wrong or (got[: len(others)] == 1).all()
"""


def test_every_form_is_carried_and_says_why():
    """Also a rank that waits for another message, or has wrong arguments, carries the other ranks' blocks."""
    done = run_mpi(8, "-m", "mpi4py", "-c", EVERY_FORM, env={**CARRIED, "TOPOMPI_NEIGHBOURS": "hosts"}, timeout=40)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    rows = [re.split(r"  +", line) for line in with_reasons(done.stderr)]
    ran = {row[0]: row for row in rows if "eighbor_" in row[0]}
    assert len(ran) == 15
    assert {row[4] for row in ran.values()} == {"hosts"}
    assert "in place of" in ran["Neighbor_alltoall"][-1]
    assert "planned in" in ran["Neighbor_alltoall"][-1]  # no calls repay a plan that is predicted to lose


def test_on_a_virtual_placement_and_without_a_word_the_library_runs_them():
    done = run_mpi(4, "-m", "mpi4py", "-c", EVERY_FORM.partition("if world.rank == 3")[0], env=CARRIED, timeout=60)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    rows = [re.split(r"  +", line) for line in with_reasons(done.stderr)]
    ran = {row[0]: row for row in rows if "eighbor_" in row[0]}
    assert len(ran) == 15
    assert {row[4] for row in ran.values()} == {"native"}


TRIED = """
import numpy as np, topompi
from mpi4py import MPI
from topompi.mpi.communicator.state import state_of
from topompi.topology import TopologyInterface, load

world, fabric = MPI.COMM_WORLD, load("xgft:2,2,2;1,1,1")
hosts = [fabric.fabric.hosts[rank // 2] for rank in range(world.size)]
comm = topompi.Intracomm(world, topology=TopologyInterface.place(hosts, fabric.routes, virtual=True))
others = [rank for rank in range(world.size) if rank != world.rank]
graph = comm.Create_dist_graph_adjacent(others, others)
out, got = np.arange(float(len(others))), np.zeros(len(others))
for turn in range(350):
    got[:] = -1
    graph.Neighbor_alltoall(out, got)
    assert got.tolist() == [world.rank - (world.rank > other) for other in others]
print(state_of(graph).neighbours.explain("Neighbor_alltoall"), flush=True)
"""


def test_a_trial_finds_the_choice_for_a_graph():
    env = {"TOPOMPI_NATIVE_CALLS": "0", "TOPOMPI_TUNE": "measure", "TOPOMPI_VERBOSE": "1"}
    done = run_mpi(3, "-m", "mpi4py", "-c", TRIED, env=env, timeout=60)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    verdict = set(done.stdout.splitlines())
    assert len(verdict) == 1
    assert re.match("(native|hosts): measured: ", verdict.pop())
    ran = {line.split()[4] for line in done.stderr.splitlines() if line.startswith("Neighbor_alltoall")}
    assert ran == {"native", "hosts"}


NEW_SIZES = """
import numpy as np, topompi
from mpi4py import MPI
from topompi.mpi.communicator import neighbours
from topompi.mpi.communicator.state import state_of
from topompi.mpi.selection.policy import Policy
from topompi.topology import TopologyInterface, load

neighbours._left = lambda comm: False  # else the library runs all calls of a virtual placement
world, fabric = MPI.COMM_WORLD, load("xgft:2,2,2;1,1,1")
hosts = [fabric.fabric.hosts[rank // 2] for rank in range(world.size)]
comm = topompi.Intracomm(world, topology=TopologyInterface.place(hosts, fabric.routes, virtual=True))
others = [rank for rank in range(world.size) if rank != world.rank]
for new in (False, True):
    graph = comm.Create_dist_graph_adjacent(others, others)
    for turn in range(130):
        counts = [100 - turn % 100 if new else 100] * len(others)
        out, got = np.full(sum(counts), world.rank, dtype=np.int8), np.zeros(sum(counts), dtype=np.int8)
        graph.Neighbor_alltoallv([out, counts], [got, counts])
        assert got.tolist() == np.repeat(others, counts).tolist()
        if turn == 0:  # from now on as if the cost model had chosen carriers
            state_of(graph).common.policy = Policy()
    state_of(graph).common.policy = Policy(neighbours="hosts")
    print(state_of(graph).neighbours.explain("Neighbor_alltoallv").partition(";")[0], flush=True)
"""


def test_calls_whose_sizes_always_differ_are_left_to_the_library():
    env = {"TOPOMPI_NATIVE_CALLS": "0", "TOPOMPI_NEIGHBOURS": "hosts"}
    done = run_mpi(3, "-m", "mpi4py", "-c", NEW_SIZES, env=env, timeout=60)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    said = done.stdout.splitlines()
    assert len(said) == 6
    assert sum(line.startswith("hosts: small blocks") for line in said) == 3
    assert sum(line.startswith("native: native: most calls have new sizes") for line in said) == 3


@pytest.mark.parametrize("size", [1, 5])
def test_what_is_sent_in_an_exchange_arrives(size):
    pytest_on_ranks(size, PROGRAMS / "exchanging.py")
