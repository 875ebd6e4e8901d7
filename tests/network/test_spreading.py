"""Loads spread over all shortest paths, against their enumeration and against the optimum of a linear program."""

from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from topompi.network import Tables
from topompi.network.spreading import spread_loads
from topompi.topology import load

SPECS = (
    "XGFT(2; 3,3; 1,2; 1,2)",
    "xgft:2,2,2;1,2,3",
    "dragonfly:3,2,2",
    "dragonfly:3,1,2,4",
    "dragonfly+:2,2,2,2",
    "torus:4x3",
)


def paths_of(network: Tables, source: int, target: int) -> Iterator[list[int]]:
    """Every shortest path of a pair as links, parallel links apart."""
    graph = nx.MultiDiGraph()
    graph.add_edges_from(zip(network.source.tolist(), network.target.tolist(), range(network.num_links), strict=True))
    length = nx.shortest_path_length(graph, source, target)
    for path in nx.all_simple_edge_paths(graph, source, target, cutoff=length):
        yield [link for _, _, link in path]


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(SPECS), st.integers(0, 999))
def test_loads_are_those_of_all_shortest_paths_with_equal_parts(spec: str, seed: int) -> None:
    network = load(spec).routes.tables
    draw = np.random.default_rng(seed)
    source, target = draw.integers(0, network.num_hosts, (2, 12))
    amounts = draw.integers(1, 100, 12)
    expected = np.zeros(network.num_links)
    for pair, amount in zip(zip(source.tolist(), target.tolist(), strict=True), amounts.tolist(), strict=True):
        ways = list(paths_of(network, *pair)) if pair[0] != pair[1] else []
        for way in ways:
            expected[way] += amount / len(ways)
    assert spread_loads(network, source, target, amounts) == pytest.approx(expected)


def least_largest_load(network: Tables, source: np.ndarray, target: np.ndarray) -> float:
    """The least largest load of a byte per pair over all divisions among shortest paths (a linear program)."""
    ways = [
        (pair, way) for pair in range(len(source)) for way in paths_of(network, int(source[pair]), int(target[pair]))
    ]
    crosses = np.zeros((network.num_links, len(ways) + 1))
    whole = np.zeros((len(source), len(ways) + 1))
    for column, (pair, way) in enumerate(ways):
        crosses[way, column] = 1
        whole[pair, column] = 1
    crosses[:, -1] = -1
    cost = np.append(np.zeros(len(ways)), 1)
    return float(linprog(cost, crosses, np.zeros(network.num_links), whole, np.ones(len(source))).fun)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spec", SPECS)
def test_no_division_among_shortest_paths_beats_equal_parts_on_fat_trees(spec: str, seed: int) -> None:
    network = load(spec).routes.tables
    draw = np.random.default_rng(seed)
    source = draw.permutation(network.num_hosts)[:6]
    target = np.roll(source, 1)
    largest = spread_loads(network, source, target, np.ones(6)).max()
    best = least_largest_load(network, source, target)
    assert best <= largest + 1e-9
    if spec.lower().startswith("xgft"):
        assert best == pytest.approx(largest)


def test_pairs_without_a_path_load_nothing_and_direct_cables_carry_all() -> None:
    direct = Tables([0, 1], [1, 0], [1.0, 1.0], [0.0, 0.0], np.empty((0, 2), dtype=np.int32))
    assert spread_loads(direct, np.array([0]), np.array([1]), np.array([5])).tolist() == [5, 0]
    apart = load("xgft:2,2;1,1").routes.tables.part(np.arange(4))
    kept = np.flatnonzero((apart.source < 4) | (apart.target < 4))
    cut = Tables(apart.source[kept], apart.target[kept], apart.rate[kept], apart.latency[kept], np.full((3, 4), -1))
    loads = spread_loads(cut, np.array([0, 0]), np.array([1, 3]), np.array([1, 1]))
    assert loads.sum() == 2  # the pair of one leaf switch alone
