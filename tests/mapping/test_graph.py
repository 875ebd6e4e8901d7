"""The communication graph: equal volumes between ranks from every form of description."""

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topompi.mapping.exact import exact_sums
from topompi.mapping.graph import CommunicationGraph, GraphError

edges = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 2**58), st.integers(0, 9)), max_size=30)


def dense(graph: CommunicationGraph) -> list[list[int]]:
    """The volumes as a table of whole numbers."""
    table = [[0] * graph.size for _ in range(graph.size)]
    for source, target, volume in zip(
        graph.sources.tolist(), graph.targets.tolist(), graph.volume.tolist(), strict=True
    ):
        table[source][target] += volume
    return table


@given(edges)
def test_repeated_pairs_are_summed_exactly(rows: list[tuple[int, int, int, int]]) -> None:
    source, target, volume, messages = zip(*rows, strict=True) if rows else ((), (), (), ())
    graph = CommunicationGraph.from_arrays(7, source, target, volume, messages)
    expected = [[0] * 7 for _ in range(7)]
    for u, v, amount, _ in rows:
        expected[u][v] += amount
    assert dense(graph) == expected
    assert int(graph.messages.sum()) == sum(messages)
    assert len(np.unique(graph.sources * 7 + graph.targets)) == graph.num_edges


@given(edges)
def test_a_matrix_and_its_edges_are_the_same_graph(rows: list[tuple[int, int, int, int]]) -> None:
    matrix = np.zeros((7, 7), dtype=np.int64)
    for u, v, amount, _ in rows:
        matrix[u, v] += amount
    assert dense(CommunicationGraph.from_matrix(matrix)) == matrix.tolist()


@given(edges)
def test_undirected_sums_both_ways_and_drops_self_loops(rows: list[tuple[int, int, int, int]]) -> None:
    matrix = np.zeros((7, 7))
    for u, v, amount, _ in rows:
        matrix[u, v] += amount
    graph = CommunicationGraph.from_matrix(matrix.astype(np.int64)).undirected()
    both = matrix + matrix.T
    np.fill_diagonal(both, 0)
    found = np.zeros((7, 7))
    found[np.repeat(np.arange(7), np.diff(graph.offsets)), graph.targets] = graph.weight
    np.testing.assert_allclose(found, both, rtol=1e-12)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.data())
def test_a_grid_is_what_networkx_says(dims: list[int], data: st.DataObject) -> None:
    periods = data.draw(st.lists(st.booleans(), min_size=len(dims), max_size=len(dims)))
    graph = CommunicationGraph.cartesian(dims, periods)
    number = {place: rank for rank, place in enumerate(np.ndindex(*dims))}
    expected = np.zeros((graph.size, graph.size), dtype=np.int64)
    for place, rank in number.items():
        for dimension, extent in enumerate(dims):
            for step in (-1, 1):
                there = list(place)
                there[dimension] += step
                if periods[dimension]:
                    there[dimension] %= extent
                if tuple(there) in number:
                    expected[rank, number[tuple(there)]] += 1
    assert dense(graph) == expected.tolist()


def test_weights_a_direction_and_stencil_offsets() -> None:
    graph = CommunicationGraph.cartesian((3,), weights=[[5, 7]])
    assert dense(graph) == [[0, 7, 0], [5, 0, 7], [0, 5, 0]]
    nine = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
    assert CommunicationGraph.cartesian((4, 4), offsets=nine).num_edges == 84


def test_an_undirected_networkx_graph_is_sent_both_ways() -> None:
    graph = networkx.path_graph(3)
    graph[0][1]["weight"] = 9
    assert dense(CommunicationGraph.from_networkx(graph)) == [[0, 9, 0], [9, 0, 1], [0, 1, 0]]
    assert CommunicationGraph.from_networkx(networkx.empty_graph(4)).num_edges == 0


def test_count_and_log_weights() -> None:
    graph = CommunicationGraph.from_arrays(2, [0, 1], [1, 0], [10, 5], [3, 4])
    assert graph.undirected("count").weight.tolist() == [7, 7]
    assert graph.undirected("log").weight == pytest.approx([np.log(16)] * 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, [0], [2], [1]), "target in range"),
        ((2, [0], [1], [-1]), "volume of at least 0"),
        ((2, [0, 1], [1], [1]), "one length"),
        ((2, [0], [1], [0.5]), "whole numbers"),
        ((2, [0, 0], [1, 1], [2**62, 2**62]), "less than 2"),
    ],
)
def test_contradictions_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        CommunicationGraph.from_arrays(*arguments)  # type: ignore[arg-type] # wrong on purpose


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**63 - 1)), max_size=40))
def test_sums_neither_overflow_nor_round(pairs: list[tuple[int, int]]) -> None:
    group = np.array([one for one, _ in pairs], dtype=np.int64)
    values = np.array([value for _, value in pairs], dtype=np.int64)
    assert exact_sums(group, values, 4) == [sum(v for g, v in pairs if g == number) for number in range(4)]
