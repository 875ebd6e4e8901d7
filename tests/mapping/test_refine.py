"""Swaps of ranks: their predicted gains are exact, and no swap makes a mapping worse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.patterns import refined_mesh
from tests.support import examples, shared_data
from topompi.mapping.evaluate import doubled_hop_bytes, evaluate
from topompi.mapping.graph import CommunicationGraph, Undirected
from topompi.mapping.machine import Machine
from topompi.mapping.mappers import cooling, portfolio
from topompi.mapping.mappers.annealing import CoolingSchedule, anneal
from topompi.mapping.mappers.blocks import _parts_stay, on_blocks
from topompi.mapping.mappers.busiest import relieve
from topompi.mapping.mappers.cooling import cool
from topompi.mapping.mappers.exchange import exchange_hosts
from topompi.mapping.mappers.isometric import isometric
from topompi.mapping.mappers.links import tree_routes
from topompi.mapping.mappers.multilevel import with_empty
from topompi.mapping.mappers.portfolio import best
from topompi.mapping.mappers.refine import refine
from topompi.mapping.mappers.search import descend, kick
from topompi.mapping.mappers.swaps import SwapState, make_state
from topompi.mapping.mapping import Mapping, MappingError

MACHINES = (
    Machine.tree(None, [3, 5, 2, 6], [[0, 0, 1, 1]], [9, 4, 1]),
    Machine.torus((2, 3), [2, 3, 2, 3, 3, 3], inside=1),
    Machine.from_matrix(None, [8, 8], [[2, 5], [5, 0]]),
)


def case(seed: int) -> tuple[CommunicationGraph, Machine, SwapState]:
    """A random graph of 14 ranks on 16 slots."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 50, (14, 14)) * (rng.random((14, 14)) < 0.4)
    graph, machine = CommunicationGraph.from_matrix(matrix), MACHINES[seed % len(MACHINES)]
    hosts = np.arange(machine.num_hosts)
    distance = machine.distance(hosts[:, None], hosts[None, :]).astype(float)
    return graph, machine, make_state(with_empty(graph, machine), machine.slot_host[rng.permutation(16)], distance)


def exact(state: SwapState, graph: CommunicationGraph, machine: Machine) -> int:
    return doubled_hop_bytes(Mapping.on_hosts(state.place[: graph.size], machine), graph, machine)


@given(st.integers(0, 300), st.integers(0, 99))
def test_a_swap_saves_what_its_price_says(seed: int, choice: int) -> None:
    graph, machine, state = case(seed)
    rng = np.random.default_rng(choice)
    a, b = rng.choice(len(state.distance), 2, replace=False)
    gains = state.gains(a, b)
    i, j = rng.integers(gains.shape[0]), rng.integers(gains.shape[1])
    before = exact(state, graph, machine)
    state.swap(int(state.on(a)[i]), int(state.on(b)[j]))
    # An edge is priced at both of its ends, as total does and as the sum of both directions does not.
    assert exact(state, graph, machine) == pytest.approx(before - gains[i, j])
    assert state.total == pytest.approx(2 * exact(state, graph, machine))
    np.testing.assert_allclose(make_state(state.graph, state.place, state.distance).cost, state.cost)
    assert (state.rank_at[state.slot_of] == np.arange(16)).all()


@given(st.integers(0, 300))
def test_descent_ends_where_no_swap_saves(seed: int) -> None:
    graph, machine, state = case(seed)
    before = exact(state, graph, machine)
    saved, swaps = descend(state, 1e-6)
    assert exact(state, graph, machine) == pytest.approx(before - saved)
    assert len(swaps) == 0 or saved > 0
    for a in range(len(state.distance)):
        for b in range(a):
            assert state.gains(a, b).max() <= 1e-6


@examples(25)
@given(st.integers(0, 300))
def test_kicks_and_annealing_never_end_worse(seed: int) -> None:
    for search in (
        *(lambda state, n=n: kick(state, 1, np.random.default_rng((seed, n))) for n in range(8)),
        lambda state: anneal(state, CoolingSchedule(5000, 0.05), np.random.default_rng(seed)),
    ):
        graph, machine, state = case(seed)
        descend(state, 1e-6)
        before = exact(state, graph, machine)
        saved = search(state)
        assert saved >= 0
        assert exact(state, graph, machine) == pytest.approx(before - saved)
        assert (np.bincount(state.place, minlength=machine.num_hosts) == machine.slots).all()


def test_a_tree_too_large_for_one_table_is_refined_cluster_by_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topompi.mapping.mappers.refine.LARGEST_TABLE", 100)
    graph, machine = CommunicationGraph.cartesian((8, 8)), Machine.hierarchy("4:4:4", "1:10:100")
    start = Mapping.of(np.random.default_rng(0).permutation(64), machine.hosts, machine.slots)
    found = refine(graph, machine, start=start)
    assert doubled_hop_bytes(found, graph, machine) < doubled_hop_bytes(start, graph, machine)
    assert (found.host_of_rank // 4 == start.host_of_rank // 4).all()


def test_one_swap_away_is_found() -> None:
    graph, machine = CommunicationGraph.cartesian((4, 4)), Machine.hierarchy("4:4", "0:1")
    order = np.arange(16)
    order[[0, 15]] = order[[15, 0]]
    start = Mapping.of(order, machine.hosts, machine.slots)
    assert evaluate(refine(graph, machine, start=start), graph, machine).doubled <= 24


def test_the_busiest_link_is_relieved() -> None:
    graph = CommunicationGraph.cartesian((8, 8), weights=[1, 100])
    machine = tree_routes(Machine.hierarchy("4:4:4", "1:10:100"))
    start = Mapping.of(np.random.default_rng(0).permutation(64), machine.hosts, machine.slots)
    found = relieve(graph, machine, start=start, steps=2000)
    before, after = (evaluate(one, graph, machine).link_seconds or 0.0 for one in (start, found))
    assert after < 0.7 * before


def test_annealing_ends_with_its_swaps() -> None:
    """A hundred batches of proposals would be left, half of which are accepted."""
    _, _, state = case(1)
    swapped, swap = [], state.swap
    state.swap = lambda r, s: (swapped.append((r, s)), swap(r, s))[1]  # type: ignore[method-assign] # to count
    anneal(state, CoolingSchedule(25600, 0.5, swaps=40), np.random.default_rng(0))
    assert 0 < len(swapped) <= 40 + 256


def ring_of_hosts(seed: int) -> tuple[CommunicationGraph, Machine, Mapping]:
    """A ring of 20 pairs on a ring of 10 hosts, four ranks each, whose hosts' contents are shuffled."""
    pair = np.arange(40) // 2
    source, target = np.nonzero((pair[:, None] == pair) | ((pair[:, None] + 1) % 20 == pair))
    graph, machine = (
        CommunicationGraph.from_arrays(40, source, target, np.full(len(source), 7)),
        Machine.torus((10,), 4),
    )
    host = np.random.default_rng(seed).permutation(10)[np.arange(40) // 4]
    return graph, machine, Mapping.on_hosts(host, machine)


@pytest.mark.parametrize("seed", range(4))
def test_whole_hosts_find_their_places_where_single_ranks_do_not(seed: int) -> None:
    graph, machine, start = ring_of_hosts(seed)
    least = doubled_hop_bytes(Mapping.identity(machine, 40), graph, machine)
    assert doubled_hop_bytes(exchange_hosts(graph, machine, start=start), graph, machine) == least
    assert doubled_hop_bytes(refine(graph, machine, start=start), graph, machine) > least


@pytest.mark.parametrize("compiled", [True, False])
def test_hot_annealing_never_ends_worse_and_repeats_itself(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if compiled and cooling._compiled is None:
        pytest.skip("the annealing was not compiled")
    if not compiled:
        monkeypatch.setattr(cooling, "_compiled", None)
    for seed in range(12):
        graph, machine, _ = case(seed)
        start = Mapping.of(np.random.default_rng(seed).permutation(16)[:14], machine.hosts, machine.slots)
        found, again = (cool(graph, machine, seed, start=start, seconds=0.002) for _ in range(2))
        assert doubled_hop_bytes(found, graph, machine) <= doubled_hop_bytes(start, graph, machine)
        assert (found.host_of_rank == again.host_of_rank).all()
        assert (np.bincount(found.host_of_rank, minlength=machine.num_hosts) <= machine.slots).all()


def test_hosts_without_differences_or_too_many_keep_their_start() -> None:
    ring = CommunicationGraph.cartesian((5000,), [True])
    for machine in (Machine.torus((5000,)), Machine.from_matrix(None, [2500, 2500], [[3, 3], [3, 3]])):
        start = Mapping.of(np.random.default_rng(0).permutation(5000), machine.hosts, machine.slots)
        assert (cool(ring, machine, start=start, seconds=0.001).host_of_rank == start.host_of_rank).all()


@pytest.mark.parametrize("columns", [0, 128], ids=["by edges", "from the table"])
@pytest.mark.parametrize("heat", [1e-9, 100.0], ids=["cold", "hot"])
def test_annealing_in_c_saves_what_it_says(columns: int, heat: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hot, so many swaps are made that prices are summed anew several times."""
    if cooling._compiled is None:
        pytest.skip("the annealing was not compiled")
    monkeypatch.setattr(cooling, "MOST_COLUMNS", columns)
    many = CommunicationGraph.from_matrix(np.random.default_rng(0).integers(1, 50, (48, 48)))
    tori = [(many, Machine.torus(dims)) for dims in ((48,), (8, 6), (4, 4, 3), (2, 2, 3, 4), (2, 2, 2, 2, 3))]
    for seed, (graph, machine) in enumerate([*(case(seed)[:2] for seed in range(12)), *tori]):
        full, place = with_empty(graph, machine), np.random.default_rng(seed).permutation(machine.slot_host)
        search = cooling._Search.of(full, machine.distances.axes(np.arange(machine.num_hosts)))
        found, trace = search.run(place, np.full(96, heat), seed)
        before, after = (twice_the_cost(full, machine, one) for one in (place, found))
        assert before - after == pytest.approx(2 * max(trace.max(), 0.0))
        assert heat > 1 or (np.diff(trace, prepend=0.0) >= 0).all()


def twice_the_cost(graph: Undirected, machine: Machine, place: np.ndarray) -> float:
    source = np.repeat(place, np.diff(graph.offsets))
    return float((graph.weight * machine.distance(source, place[graph.targets])).sum())


@pytest.mark.parametrize("dims", [(4, 4, 4), (4, 2, 2, 2, 2), (8, 8, 8), (3, 5, 7)])
@pytest.mark.parametrize("seed", range(3))
def test_a_shuffled_torus_is_laid_on_itself(dims: tuple[int, ...], seed: int) -> None:
    """Every byte travels one link: no order costs less."""
    grid, machine = CommunicationGraph.cartesian(dims, [True] * len(dims)), Machine.torus(dims)
    order = np.random.default_rng(seed).permutation(grid.size)
    graph = CommunicationGraph.from_arrays(grid.size, order[grid.sources], order[grid.targets], grid.volume)
    assert evaluate(best(graph, machine, seed), graph, machine).dilation == 1


def test_another_graph_of_equal_degrees_is_not_laid_on_a_torus() -> None:
    """Two rings of 8 are not the ring of 16, though no colour tells them apart."""
    ring = np.arange(16)
    two = CommunicationGraph.from_arrays(16, ring, ring // 8 * 8 + (ring + 1) % 8, np.full(16, 5))
    for graph, machine in ((two, Machine.torus((16,))), (two, Machine.torus((4, 4))), (two, Machine.torus((2, 8), 2))):
        with pytest.raises(MappingError, match="isometric: expecting"):
            isometric(graph, machine)


def test_annealing_finds_a_torus_with_a_link_less() -> None:
    grid, machine = CommunicationGraph.cartesian((4, 4, 4), [True] * 3), Machine.torus((4, 4, 4))
    order = np.random.default_rng(3).permutation(grid.size)
    graph = CommunicationGraph.from_arrays(64, order[grid.sources[1:]], order[grid.targets[1:]], grid.volume[1:])
    assert evaluate(best(graph, machine), graph, machine).dilation == 1


@pytest.mark.parametrize("dims", [(4, 4, 4), (8, 2, 4)])
def test_parts_on_blocks_are_a_start_for_annealing(dims: tuple[int, ...]) -> None:
    graph, machine = refined_mesh(64), Machine.torus(dims)
    found = on_blocks(graph, machine, seconds=0.02)
    assert sorted(found.host_of_rank.tolist()) == list(range(64))
    random = Mapping.on_hosts(np.random.default_rng(0).permutation(64), machine)
    assert doubled_hop_bytes(found, graph, machine) < 0.8 * doubled_hop_bytes(random, graph, machine)


def test_how_warm_ranks_leave_their_blocks_does_not_depend_on_the_extents() -> None:
    graph = refined_mesh(64).undirected()
    heat = []
    for dims in ((8, 8), (4, 16), (2, 32)):
        torus = Machine.torus(dims).distances
        unit = cooling.cost_at_random(graph, torus.axes(np.arange(64)))
        heat.append(_parts_stay(graph, torus).hot * unit)
    assert heat == pytest.approx([heat[0]] * 3)


def test_a_graph_without_edges_is_laid_on_blocks() -> None:
    nothing = CommunicationGraph.from_arrays(64, [], [], [])
    assert sorted(on_blocks(nothing, Machine.torus((4, 4, 4))).host_of_rank.tolist()) == list(range(64))


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (Machine.torus((3, 4)), "expecting a whole torus of even extents"),
        (Machine.torus((2, 2, 3)), "expecting a whole torus of even extents"),
        (Machine.torus((4, 4), coordinates=np.argwhere(np.ones((3, 4)))), "expecting a whole torus of even extents"),
        (Machine.torus((4, 4)), "expecting a torus of one slot a host and as many ranks"),
        (Machine.torus((2, 3), 2), "expecting a torus of one slot a host and as many ranks"),
        (Machine.hierarchy("1:12", "0:1"), "expecting a torus of one slot a host"),
    ],
)
def test_a_machine_without_blocks_is_refused(machine: Machine, message: str) -> None:
    with pytest.raises(MappingError, match=message):
        on_blocks(CommunicationGraph.cartesian((12,)), machine)


def test_effort_sets_how_long_is_annealed(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, machine = refined_mesh(40), Machine.torus((5, 8))
    told: list[float] = []
    monkeypatch.setattr(portfolio, "cool", lambda *_, start, seconds, **__: told.append(seconds) or start)
    best(graph, machine)
    usual, told[:] = told[:], []
    best(graph, machine, effort=3)
    assert told == pytest.approx([3 * seconds for seconds in usual])
    told.clear()
    best(graph, machine, effort=20)
    hot = len(usual) - 1
    assert told[: 2 * hot] == pytest.approx([10 * usual[0]] * 2 * hot)  # two runs in place of one twice as long


def test_hosts_of_unequal_slots_are_not_exchanged() -> None:
    graph = CommunicationGraph.cartesian((5,))
    for machine in (Machine.torus((2,), [2, 3]), Machine.torus((2,), [5, 0])):
        with pytest.raises(MappingError, match="hosts of equal slots"):
            exchange_hosts(graph, machine)
        assert sorted(best(graph, machine).slot_of_rank.tolist()) == list(range(5))


def test_exchange_leaves_empty_hosts_and_slots_empty() -> None:
    graph, machine = CommunicationGraph.cartesian((7,)), Machine.torus((5,), [2, 0, 2, 2, 2])
    found = exchange_hosts(graph, machine, start=Mapping.of([0, 2, 4, 6, 1, 3, 5], machine.hosts, machine.slots))
    assert (np.bincount(found.host_of_rank, minlength=5) <= machine.slots).all()


@pytest.mark.long
def test_miniamr_on_a_torus() -> None:
    """Fujiwara's miniAMR run on a Blue Gene/Q: 1.288 hops a byte in the given order, 0.958 by annealing elsewhere."""
    import lzma

    path = shared_data("commgraphs/miniamr-bgq-1024.hopbyte.txt.xz")
    with lzma.open(path, "rt") as lines:
        rows = [line.split() for line in lines]
    source, target, volume = zip(*((int(u), int(v), round(float(b))) for u, v, b, _ in rows), strict=True)
    graph, machine = CommunicationGraph.from_arrays(1024, source, target, volume), Machine.torus((4, 2, 4, 4, 2), 4)
    assert evaluate(best(graph, machine), graph, machine).dilation <= 0.95
