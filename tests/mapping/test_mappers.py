"""Mappers: a permutation with exact slots for any graph on any machine, and equal results for equal seeds."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.multigrid import multigrid
from benchmarks.sharedmap import sharedmap
from tests.support import ROOT, examples
from topompi.mapping.evaluate import doubled_hop_bytes, evaluate
from topompi.mapping.graph import CommunicationGraph, Undirected
from topompi.mapping.machine import Machine
from topompi.mapping.mappers import MAPPERS, cooling, mapper
from topompi.mapping.mappers.cartesian import cartesian
from topompi.mapping.mappers.grids import coordinates_of
from topompi.mapping.mappers.links import tree_routes
from topompi.mapping.mappers.multilevel import scheme1, scheme2, single_step
from topompi.mapping.mappers.plain import cyclic, identity, plane
from topompi.mapping.mappers.portfolio import best
from topompi.mapping.mapping import Mapping, MappingError
from topompi.mapping.partition import Metis, PartitionError, available, cut, partition, partitioner, repair
from topompi.mapping.partition.parts import whole_weights
from topompi.mapping.work import Work

Mapper = Callable[..., Mapping]
PARTITIONING: list[Mapper] = [single_step, scheme1, scheme2]
ALL: list[Mapper] = [identity, cyclic, plane, *PARTITIONING, best]
GRID = "1:10:100"


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Trees with unequal slots, tori and tables of up to 6 hosts."""
    slots = draw(st.lists(st.integers(0, 4), min_size=1, max_size=6))
    kind = draw(st.sampled_from(["tree", "torus", "table"]))
    if kind == "tree":
        return Machine.tree(None, slots, [[number // 2 for number in range(len(slots))]], [9, 3, 1])
    if kind == "torus":
        return Machine.torus((len(slots),), slots)
    far = np.array(draw(st.lists(st.integers(0, 5), min_size=36, max_size=36))).reshape(6, 6)[
        : len(slots), : len(slots)
    ]
    return Machine.from_matrix(None, slots, far + far.T)


@st.composite
def cases(draw: st.DrawFn) -> tuple[CommunicationGraph, Machine]:
    """Graphs of any kind: empty, disconnected, with self-loops, one way, huge volumes; holes in the machine."""
    machine = draw(machines())
    size = draw(st.integers(0, machine.num_slots))
    rank = st.integers(0, max(size - 1, 0))
    volumes = st.one_of(st.integers(0, 9), st.just(2**62))
    rows = draw(st.dictionaries(st.tuples(rank, rank), volumes, max_size=20 if size else 0))
    source, target = [u for u, _ in rows], [v for _, v in rows]
    return CommunicationGraph.from_arrays(size, source, target, list(rows.values())), machine


@pytest.mark.parametrize("mapper", ALL)
@examples(25)
@given(cases(), st.integers(0, 3))
def test_always_one_to_one_and_the_same_for_one_seed(
    mapper: Mapper, case: tuple[CommunicationGraph, Machine], seed: int
) -> None:
    graph, machine = case
    found = mapper(graph, machine, seed)
    assert sorted(found.slot_of_rank.tolist()) == sorted(set(found.slot_of_rank.tolist()))
    assert (np.bincount(found.host_of_rank, minlength=machine.num_hosts) <= machine.slots).all()
    assert (found.size, found.digest) == (graph.size, machine.digest)
    assert (mapper(graph, machine, seed).slot_of_rank == found.slot_of_rank).all()


@pytest.mark.parametrize("objective", ["hop-bytes", "busiest link"])
@examples(25)
@given(case=cases(), seed=st.integers(0, 3))
def test_best_is_never_worse_than_the_given_order(
    objective: str, case: tuple[CommunicationGraph, Machine], seed: int
) -> None:
    graph, machine = case
    if objective == "busiest link" and not hasattr(machine.distances, "clusters"):
        machine = Machine.tree(None, machine.slots, [], [2, 0])
    from topompi.mapping.mappers.portfolio import _objective

    price = _objective(objective, graph, machine)
    given_order = Mapping.identity(machine, graph.size)
    assert price(best(graph, machine, seed, objective=objective)) <= price(given_order)


@st.composite
def crowds(draw: st.DrawFn) -> tuple[CommunicationGraph, Machine]:
    """Up to 48 ranks: graphs from empty to complete, in two parts, or with volumes from 1 to 10^12; tori and holes."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    machine = draw(
        st.sampled_from(
            (
                Machine.hierarchy("4:3:4", GRID),
                Machine.torus((3, 4, 2), 2),
                Machine.torus((4, 3, 2, 2)),
                Machine.tree(None, rng.integers(0, 7, 12), [np.sort(rng.integers(0, 4, 12))], [9, 3, 1]),
                Machine.from_matrix(None, [4] * 9, np.abs(np.subtract.outer(*[rng.permutation(9)] * 2))),
            )
        )
    )
    size = draw(st.integers(machine.num_slots // 2, machine.num_slots))
    chosen = rng.random((size, size)) < draw(st.sampled_from((0.03, 0.3, 1.0)))
    if draw(st.booleans()):
        chosen[: size // 2, size // 2 :] = chosen[size // 2 :, : size // 2] = False
    volume = (10 ** rng.uniform(0, draw(st.sampled_from((1, 12))), (size, size))).astype(np.int64)
    return CommunicationGraph.from_matrix(volume * chosen), machine


def assert_least(graph: CommunicationGraph, machine: Machine, seed: int) -> None:
    """The map of ``best`` costs at most what each mapper's does."""
    least = doubled_hop_bytes(best(graph, machine, seed), graph, machine)
    for name, other in MAPPERS.items():
        if name == "best":
            continue
        try:
            found = other(graph, machine, seed)
        except MappingError:
            continue  # no grid, for blocks
        assert least <= doubled_hop_bytes(found, graph, machine), name


@examples(3)
@given(crowds(), st.integers(0, 3))
def test_best_is_at_most_every_mapper(case: tuple[CommunicationGraph, Machine], seed: int) -> None:
    assert_least(*case, seed)


@pytest.mark.skipif(cooling._compiled is None, reason="the annealing was not compiled")
def test_effort_finds_more_on_scattered_hosts() -> None:
    rng = np.random.default_rng(2)
    at = rng.random((48, 2))
    near = np.argsort(((at[:, None] - at) ** 2).sum(axis=2), axis=1)[:, 1:6]
    graph = CommunicationGraph.from_arrays(48, np.repeat(np.arange(48), 5), near.ravel(), np.ones(240, dtype=np.int64))
    hosts = np.sort(rng.choice(64, 12, replace=False))
    machine = Machine.tree(None, [4] * 12, [hosts // 16, hosts // 4], [5, 3, 1, 0])
    usual, longer = (doubled_hop_bytes(best(graph, machine, effort=effort), graph, machine) for effort in (1, 3))
    assert longer < usual


@pytest.mark.long
def test_density_costs_no_quality() -> None:
    """A multigrid hierarchy of 135,102 pairs: METIS alone, cut as well as it can, leaves more."""
    graph, machine = multigrid(20, 10), Machine.hierarchy("20:10:5", GRID)
    assert graph.num_edges == 135102
    assert_least(graph, machine, 0)
    cuts = doubled_hop_bytes(scheme1(graph, machine), graph, machine)
    assert doubled_hop_bytes(best(graph, machine), graph, machine) < 0.985 * cuts


def placements(free: tuple[int, ...], ranks: int) -> Iterator[tuple[int, ...]]:
    """Every way to put so many ranks on hosts with so many slots free, each once."""
    if not ranks:
        yield ()
        return
    for host in np.flatnonzero(free).tolist():
        left = tuple(slots - (other == host) for other, slots in enumerate(free))
        for rest in placements(left, ranks - 1):
            yield (host, *rest)


def brute_force(graph: CommunicationGraph, machine: Machine) -> int:
    """The least doubled hop-bytes of all placements, priced on a dense table."""
    table = np.zeros((graph.size, graph.size), dtype=np.int64)
    np.add.at(table, (graph.sources, graph.targets), graph.volume)
    np.fill_diagonal(table, 0)
    placed = np.array(list(placements(tuple(machine.slots.tolist()), graph.size)))
    total = np.zeros(len(placed), dtype=np.int64)
    for u, v in zip(*np.nonzero(table), strict=True):
        total += table[u, v] * machine.distance(placed[:, u], placed[:, v])
    return int(total.min())


def small_case(seed: int, most: int) -> tuple[CommunicationGraph, Machine]:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, most + 1))
    slots = rng.multinomial(size + int(rng.integers(0, 2)) * (size < most), [0.25] * 4)
    matrix = rng.integers(0, 100, (size, size)) * (rng.random((size, size)) < rng.uniform(0.2, 1))
    return CommunicationGraph.from_matrix(matrix), Machine.tree(
        None, slots, [[0, 0, 1, 1]], [10, 3, int(rng.integers(0, 2))]
    )


def mean_excess(seeds: range, most: int) -> float:
    excess = []
    for seed in seeds:
        graph, machine = small_case(seed, most)
        least, found = brute_force(graph, machine), doubled_hop_bytes(best(graph, machine, seed), graph, machine)
        assert found >= least
        excess.append((found - least) / max(least, 1))
    return float(np.mean(excess))


def test_best_finds_the_optimum_of_small_cases() -> None:
    assert mean_excess(range(25), 6) <= 0.01


def test_the_reference_grid_is_kept_near() -> None:
    """Subramoni 2013, 5.1: node- and network-aware 96 / 8 / 24 where block order has 80 / 0 / 48."""
    graph = CommunicationGraph.cartesian((2, 4, 4))
    machine = Machine.tree(None, [8] * 4, [[0, 1, 2, 0]], [3, 1, 0])
    for found in (cartesian(graph, machine), best(graph, machine)):
        assert evaluate(found, graph, machine).doubled <= 8 + 3 * 24
        assert evaluate(found, graph, machine).intra_host >= 96


def test_blocks_of_a_cube() -> None:
    graph, machine = CommunicationGraph.cartesian((8, 8, 8)), Machine.hierarchy("8:64", "0:1")
    assert evaluate(cartesian(graph, machine), graph, machine).intra_share == pytest.approx(4 / 7)


def test_of_equal_blocks_those_with_the_least_busy_boundary() -> None:
    """Four ranks a leaf of a 4 x 2 x 2 grid: 2 x 2 x 1 and 1 x 2 x 2 keep 16 bytes near, and send 6 or 8 out."""
    graph, machine = CommunicationGraph.cartesian((4, 2, 2)), Machine.hierarchy("1:4:4", "0:1:3")
    routed = tree_routes(machine)
    given = Mapping.of(np.random.default_rng(0).permutation(16), machine.hosts, machine.slots)
    for found in (cartesian(graph, machine), best(graph, machine, given=given)):
        assert evaluate(found, graph, machine).doubled == 104
        assert evaluate(found, graph, routed).link_load == 6


@pytest.mark.parametrize(
    ("dims", "levels", "hop_bytes"), [((64, 32), "16:16:8", 26752), ((16, 16, 8), "16:16:8", 70144)]
)
def test_grids_reach_the_best_known_in_any_order(dims: tuple[int, ...], levels: str, hop_bytes: int) -> None:
    graph, machine = CommunicationGraph.cartesian(dims), Machine.hierarchy(levels, GRID)
    order = np.random.default_rng(1).permutation(graph.size)
    shuffled = CommunicationGraph.from_arrays(graph.size, order[graph.sources], order[graph.targets], graph.volume)
    for one in (graph, shuffled):
        assert evaluate(cartesian(one, machine), one, machine).hop_bytes == hop_bytes


@pytest.mark.long
def test_a_grid_that_no_block_divides() -> None:
    graph, machine = CommunicationGraph.cartesian((12, 14, 12)), Machine.hierarchy("21:12:8", GRID)
    given_order = evaluate(identity(graph, machine), graph, machine).doubled
    assert evaluate(cartesian(graph, machine), graph, machine).doubled < 0.6 * given_order
    assert evaluate(best(graph, machine), graph, machine).hop_bytes <= 1.005 * 66093


@given(st.lists(st.integers(2, 5), min_size=1, max_size=3), st.integers(0, 9))
def test_a_shuffled_grid_is_recognised(dims: list[int], seed: int) -> None:
    graph = CommunicationGraph.cartesian(dims)
    order = np.random.default_rng(seed).permutation(graph.size)
    shuffled = CommunicationGraph.from_arrays(graph.size, order[graph.sources], order[graph.targets], graph.volume)
    found = coordinates_of(shuffled)
    assert found is not None
    extents, place, exact = found
    assert exact
    assert sorted(extents) == sorted(dims)
    assert (np.abs(place[shuffled.sources] - place[shuffled.targets]).sum(axis=1) == 1).all()


def test_what_is_no_grid_is_refused() -> None:
    triangles = CommunicationGraph.from_arrays(6, [0, 1, 2, 2, 3, 4, 5], [1, 2, 0, 3, 4, 5, 3], [1] * 7)
    for graph in (triangles, CommunicationGraph.from_arrays(4, [], [], [])):
        assert coordinates_of(graph) is None
        with pytest.raises(MappingError, match="grid"):
            cartesian(graph, Machine.hierarchy("2:3", "0:1"))


def test_metis_giving_up_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def part_graph(*args: object, **kwargs: object) -> None:
        raise RuntimeError("Caught an unknown exception!")

    monkeypatch.setattr("pymetis.part_graph", part_graph)
    with pytest.raises(PartitionError, match="signal"):
        scheme1(CommunicationGraph.cartesian((8,)), Machine.hierarchy("2:4", "0:1"))


LOOP = """
from topompi.mapping.graph import CommunicationGraph
from topompi.mapping.partition import Metis
import numpy, os, subprocess
graph = CommunicationGraph.cartesian((64, 64)).undirected()
Metis()(graph, numpy.array([2048, 2048]), 0)
subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -TERM {os.getpid()}"])
while True:
    Metis(cuts=50)(graph, numpy.array([2048, 2048]), 0)
"""


def test_a_signal_during_metis_ends_the_program() -> None:
    """METIS catches SIGTERM and calls it an error: not to be taken for a bad seed.

    It jumps out of what it was doing, also out of malloc, which may then end the program.
    """
    done = subprocess.run([sys.executable, "-c", LOOP], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode in (-signal.SIGTERM, -signal.SIGABRT) or "ended by a signal" in done.stderr


def test_huge_and_tiny_volumes_side_by_side_keep_every_edge() -> None:
    graph = CommunicationGraph.from_arrays(3, [0, 1, 2], [1, 2, 0], [2**62, 1, 2**61]).undirected()
    whole = whole_weights(graph)
    assert whole.min() >= 1
    assert whole.sum() < 2**31


@pytest.mark.parametrize("name", ["kahip", "scotch"])
def test_other_partitioners(name: str) -> None:
    if name not in available():
        with pytest.raises(PartitionError, match="not installed"):
            partitioner(name)
        pytest.skip(f"{name} is not installed")
    graph, machine = (
        CommunicationGraph.cartesian((8, 8)),
        Machine.tree(None, [5, 11, 16, 32], [[0, 0, 1, 1]], [9, 3, 1]),
    )
    found = scheme1(graph, machine, partitioner=partitioner(name))
    assert np.bincount(found.host_of_rank).tolist() == [5, 11, 16, 32]
    given_order = Mapping.identity(machine, 64)
    best_of_both = best(graph, machine, partitioner=partitioner(name), weight="log")
    assert doubled_hop_bytes(best_of_both, graph, machine) <= doubled_hop_bytes(given_order, graph, machine)


def test_an_unknown_partitioner_is_refused() -> None:
    with pytest.raises(PartitionError, match="expecting one of metis, kahip, scotch, got 'x'"):
        partitioner("x")


def test_sharedmap_is_repaired_and_asks_for_a_regular_tree() -> None:
    graph, machine = CommunicationGraph.cartesian((8, 8)), Machine.hierarchy("4:4:4", GRID)
    if find_spec("chszlablib") is None:
        with pytest.raises(MappingError, match="not installed"):
            sharedmap(graph, machine)
        pytest.skip("chszlablib is not installed")
    found = sharedmap(graph, machine, mode="fast")
    assert (np.bincount(found.host_of_rank) == 4).all()
    assert doubled_hop_bytes(found, graph, machine) < doubled_hop_bytes(cyclic(graph, machine), graph, machine)
    for irregular in (Machine.torus((64,)), Machine.tree(None, [4, 60], [], [1, 0]), Machine.hierarchy("64", "1")):
        with pytest.raises(MappingError, match="expecting"):
            sharedmap(graph, irregular)


def test_every_mapper_is_there_by_name() -> None:
    assert list(MAPPERS)[:2] == ["best", "given"]
    with pytest.raises(MappingError, match="expecting a mapper of best, given"):
        mapper("x")
    assert mapper("scheme1") is scheme1


@examples(40)
@given(st.integers(0, 99), st.lists(st.integers(0, 9), min_size=1, max_size=5))
def test_parts_are_exact_however_bad_the_partitioner(seed: int, sizes: list[int]) -> None:
    rng, size = np.random.default_rng(seed), sum(sizes)
    matrix = np.triu(rng.integers(0, 9, (size, size)) * (rng.random((size, size)) < 0.4), 1)
    graph = (
        CommunicationGraph.from_matrix(matrix).undirected()
        if size
        else Undirected(np.zeros(1, np.int64), *[np.zeros(0)] * 2)
    )
    for by in (Metis(), lambda g, s, seed: np.zeros(len(g.offsets) - 1, dtype=np.int64)):
        part = partition(graph, sizes, seed, by, 2)
        assert np.bincount(part, minlength=len(sizes)).tolist() == sizes


def test_repair_takes_the_cheapest_move() -> None:
    path = CommunicationGraph.from_arrays(4, [0, 1, 2], [1, 2, 3], [9, 9, 1]).undirected()
    found = repair(path, np.zeros(4, dtype=np.int64), np.array([3, 1]))
    assert found.tolist() == [0, 0, 0, 1]
    assert cut(path, found) == 2
    with pytest.raises(PartitionError, match="add up to 4"):
        partition(path, [1, 2], 0, Metis())


def test_quality_rounds_work_and_progress() -> None:
    graph, machine = CommunicationGraph.cartesian((8, 8, 8)), Machine.hierarchy("8:8:8", GRID)
    told: list[str] = []
    stopped = best(graph, machine, quality=0.99, progress=told.append)
    assert doubled_hop_bytes(stopped, graph, machine) <= 0.99 * doubled_hop_bytes(
        identity(graph, machine), graph, machine
    )
    assert len(told) <= 2
    kept = best(graph, machine, work=Work(0), rounds=0)
    assert doubled_hop_bytes(kept, graph, machine) <= doubled_hop_bytes(identity(graph, machine), graph, machine)
    with pytest.raises(MappingError, match="hop-bytes or busiest link"):
        best(graph, machine, objective="hops")


def test_a_dense_graph_has_a_good_map_at_once() -> None:
    """One cut and swaps come before all that takes long."""
    near = np.kron(np.eye(32, dtype=int), np.ones((8, 8), dtype=int))
    volume = np.random.default_rng(0).integers(1, 9, (256, 256)) * (1 + 9 * near)
    order = np.random.default_rng(1).permutation(256)
    graph, machine = CommunicationGraph.from_matrix(volume[np.ix_(order, order)]), Machine.hierarchy("8:8:4", GRID)
    told: list[str] = []
    found = doubled_hop_bytes(best(graph, machine, quality=0.9, progress=told.append), graph, machine)
    assert [word.partition(";")[0] for word in told] == ["top down 1"]
    assert found < 0.9 * doubled_hop_bytes(identity(graph, machine), graph, machine)


def test_too_few_slots_are_refused() -> None:
    graph, machine = CommunicationGraph.cartesian((5,)), Machine.hierarchy("2:2", "0:1")
    for one in ALL:
        with pytest.raises(MappingError):
            one(graph, machine)


def test_ranks_are_dealt_in_planes() -> None:
    machine, graph = Machine.tree(None, [4, 2, 3], [], [1, 0]), CommunicationGraph.cartesian((9,))
    assert cyclic(graph, machine).host_of_rank.tolist() == [0, 1, 2, 0, 1, 2, 0, 2, 0]
    assert plane(graph, machine, width=2).host_of_rank.tolist() == [0, 0, 1, 1, 2, 2, 0, 0, 2]
    with pytest.raises(MappingError, match="width"):
        plane(graph, machine, width=0)
