"""Re-ordered ranks: valid, placed as the mapping defines, never worse; and their communicators under mpirun."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import ROOT, pytest_on_ranks, run_mpi, with_reasons
from topompi.mapping.graph import CommunicationGraph
from topompi.mapping.joined import Joining, joined_cost
from topompi.mapping.mapping import Mapping
from topompi.mpi.communicator.remap import order
from topompi.mpi.communicator.remap.order import Aim, RemapError, communication_graph, held_or_solved, solve
from topompi.mpi.execution.lru import LRU
from topompi.mpi.prediction.joining import joining_of
from topompi.mpi.profile.summary import saving
from topompi.topology import TopologyInterface, load
from topompi.views.machine import machine_of

PROGRAM = ROOT / "tests" / "programs" / "remap.py"
FABRIC = load("xgft:2,2,2;1,1,1")


def passes(size, which, timeout=150):
    assert re.search(r"\d+ passed", pytest_on_ranks(size, PROGRAM, "-m", which, timeout=timeout))


def test_reordered_communicators():
    passes(4, "not long")


@pytest.mark.long
@pytest.mark.parametrize(
    ("size", "which"), [(4, "long"), (5, "long or not long"), (8, "long or not long"), (16, "not long")]
)
def test_reordered_communicators_at_more_sizes_and_in_every_placement(size, which):
    """Each placement on 4 (with those of the test above), 5 and 8 ranks; two of them on 16, where searches are long."""
    passes(size, which, timeout=600)


VERBOSE = """
import topompi, numpy as np
from mpi4py import MPI
hosts = ["a", "b"] * (MPI.COMM_WORLD.size // 2)
comm = topompi.Intracomm(MPI.COMM_WORLD, hosts=hosts)
comm.Create_cart([comm.size], reorder=True)
topompi.remap(comm, np.eye(comm.size, k=2, dtype=int), report=True)
"""


def test_the_report_is_printed_where_it_is_asked_for(tmp_path):
    script = tmp_path / "verbose.py"
    script.write_text(VERBOSE)
    done = run_mpi(4, "-m", "mpi4py", script, env={"TOPOMPI_VERBOSE": "1", "TOPOMPI_TOPOLOGY": ""})
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.search(r"^topompi: remap: given order: .*\(virtual placement\)$", done.stderr, re.MULTILINE)
    rows = "\n".join(with_reasons(done.stderr))
    assert re.search(r"^Create_cart .* best of the portfolio .* hop-bytes 3 -> 1; .*", rows, re.MULTILINE)


def jobs():
    """Hosts of the ranks, and edges among the first so many of them."""
    return st.integers(2, 12).flatmap(
        lambda size: st.tuples(
            st.lists(st.sampled_from(FABRIC.fabric.hosts[:5]), min_size=size, max_size=size),
            st.integers(1, size).flatmap(
                lambda part: st.tuples(
                    st.just(part),
                    st.lists(
                        st.tuples(st.integers(0, part - 1), st.integers(0, part - 1), st.integers(0, 1 << 40)),
                        max_size=20,
                    ),
                )
            ),
        )
    )


def hop_bytes(interface, process, edges):
    """J by a loop over the edges."""
    hosts = interface.rank_host[process]
    return sum(int(interface.hop_matrix[hosts[source], hosts[target]]) * volume for source, target, volume in edges)


@settings(deadline=None, max_examples=60)
@given(jobs(), st.sampled_from([0.0, 0.03, 0.4]))
def test_an_order_is_a_permutation_that_saves_the_threshold_or_the_given_one(job, threshold):
    hosts, (size, edges) = job
    interface = TopologyInterface.place(hosts, FABRIC.routes)
    columns = [list(column) for column in zip(*edges, strict=True)] or [[], [], []]
    solution = solve(CommunicationGraph.from_arrays(size, *columns), interface, Aim(threshold=threshold))
    report, ranks = solution.report, np.arange(len(hosts))
    new_rank = ranks if solution.new_rank is None else solution.new_rank
    assert sorted(new_rank) == list(ranks)
    process = np.argsort(new_rank)
    before, after = hop_bytes(interface, ranks, edges), hop_bytes(interface, process, edges)
    assert (report.before.doubled, report.after.doubled) == (before, after)
    assert report.moved == (new_rank != ranks).sum()
    assert report.reordered == (solution.new_rank is not None)
    if report.reordered:
        assert after < before
        assert 1 - after / before >= threshold
        assert report.gain == 1 - after / before
    again = solve(CommunicationGraph.from_arrays(size, *columns), interface, Aim(threshold=threshold))
    assert np.array_equal(again.new_rank if again.new_rank is not None else ranks, new_rank)


def test_who_can_stay_on_his_host_stays():
    """Ranks 0 and 1 belong together, and 2, 3 and 4: only 1 and 2 change places."""
    interface = TopologyInterface.place(["a", "b", "a", "b", "b"])
    graph = CommunicationGraph.from_arrays(5, [0, 2, 3], [1, 3, 4], [9, 9, 9])
    solution = solve(graph, interface, Aim())
    assert solution.new_rank.tolist() == [0, 2, 1, 3, 4]
    assert solution.report.moved == 2
    assert solution.report.after.doubled == 0
    assert solution.report.reason == "predicted to save 100.0% of hop-bytes"


def test_below_the_threshold_the_report_says_so():
    interface = TopologyInterface.place(["a", "b", "a", "b"])
    graph = CommunicationGraph.from_arrays(4, [0, 0, 1, 2], [1, 2, 3, 3], [10, 9, 9, 10])
    report = solve(graph, interface, Aim(threshold=0.2)).report
    assert report.reason == "predicted to save 10.0% of hop-bytes, below the threshold of 20.0%"
    assert report.gain == pytest.approx(0.1)
    assert not report.reordered
    assert report.after == report.before
    assert report.describe().startswith("given order: predicted to save 10.0% of hop-bytes, below")


def test_messages_that_topompi_joins_between_hosts_weigh_as_one():
    """Only if it may run neighbourhood collectives there; equal weights say nothing of sizes."""
    fabric = load("XGFT(2; 4,4; 1,2)")
    placed = TopologyInterface.place([fabric.fabric.hosts[rank % 4] for rank in range(16)], fabric.routes)
    halo = CommunicationGraph.cartesian((4, 4), weights=[8, 100])
    joining = joining_of(placed, "", halo)
    assert joining.start > joining.limit > 64
    assert joining_of(placed, "", CommunicationGraph.cartesian((4, 4), weights=7)) == Joining(7, 7)
    assert joining_of(placed, "native", halo) is None
    apart = TopologyInterface.place(fabric.fabric.hosts, fabric.routes)
    assert joining_of(apart, "hosts", halo) is None
    unknown = TopologyInterface.place([f"h{rank % 4}" for rank in range(16)])
    assert joining_of(unknown, "", halo) is None
    solution = solve(halo, placed, Aim(joining=joining))
    assert solution.report.objective == "joined hop-bytes"
    hosts = placed.rank_host[np.argsort(solution.new_rank)].astype(np.int64)
    machine = machine_of(placed)
    before, after = (
        joined_cost(Mapping.on_hosts(one, machine), halo, machine, joining)
        for one in (placed.rank_host.astype(np.int64), hosts)
    )
    assert solution.report.gain == pytest.approx(1 - after / before)
    assert after < before


JOINED = """
import topompi
from mpi4py import MPI
world = MPI.COMM_WORLD
comm = topompi.Intracomm(world, topology="XGFT(2; 2,2; 1,1)", hosts=["h0000", "h0003"] * (world.size // 2))
far = [(world.rank + 2) % world.size]
made = comm.Create_dist_graph_adjacent(far, far, [8], [8], reorder=True)
assert made.Get_dist_neighbors()[0] == [(made.rank + 2) % world.size]
grid = comm.Create_cart([world.size], reorder=True)
if world.rank == 0:
    print(topompi.mapping_report(made).objective, topompi.mapping_report(grid).objective, sep=", ")
"""


@pytest.mark.parametrize(("word", "objective"), [("hosts", "joined hop-bytes"), ("native", "hop-bytes")])
def test_orders_for_graphs_are_sought_for_the_messages_that_run(word, objective):
    done = run_mpi(4, "-m", "mpi4py", "-c", JOINED, env={"TOPOMPI_NEIGHBOURS": word})
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == f"{objective}, {objective}"


def test_quality_stops_the_search(monkeypatch):
    interface = TopologyInterface.place(["a", "b"] * 4)
    graph = CommunicationGraph.cartesian([8])
    assert not solve(graph, interface, Aim(quality=1)).report.reordered
    monkeypatch.setenv("TOPOMPI_MAP_QUALITY", "1")
    assert not solve(graph, interface, Aim()).report.reordered
    assert solve(graph, interface, Aim(quality=0)).report.reordered
    monkeypatch.setenv("TOPOMPI_MAP_QUALITY", "2")
    with pytest.raises(RemapError, match="TOPOMPI_MAP_QUALITY: expecting a part of the given order"):
        solve(graph, interface, Aim())


def test_an_order_is_searched_for_once_per_graph_and_aim(monkeypatch):
    interface, held, searched = TopologyInterface.place(["a", "b"] * 4), LRU(4), []
    monkeypatch.setattr(order, "solve", lambda *given: searched.append(given) or solve(*given))

    def found(dims, **aim):
        return held_or_solved(held, CommunicationGraph.cartesian(dims), interface, Aim(**aim))

    first, again = found([8]), found([8])
    assert (len(searched), again.new_rank.tolist()) == (1, first.new_rank.tolist())
    assert again is first
    for others, (dims, aim) in enumerate([([4, 2], {}), ([8], {"seed": 1}), ([8], {"quality": 1})], start=2):
        found(dims, **aim), found(dims, **aim)
        assert len(searched) == others
    monkeypatch.setenv("TOPOMPI_MAP_QUALITY", "1")
    assert not found([8]).report.reordered


def test_a_graph_can_be_read_from_a_file(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("0 1 10\n1 2 20\n")
    graph = communication_graph(path, 4)
    assert graph.size == 4
    assert graph.volume.tolist() == [10, 20]
    with pytest.raises(RemapError, match="expecting a communication graph of 4 ranks, got 3"):
        communication_graph(np.eye(3), 4)


@settings(deadline=None, max_examples=8)
@given(st.sampled_from([(4, 4), (6, 4), (2, 4, 4), (16,)]), st.booleans(), st.integers(0, 99))
def test_a_grid_is_ordered_as_well_when_its_edges_are_given_one_by_one(dims, wraps, seed):
    """What Create_cart and Create_dist_graph ask of one grid; where neither finds better, the order stays."""
    grid = CommunicationGraph.cartesian(dims, [wraps] * len(dims))
    edges = CommunicationGraph.from_arrays(grid.size, grid.sources, grid.targets, grid.volume)
    every = FABRIC.fabric.hosts
    hosts = np.random.default_rng(seed).permutation(np.repeat(every, grid.size // len(every))).tolist()
    interface = TopologyInterface.place(hosts, FABRIC.routes)
    cart, graph = (solve(one, interface, Aim()).report for one in (grid, edges))
    assert cart.gain == pytest.approx(graph.gain, abs=0.03)
    assert cart.reordered == graph.reordered or max(cart.gain, graph.gain) < 0.06
    shown = saving(grid, interface)  # by topompi profile show
    assert shown is None or (shown["ratio"], shown["pays"]) == (pytest.approx(1 - cart.gain), cart.reordered)
