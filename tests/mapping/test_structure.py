"""Grids, tori and trees in communication graphs: recognition, and the mappings that follow from them."""

from itertools import permutations
from math import ceil, prod, sqrt

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.mapping.evaluate import doubled_hop_bytes, evaluate
from topompi.mapping.graph import CommunicationGraph
from topompi.mapping.machine import Machine
from topompi.mapping.mappers.branches import branches
from topompi.mapping.mappers.cartesian import cartesian
from topompi.mapping.mappers.folds import folded
from topompi.mapping.mappers.grids import RankGrid, coordinates_of, grid_of_strides
from topompi.mapping.mappers.portfolio import best
from topompi.mapping.mappers.strips import on_strips
from topompi.mapping.mapping import Mapping, MappingError

FAR = "1:10:100"
Dims = list[tuple[int, bool]]


def mixed(graph: CommunicationGraph, seed: int, *, factor: int = 1, extra: int = 0) -> CommunicationGraph:
    """The graph with its ranks in random order, volumes times a factor, and light edges between random ranks."""
    rng = np.random.default_rng(seed)
    order, noise = rng.permutation(graph.size), rng.integers(0, graph.size, (2, extra))
    source, target = np.r_[order[graph.sources], noise[0]], np.r_[order[graph.targets], noise[1]]
    return CommunicationGraph.from_arrays(graph.size, source, target, np.r_[graph.volume * factor, np.ones(extra, int)])


def assert_fits(found: Mapping, machine: Machine) -> None:
    """No host has more ranks than slots, and no slot two ranks."""
    assert (np.bincount(found.host_of_rank, minlength=machine.num_hosts) <= machine.slots).all()
    assert len(np.unique(found.slot_of_rank)) == found.size


def product_of(grid: RankGrid, graph: CommunicationGraph) -> nx.Graph:
    """The product of paths and rings with the grid's extents; a ring where the graph joins both ends."""
    made = nx.empty_graph(1)
    for dimension, extent in enumerate(grid.extents):
        ends = np.abs(grid.place[graph.sources, dimension] - grid.place[graph.targets, dimension])
        ring = extent > 2 and ends.max(initial=0) == extent - 1
        made = nx.cartesian_product(made, nx.cycle_graph(extent) if ring else nx.path_graph(extent))
    return made


@examples(60)
@given(st.lists(st.tuples(st.integers(2, 6), st.booleans()), min_size=1, max_size=3), st.integers(0, 99), st.booleans())
def test_products_of_paths_and_rings_are_recognised_in_any_order(dims: Dims, seed: int, noisy: bool) -> None:
    """Also among light edges between random ranks: all heavy edges join neighbours on the grid that is found."""
    grid = CommunicationGraph.cartesian([extent for extent, _ in dims], [ring for _, ring in dims])
    graph = mixed(grid, seed, factor=1000, extra=grid.size * noisy)
    found = coordinates_of(graph)
    assert found is not None
    if noisy and found.exact:  # with the light edges the graph is a grid itself, such as a path whose ends they join
        edges = ((one, other) for one, other in zip(graph.sources, graph.targets, strict=True) if one != other)
        assert nx.is_isomorphic(product_of(found, graph), nx.Graph(edges))
        return
    # A ring of four is a grid of 2 x 2; a ring of two is an edge.
    wanted = [part for extent, ring in dims for part in ((2, 2) if ring and extent == 4 else (extent,))]
    assert sorted(found.extents) == sorted(wanted)
    assert found.exact or noisy
    heavy = graph.volume >= 1000
    apart = np.abs(found.place[graph.sources[heavy]] - found.place[graph.targets[heavy]])
    assert ((apart > 0).sum(axis=1) == 1).all()
    assert np.isin(apart.max(axis=1), [1, *(extent - 1 for extent in found.extents)]).all()


def test_of_all_small_graphs_the_products_of_paths_and_rings_are_recognised() -> None:
    """All 1,252 graphs of up to seven vertices."""
    path, ring = nx.path_graph, nx.cycle_graph
    ladders = [nx.cartesian_product(path(2), other) for other in (path(3), ring(3))]
    products = [*(path(size) for size in range(2, 8)), *(ring(size) for size in range(3, 8)), *ladders]
    for plain in nx.graph_atlas_g()[1:]:
        found = coordinates_of(graph := CommunicationGraph.from_networkx(plain))
        assert (found is not None) == any(nx.is_isomorphic(plain, product) for product in products)
        assert found is None or nx.is_isomorphic(plain, product_of(found, graph))


@pytest.mark.parametrize(
    "graph",
    [
        nx.complete_graph(6),
        nx.complete_bipartite_graph(3, 3),
        nx.petersen_graph(),
        nx.star_graph(5),
        nx.wheel_graph(7),
        nx.circulant_graph(14, [1, 7]),  # a ladder with a twist
        nx.random_regular_graph(4, 30, seed=1),
    ],
)
def test_other_graphs_are_no_grids(graph: nx.Graph) -> None:
    assert coordinates_of(CommunicationGraph.from_networkx(nx.convert_node_labels_to_integers(graph))) is None


def test_a_grid_without_one_edge_is_no_grid() -> None:
    grid = CommunicationGraph.cartesian((4, 5))
    kept = (grid.sources != 0) | (grid.targets != 1)
    kept &= (grid.sources != 1) | (grid.targets != 0)
    torn = CommunicationGraph.from_arrays(20, grid.sources[kept], grid.targets[kept], grid.volume[kept])
    assert coordinates_of(torn) is None


@examples(40)
@given(st.lists(st.integers(3, 7), min_size=2, max_size=3), st.integers(0, 99))
def test_strides_of_the_given_order_are_a_grid(dims: list[int], seed: int) -> None:
    """Also where the last rank of a row sends to the first one of the next, and random edges are missing."""
    size, rng = prod(dims), np.random.default_rng(seed)
    strides = [prod(dims[dimension + 1 :]) for dimension in range(len(dims))]
    source = np.tile(np.arange(size), len(dims))
    target = (source + np.repeat(strides, size)) % size
    kept = rng.random(len(source)) < 0.9
    found = grid_of_strides(CommunicationGraph.from_arrays(size, source[kept], target[kept], np.ones(kept.sum(), int)))
    assert found is not None
    assert found.extents == tuple(dims)
    assert (np.ravel_multi_index(tuple(found.place.T), found.extents) == np.arange(size)).all()


def test_random_pairs_have_no_strides() -> None:
    ends = np.random.default_rng(0).integers(0, 210, (2, 2000))
    assert grid_of_strides(CommunicationGraph.from_arrays(210, *ends, np.ones(2000, int))) is None
    assert grid_of_strides(CommunicationGraph.from_arrays(0, [], [], [])) is None


@examples(60)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
    st.lists(st.integers(0, 9), min_size=2, max_size=8),
    st.integers(0, 99),
)
def test_starts_respect_capacities(dims: list[int], slots: list[int], seed: int) -> None:
    """Grids on strips and trees in branches, on uneven hosts with more slots than ranks."""
    size = prod(dims)
    slots[0] += max(size - sum(slots), 0)
    levels = [[number // 4 for number in range(len(slots))], [number // 2 for number in range(len(slots))]]
    machine, graph = Machine.tree(None, slots, levels, [9, 5, 3, 1]), CommunicationGraph.cartesian(dims)
    place = np.stack(np.unravel_index(np.arange(size), dims), axis=1)
    assert_fits(on_strips(graph, machine, RankGrid(tuple(dims), place)), machine)
    assert_fits(cartesian(graph, machine), machine)
    if size > 1:
        tree = nx.random_labeled_tree(size, seed=seed)
        assert_fits(branches(CommunicationGraph.from_networkx(tree), machine), machine)


@pytest.mark.parametrize(
    ("wraps", "hop_bytes"), [(False, 1984 + 9 * 448 + 90 * 128), (True, 2048 + 9 * 512 + 90 * 192)]
)
def test_the_best_block_cut_of_a_square(wraps: bool, hop_bytes: int) -> None:
    """Hosts hold 4 x 4 ranks, switches 8 x 16: all edges cost 1, those between hosts 9 more, between switches 90."""
    machine = Machine.hierarchy("16:8:8", FAR)
    graph = mixed(CommunicationGraph.cartesian((32, 32), [wraps] * 2), 3)
    assert evaluate(cartesian(graph, machine), graph, machine).hop_bytes == hop_bytes
    place = coordinates_of(graph)
    assert place is not None
    assert evaluate(on_strips(graph, machine, place), graph, machine).hop_bytes == hop_bytes


def test_strips_come_near_the_least_perimeter_where_hosts_divide_no_side() -> None:
    """A part of n cells has a perimeter of at least 2 ceil(2 sqrt(n)) (Harary and Harborth 1976)."""
    dims, slots = (20, 30), 23
    graph, machine = CommunicationGraph.cartesian(dims), Machine.hierarchy([slots, 27], [0, 1])
    grid = coordinates_of(graph)
    assert grid is not None
    sizes = [slots] * 26 + [2]
    least = sum(2 * ceil(2 * sqrt(size)) for size in sizes) - 2 * sum(dims)
    assert doubled_hop_bytes(on_strips(graph, machine, grid), graph, machine) <= 1.08 * least


def least_of_all(graph: CommunicationGraph, machine: Machine) -> int:
    """The least doubled hop-bytes of all placements on hosts."""
    return min(
        doubled_hop_bytes(Mapping.on_hosts(host, machine), graph, machine)
        for host in set(permutations(machine.slot_host.tolist(), graph.size))
    )


@pytest.mark.parametrize(
    ("dims", "wraps", "machine"),
    [
        ((2, 3), False, Machine.hierarchy("2:3", "0:1")),
        ((2, 3), False, Machine.hierarchy("3:2", "0:1")),
        ((6,), True, Machine.hierarchy("3:2", "0:1")),
        ((2, 4), False, Machine.hierarchy("2:2:2", FAR)),
        ((2, 2, 2), False, Machine.hierarchy("2:2:2", FAR)),
        ((7,), False, Machine.tree(None, [3, 1, 3], [], [1, 0])),
    ],
)
def test_structure_is_optimal_on_tiny_cases(dims: tuple[int, ...], wraps: bool, machine: Machine) -> None:
    graph = mixed(CommunicationGraph.cartesian(dims, [wraps] * len(dims)), 1)
    least = least_of_all(graph, machine)
    assert doubled_hop_bytes(cartesian(graph, machine), graph, machine) == least
    assert doubled_hop_bytes(best(graph, machine), graph, machine) == least


@pytest.mark.parametrize(
    ("dims", "machine", "hops"),
    [
        ((8, 4), Machine.torus((4, 8)), 1.0),  # the same grid, turned
        ((4, 16), Machine.torus((4, 4, 4)), 1.0),  # the long side winds through two dimensions
        ((32,), Machine.torus((2, 4, 4)), 1.0),  # a snake
        ((8, 8), Machine.torus((4, 4, 4)), 1.0),  # both sides bend, and their halves meet at the bend
        ((8, 8), Machine.torus((4, 4), 4), 48 / 112),  # 2 x 2 ranks a host: 3 of 7 edges of each row join two hosts
    ],
)
def test_folds_keep_neighbours(dims: tuple[int, ...], machine: Machine, hops: float) -> None:
    graph = mixed(CommunicationGraph.cartesian(dims), 2)
    grid = coordinates_of(graph)
    assert grid is not None
    found = folded(graph, machine, grid)
    assert_fits(found, machine)
    assert evaluate(found, graph, machine).dilation == pytest.approx(hops)


def test_folds_need_common_factors_and_a_whole_torus() -> None:
    graph = CommunicationGraph.cartesian((3, 5))
    grid = coordinates_of(graph)
    assert grid is not None
    for machine in (Machine.torus((15,)), Machine.torus((5, 3))):
        assert_fits(folded(graph, machine, grid), machine)
    for machine in (Machine.torus((4, 4)), Machine.hierarchy("15", "1"), Machine.torus((2,), [7, 8])):
        with pytest.raises(MappingError, match="folds: expecting"):
            folded(graph, machine, grid)


@examples(40)
@given(st.integers(2, 40), st.integers(1, 9), st.integers(0, 99))
def test_a_shuffled_path_is_cut_once_per_host(size: int, slots: int, seed: int) -> None:
    graph, hosts = mixed(CommunicationGraph.cartesian((size,)), seed), -(-size // slots)
    machine = Machine.hierarchy([slots, hosts], [0, 1])
    assert doubled_hop_bytes(branches(graph, machine), graph, machine) == 2 * (hosts - 1)


def test_a_complete_tree_is_cut_into_its_subtrees() -> None:
    """Four ranks send to each of 16 leaders, these to four heads: only the leaders' edges leave the hosts."""
    heads, leaders, workers = 4, 16, 48
    source = np.r_[np.arange(1, heads), heads + np.arange(leaders), heads + leaders + np.arange(workers)]
    target = np.r_[np.zeros(heads - 1, int), np.repeat(np.arange(heads), 4), heads + np.repeat(np.arange(leaders), 3)]
    graph = mixed(CommunicationGraph.from_arrays(68, source, target, np.full(67, 100)), 4, factor=10, extra=40)
    machine = Machine.hierarchy("17:4", "0:1")
    heavy = graph.volume >= 1000
    host = branches(graph, machine).host_of_rank
    assert (host[graph.sources[heavy]] != host[graph.targets[heavy]]).sum() == heads - 1
    for other in (CommunicationGraph.cartesian((3, 3)), CommunicationGraph.from_arrays(4, [], [], [])):
        with pytest.raises(MappingError, match="expecting a graph that is a tree"):
            branches(other, machine)


@pytest.mark.parametrize("machine", [Machine.hierarchy("4:4:4", FAR), Machine.torus((4, 4, 4))])
def test_best_is_the_same_for_all_seeds_on_a_perfect_torus(machine: Machine) -> None:
    graph = mixed(CommunicationGraph.cartesian((8, 8), [True, True]), 5)
    costs = {doubled_hop_bytes(best(graph, machine, seed), graph, machine) for seed in range(3)}
    assert len(costs) == 1
