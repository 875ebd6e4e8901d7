"""The evaluator of mappings, against a sum over pairs in whole numbers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from topompi.mapping.evaluate import doubled_hop_bytes, evaluate
from topompi.mapping.graph import CommunicationGraph
from topompi.mapping.machine import Machine
from topompi.mapping.mappers.links import tree_routes
from topompi.mapping.mapping import Mapping, MappingError

edges = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 2**58)), max_size=30)


@given(edges, st.permutations(range(8)))
@example([(1, 0, 2**53), (2, 0, 1)], [0, 5, 2, 3, 4, 1, 6, 7])  # loads that differ, but not as floats
def test_every_number_is_the_sum_over_pairs(rows: list[tuple[int, int, int]], order: list[int]) -> None:
    machine = Machine.tree(None, [2, 3, 1, 2], [[0, 0, 1, 1]], [7, 3, 1])
    graph = CommunicationGraph.from_arrays(8, *(zip(*rows, strict=True) if rows else ([], [], [])))
    mapping = Mapping.of(order, machine.hosts, machine.slots)
    found = evaluate(mapping, graph, machine)
    host = [[0, 0, 1, 1, 1, 2, 3, 3][slot] for slot in order]
    traffic, classes, total = [0] * 4, {"host": 0, "3": 0, "7": 0}, 0
    for u, v, amount in rows:
        a, b = host[u], host[v]
        if u != v:
            far = "host" if a == b else "3" if a // 2 == b // 2 else "7"
            classes[far] += amount
            total += amount
            for one in (a, b) if a != b else ():
                traffic[one] += amount
    doubled = classes["host"] + 3 * classes["3"] + 7 * classes["7"]
    assert found.doubled == doubled_hop_bytes(mapping, graph, machine) == doubled
    assert found.hop_bytes == Fraction(doubled, 2)
    assert {**dict.fromkeys(classes, 0), **found.bytes_by_distance} == classes
    assert (found.total, found.intra_host, found.host_traffic) == (total, classes["host"], max(traffic))
    routed = evaluate(mapping, graph, tree_routes(machine))
    assert routed.link_load == _busiest(rows, host)


def _busiest(rows: list[tuple[int, int, int]], host: list[int]) -> int:
    load: dict[object, int] = {}
    for u, v, amount in rows:
        for unit in (1, 2):
            a, b = host[u] // unit, host[v] // unit
            if a != b:
                for link in (("up", unit, a), ("down", unit, b)):
                    load[link] = load.get(link, 0) + amount
    return max(load.values(), default=0)


def test_huge_volumes_do_not_overflow() -> None:
    graph = CommunicationGraph.from_arrays(3, [0, 1, 2], [1, 0, 2], [2**62, 2**62, 2**62])
    found = evaluate(Mapping.identity(machine := Machine.hierarchy("1:3", "0:100"), 3), graph, machine)
    assert found.doubled == 100 * 2**63
    assert found.hop_bytes == 100 * 2**62
    assert found.host_traffic == 2**63


def test_the_reference_grid_in_block_order() -> None:
    """Subramoni 2013, 5.1: 2 x 4 x 4 ranks, the first and the last of four hosts on one leaf: 80 / 0 / 48."""
    machine = Machine.tree(None, [8] * 4, [[0, 1, 2, 0]], [3, 1, 0])
    found = evaluate(Mapping.identity(machine, 32), CommunicationGraph.cartesian((2, 4, 4)), machine)
    assert found.bytes_by_distance == {"host": 80, "3": 48}
    assert found.intra_share == 80 / 128
    assert found.dilation == 144 / 128


def test_nothing_sent_costs_nothing() -> None:
    machine = Machine.hierarchy("2:2", "1:2")
    found = evaluate(Mapping.identity(machine, 0), CommunicationGraph.from_arrays(0, [], [], []), machine)
    assert (found.doubled, found.intra_share, found.dilation, found.host_traffic) == (0, 1.0, 0.0, 0)


def test_a_mapping_of_another_size_or_allocation_is_refused() -> None:
    machine, graph = Machine.hierarchy("2:2", "1:2"), CommunicationGraph.cartesian((4,))
    with pytest.raises(MappingError, match="4 ranks"):
        evaluate(Mapping.identity(machine, 3), graph, machine)
    other = Machine.tree(["x", "y"], [2, 2], [], [2, 1])
    with pytest.raises(MappingError, match="allocation"):
        evaluate(Mapping.identity(other, 4), graph, machine)


def test_the_busiest_link_is_by_time_not_by_bytes() -> None:
    links = np.full((2, 2, 1), -1)
    links[0, 1, 0], links[1, 0, 0] = 0, 1
    machine = Machine.hierarchy("1:2", "0:1").with_routes(links, [100.0, 1.0])
    found = evaluate(Mapping.identity(machine, 2), CommunicationGraph.from_arrays(2, [0, 1], [1, 0], [50, 2]), machine)
    assert (found.link_load, found.link_seconds) == (2, 2.0)
