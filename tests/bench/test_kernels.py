"""Communication kernels: their messages in the simulated arenas, and the effect of mapping on them."""

from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from osu_like_bench.compare import main as compare
from osu_like_bench.kernels import make_kernel
from osu_like_bench.kernels.orders import ORDERS, order_of
from osu_like_bench.kernels.replaying import JOINT, PLAIN, Replay
from osu_like_bench.record import Record
from osu_like_bench.simulate import Failure, FlowArena
from osu_like_bench.simulate.cli import main as simulate
from studies.subramoni.jobs import view
from studies.subramoni.ranking import best_block, evaluations, hops
from studies.subramoni.solvers import Multigrid
from tests.support import examples
from topompi.errors import BenchmarkError
from topompi.machine.interference.kernels.halo import Halo, Stencil3D, Stencil4D
from topompi.machine.interference.kernels.kernel import Alltoalls, Burst, Sums
from topompi.machine.interference.kernels.pcg import PCG
from topompi.machine.interference.kernels.registry import balanced
from topompi.machine.interference.kernels.transposes import FFT3D, P3DFFT
from topompi.mapping import Mapping, evaluate
from topompi.topology import load
from topompi.views.network import network_of

RATE, LATENCY = 1e9, 1e-6  # bytes/s and seconds of a link
TREE = "XGFT(2;2,2;1,1)"  # two leaf switches of two hosts under one switch, one cable each
grids = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


class AnyHalo(Halo):
    """A halo of any dimension."""

    name, title, dimensions = "any", "Any", (1, 2, 3, 4)


# --- what is sent ---


def neighbours(grid, periodic):
    """(source, target, dimension, up) by counting along each dimension, one rank at a time."""
    found = []
    for source, place in enumerate(product(*map(range, grid))):
        for dimension, extent in enumerate(grid):
            for up in (0, 1):
                there = list(place)
                there[dimension] += 2 * up - 1
                if periodic:
                    there[dimension] %= extent
                if 0 <= there[dimension] < extent:
                    found.append((source, list(product(*map(range, grid))).index(tuple(there)), dimension, up))
    return found


@given(grids, st.booleans(), st.integers(1, 9), st.data())
@examples(40)
def test_a_halo_reaches_all_neighbours_with_their_faces(grid, periodic, nbytes, data):
    faces = tuple(data.draw(st.lists(st.integers(1, 5), min_size=len(grid), max_size=len(grid))))
    halo = AnyHalo(grid, periodic, faces).halo(nbytes)
    found = zip(*(column.tolist() for column in (halo.source, halo.target, halo.tag, halo.nbytes)), strict=True)
    wanted = [(s, t, 2 * d + up, nbytes * faces[d]) for s, t, d, up in neighbours(grid, periodic)]
    assert sorted(found) == sorted(wanted)


@given(grids, st.booleans())
@examples(30)
def test_the_graph_of_a_halo_is_what_it_sends(grid, periodic):
    kernel = AnyHalo(grid, periodic)
    matrix = np.zeros((kernel.ranks, kernel.ranks), dtype=int)
    for source, target, _, _ in neighbours(grid, periodic):
        matrix[source, target] += 1
    graph = kernel.graph
    assert (matrix[graph.sources, graph.targets] == graph.volume).all()
    assert matrix.sum() == graph.volume.sum()


@given(st.integers(1, 6), st.integers(1, 6))
def test_a_transform_exchanges_whole_pencils_in_rows_and_columns_there_and_back(rows, columns):
    kernel = P3DFFT((rows, columns))
    there, across, *back = kernel.phases(rows * columns * 10)
    assert back == [across, there]
    assert there.groups.tolist() == [[r * columns + c for c in range(columns)] for r in range(rows)]
    assert across.groups.tolist() == [[r * columns + c for r in range(rows)] for c in range(columns)]
    assert there.nbytes * columns == across.nbytes * rows == rows * columns * 10
    assert [phase.nbytes for phase in FFT3D((rows, columns)).phases(7)] == [7, 7]
    sent = kernel.graph.volume.sum() // 2  # one way, of pencils of so many bytes as there are ranks
    assert sent == kernel.ranks * (rows * (columns - 1) + columns * (rows - 1))


def test_an_iteration_of_cg_is_a_halo_and_two_sums_of_a_double():
    halo, one, other = PCG((2, 3, 4)).phases(100)
    assert isinstance(halo, Burst)
    assert halo.nbytes.sum() == 100 * len(neighbours((2, 3, 4), False))
    assert one is other
    assert one == Sums(8)


@given(st.integers(1, 200), st.integers(1, 4))
def test_the_usual_grid_is_the_one_of_least_extents(ranks, dimensions):
    found = balanced(ranks, dimensions)
    divisors = [one for one in range(1, ranks + 1) if ranks % one == 0]
    every = [grid for grid in product(divisors, repeat=dimensions - 1) if ranks % prod(grid) == 0]
    assert prod(found) == ranks
    assert list(found) == sorted(found, reverse=True)
    assert sum(found) == min(sum(grid) + ranks // prod(grid) for grid in every)


def test_rows_of_a_transform_are_as_long_as_a_host_has_ranks():
    assert make_kernel("p3dfft", ["a", "b", "c"] * 4).grid == (3, 4)
    assert make_kernel("fft3d", list("abcdefgh")).grid == (4, 2)
    assert make_kernel("fft3d", ["a"] * 8).grid == (4, 2)
    assert make_kernel("fft3d", ["a", "a", "b"] * 2, "2x3").grid == (2, 3)
    assert make_kernel("stencil3d", ["a", "b"] * 4).grid == (2, 2, 2)


@pytest.mark.parametrize(
    ("name", "given_", "message"),
    [
        ("stencil3d", {"grid": "2x2"}, "--grid: expecting a grid of 8 ranks"),
        ("stencil3d", {"grid": "2x4"}, "--grid: expecting 3 extents"),
        ("stencil3d", {"grid": "2x2x2x1"}, "--grid: expecting 3 extents"),
        ("stencil4d", {"grid": "2x2,2"}, "--grid: expecting whole numbers"),
        ("stencil3d", {"faces": "1,2"}, "--faces: expecting 3 numbers"),
        ("stencil3d", {"faces": "1,0,2"}, "--faces: expecting 3 numbers"),
        ("fft3d", {"periodic": True}, "--periodic: expecting a kernel with a halo.*, got fft3d"),
        ("p3dfft", {"faces": "1,2"}, "--faces: expecting a kernel with a halo.*, got p3dfft"),
        ("pcg", {"grid": "8x-1"}, "--grid: expecting whole numbers"),
    ],
)
def test_what_a_kernel_cannot_be_is_refused(name, given_, message):
    with pytest.raises(BenchmarkError, match=message):
        make_kernel(name, list("abcdefgh"), **given_)


def test_the_former_name_of_conjugate_gradients_is_still_read(capsys):
    words = ["--topology", TREE, "-m", "1K", "-a", "best", "--peers", "given"]
    assert [simulate([name, *words]) for name in ("cg", "pcg")] == [0, 0]
    printed = capsys.readouterr().out.splitlines()
    assert printed[: len(printed) // 2] == printed[len(printed) // 2 :]
    assert "simulation of pcg" in printed[0]


# --- orders of ranks ---


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_gives_each_rank_a_process_on_the_host_that_its_mapping_says(name):
    routes = load(TREE).routes
    hosts = np.random.default_rng(3).permutation(np.repeat(np.arange(4), 4))
    interface = view(routes, hosts.tolist(), 1)
    order = order_of(name, Stencil3D((4, 2, 2)), interface)
    assert sorted(order.process.tolist()) == list(range(16))
    assert (interface.rank_host[order.process] == order.mapping.host_of_rank).all()
    if name == "given":
        assert (order.process == np.arange(16)).all()


def by_hand(kernel, shape):
    """The share of the bytes that stays in blocks of a shape, by laying them out rank by rank."""
    place = np.stack(np.unravel_index(np.arange(kernel.ranks), kernel.grid), axis=1) // np.array(shape)
    block = np.unique(place, axis=0, return_inverse=True)[1].ravel()
    graph = kernel.graph
    proper = graph.sources != graph.targets
    inside = (block[graph.sources] == block[graph.targets]) & proper
    return graph.volume[inside].sum() / graph.volume[proper].sum()


@given(grids, st.booleans(), st.integers(1, 16), st.data())
@examples(40)
def test_the_best_block_is_the_best_of_all(grid, periodic, slots, data):
    faces = tuple(data.draw(st.lists(st.integers(1, 3), min_size=len(grid), max_size=len(grid))))
    kernel = AnyHalo(grid, periodic, faces)
    shapes = [shape for shape in product(*(range(1, extent + 1) for extent in grid)) if prod(shape) == slots]
    shapes = [shape for shape in shapes if all(g % s == 0 for g, s in zip(grid, shape, strict=True))]
    if max(grid) > 1 and shapes:
        shape, share = best_block(kernel, slots)
        assert shape in shapes
        assert share == pytest.approx(by_hand(kernel, shape))
        assert share == pytest.approx(max(by_hand(kernel, one) for one in shapes))


@pytest.mark.parametrize(
    ("kernel", "slots", "fabric", "before", "least"),
    [
        (Stencil3D((8, 8, 8)), 8, "XGFT(2; 16,4; 1,16)", 1 / 3, 0.571),
        (Stencil3D((8, 8, 8)), 8, "slurm64", 1 / 3, 0.571),
        (Stencil3D((16, 8, 8)), 16, "XGFT(2; 16,4; 1,16)", 1408 / 2752, 0.650),
        (Stencil4D((8, 8, 4, 4)), 16, "XGFT(2; 16,4; 1,16)", 6 / 13, 0.0),
    ],
)
def test_mapping_brings_as_much_inside_hosts_as_the_best_block(kernel, slots, fabric, before, least):
    order = order_of("best", kernel, view(load(fabric).routes, range(64), slots))
    given_ = evaluate(Mapping.identity(order.machine, kernel.ranks), kernel.graph, order.machine)
    found = evaluate(order.mapping, kernel.graph, order.machine)
    assert given_.intra_share == pytest.approx(before)
    assert found.intra_share >= max(least, 0.99 * best_block(kernel, slots)[1])


def test_shares_by_hops_add_up_to_the_whole():
    table = hops(evaluations(view(load("stampede").routes, [0, 1, 20, 180], 4), Stencil3D((4, 2, 2))), "")
    assert table.columns[:3] == ("order", "inside hosts", "1 hop")
    for row in table.rows:
        assert sum(float(cell.rstrip("%")) for cell in row[1:-2]) == pytest.approx(100, abs=0.2)


def test_a_coarser_grid_has_every_other_process():
    kernel = Multigrid((4, 4, 2))
    coarse = kernel.phases(64)[1]
    place = np.stack(np.unravel_index(np.r_[coarse.source, coarse.target], kernel.grid))
    assert (place % 2 == 0).all()
    assert len(coarse.source) == len(neighbours((2, 2, 1), False))
    assert (coarse.nbytes == 16).all()
    assert [type(phase) for phase in kernel.phases(64)] == [Burst] * 3 + [Sums] * 2
    assert kernel.graph.volume.sum() == sum(int(phase.nbytes.sum()) for phase in kernel.phases(64)[:3])


# --- simulated ---


def arena_of(ppn=1):
    interface = view(load(TREE).routes, range(4), ppn)
    network = network_of(interface)
    links = len(network.capacity)
    known = {"capacity": np.full(links, RATE), "latency": np.full(links, LATENCY)}
    return interface, FlowArena(replace(network, **known))


def test_simulated_halos_take_what_their_busiest_link_needs():
    _, arena = arena_of()
    nbytes = 1 << 20
    with arena:
        line = Replay(arena, PCG((4, 1, 1)), np.arange(4))
        halo = Replay(arena, Stencil3D((4, 1, 1)), np.arange(4))
        moved = Replay(arena, Stencil3D((4, 1, 1)), np.array([0, 2, 1, 3]))
        # An inner rank sends to both sides; moved, all three pairs of neighbours, and so their messages, cross leaves.
        assert halo.time(nbytes) == pytest.approx(2 * nbytes / RATE + 2 * LATENCY, rel=1e-5)
        assert moved.time(nbytes) == pytest.approx(3 * nbytes / RATE + 4 * LATENCY, rel=1e-5)
        assert halo.bound(nbytes) == 2 * nbytes / RATE
        sums = line.time(nbytes) - halo.time(nbytes)
        # Two sums, each of two exchanges of a double at least: over two links and over four.
        assert sums == pytest.approx(2 * (6 * LATENCY + 2 * 8 / RATE), rel=0.05)


@pytest.mark.parametrize("alltoall", [JOINT, *PLAIN])
def test_simulated_transposes_take_rows_and_columns_one_after_the_other(alltoall):
    _, arena = arena_of()
    nbytes = 1 << 20
    with arena:
        found = Replay(arena, FFT3D((2, 2)), np.arange(4)).time(nbytes, alltoall)
        across = Replay(arena, P3DFFT((2, 2)), np.array([0, 2, 1, 3])).time(2 * nbytes, alltoall)
        bound = Replay(arena, FFT3D((2, 2)), np.arange(4)).bound(nbytes)
    message = nbytes / RATE
    # Rows stay on their leaves; of the columns two messages share a leaf's cable. In the other order it is rows.
    assert found == pytest.approx(3 * message + 6 * LATENCY, rel=1e-5)
    assert across == pytest.approx(2 * found, rel=1e-5)
    assert bound == pytest.approx(3 * nbytes / RATE)


def test_a_simulation_compares_orders_and_its_records_compare(tmp_path, capsys):
    common = ["--topology", TREE, "--ppn", "4", "-m", "64K", "--place", "random:1"]
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    assert simulate(["stencil3d", *common, "-a", "best", "--peers", "given,cyclic", "--json", str(files[0])]) == 0
    out = capsys.readouterr().out
    assert "grid 4x2x2, open; size: bytes of a face" in out
    record = Record.from_json(files[0].read_text())
    times = {result.side: result.average for result in record.results}
    assert times["best"] < min(times["given"], times["cyclic"])
    assert record.facts.about["inside hosts"]["best"] == pytest.approx(best_block(Stencil3D((4, 2, 2)), 4)[1], abs=1e-3)
    assert compare([str(files[0]), str(files[0]), "--side", "best,given"]) == 0
    assert simulate(["stencil3d", *common, "-a", "best", "--grid", "2x2x4", "--json", str(files[1])]) == 0
    assert compare([str(files[0]), str(files[1]), "--side", "best"]) == 1
    assert "grid" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gather", "--grid", "2x2"], "--grid: expecting a kernel"),
        (["stencil3d", "-a", "shift"], "--algorithm: expecting one of scheme2, best, busiest"),
        (["fft3d", "--peers", "mpich"], "--peers: expecting one of pairwise"),
        (["stencil3d", "--grid", "3x1x1"], "--grid: expecting a grid of 4 ranks"),
        (["stencil5d"], "COLLECTIVE: expecting one of bcast"),
    ],
)
def test_what_cannot_be_simulated_is_one_line(arguments, message, capsys):
    assert simulate([*arguments, "--topology", TREE]) == 1
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_what_a_generator_refuses_is_a_reason_and_no_crash(monkeypatch):
    def refuse(name, phase):
        raise ValueError("not so many")

    monkeypatch.setattr("osu_like_bench.kernels.replaying._tiled", refuse)
    _, arena = arena_of()
    with arena:
        found = Replay(arena, FFT3D((2, 2)), np.arange(4)).time(8, "shift")
    assert isinstance(found, Failure)
    assert "not so many" in found.reason


def test_phases_of_unlike_kinds_know_their_buffers():
    assert Burst(*(np.array(one) for one in ([0, 1], [1, 0], [3, 5], [0, 0]))).footprint() == 8
    assert Alltoalls("rows", np.arange(6).reshape(2, 3), 10).footprint() == 60
    assert PCG((2, 1, 1)).footprint(10) == 20 + 2 * 16


def test_a_stencil_is_simulated_without_the_links_of_all_pairs(monkeypatch, capsys):
    command = ["stencil3d", "--topology", "XGFT(3; 4,4,4; 1,4,4)", "-m", "64K", "--jobs", "1"]
    assert simulate(command) == 0
    expected = capsys.readouterr().out
    order_of.cache_clear()
    monkeypatch.setattr("topompi.mapping.machine.MOST_EXPANDED", 0)
    monkeypatch.setattr("topompi.network.Tables.all_paths", None)
    assert simulate(command) == 0
    assert capsys.readouterr().out == expected
