"""Paths, hops, delays and loads of a network against walks of single pairs: in chunks, on parts, with unknown rates."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support import examples
from tests.topology.test_computed import fabrics
from topompi.errors import FabricError
from topompi.network import MAX_HOPS, Tables, joined, link_loads, walks
from topompi.topology import Fabric, FabricBuilder, Routes, compute_routes

AMOUNTS = st.integers(0, 2**40)


@st.composite
def networks(draw: st.DrawFn) -> tuple[Routes, list[int], list[int], list[int]]:
    """Routes, worked out or as tables, perhaps broken ones, and messages between hosts: source, destination, bytes."""
    fabric = draw(fabrics())
    assume(fabric.num_hosts)
    routes = compute_routes(fabric)
    if draw(st.booleans()):
        table = routes.next_link.copy()
        for _ in range(draw(st.integers(0, 3))):
            table[0, draw(st.integers(0, table.shape[1] - 1)), draw(st.integers(0, table.shape[2] - 1))] = -1
        routes = Routes(fabric, "tables", table)
    host = st.integers(0, fabric.num_hosts - 1)
    messages = draw(st.lists(st.tuples(host, host, AMOUNTS), max_size=30))
    return routes, *([list(column) for column in zip(*messages, strict=True)] or [[], [], []])


def one_walk(fabric: Fabric, table: np.ndarray, sender: int, receiver: int) -> list[int]:
    """Links from an adapter to another one, a link at a time; none without a route."""
    if fabric.adapter_uplink[sender] < 0:
        return []
    links = [int(fabric.adapter_uplink[sender])]
    while (vertex := int(fabric.link_target[links[-1]])) != receiver:
        if vertex < fabric.num_adapters or len(links) > MAX_HOPS:
            return []
        link = int(table[vertex - fabric.num_adapters, receiver])
        if link < 0:
            return []
        links.append(link)
    return links if len(links) > 1 else []


def best_walk(routes: Routes, source: int, destination: int) -> list[int]:
    """The shortest walk over the pairs of two hosts' adapters, those of one rail first."""
    if source == destination:
        return []
    table, fabric = routes.next_link[0], routes.fabric
    ends = [list(enumerate(fabric.host_adapters[host].tolist())) for host in (source, destination)]
    pairs = sorted(((i, one), (j, other)) for i, one in ends[0] for j, other in ends[1])
    pairs.sort(key=lambda pair: (pair[0][0] != pair[1][0], pair[0][0], pair[1][0]))
    walks = [found for (_, one), (_, other) in pairs if (found := one_walk(fabric, table, one, other))]
    return min(walks, key=len, default=[])


@examples(60)
@given(networks())
def test_paths_hops_and_loads_are_those_of_single_walks(given_network) -> None:
    routes, source, destination, amounts = given_network
    tables = routes.tables
    source, destination, amounts = (np.array(column, dtype=np.int64) for column in (source, destination, amounts))
    expected_paths = [best_walk(routes, *pair) for pair in zip(source.tolist(), destination.tolist(), strict=True)]
    assert [row[row >= 0].tolist() for row in tables.paths(source, destination)] == expected_paths
    away = [-1 if one != other else 0 for one, other in zip(source.tolist(), destination.tolist(), strict=True)]
    expected = [len(walk) - 1 if walk else none for walk, none in zip(expected_paths, away, strict=True)]
    assert tables.hops(source, destination).tolist() == expected
    loads = Counter()
    for walk, nbytes in zip(expected_paths, amounts.tolist(), strict=True):
        loads.update(dict.fromkeys(walk, nbytes))
    assert tables.loads(source, destination, amounts).tolist() == [loads[link] for link in range(tables.num_links)]


@examples(60)
@given(networks(), st.integers(1, 7))
def test_chunks_are_the_whole(given_network, at_once: int) -> None:
    routes, source, destination, amounts = given_network
    tables = routes.tables
    source, destination, amounts = (np.array(column, dtype=np.int64) for column in (source, destination, amounts))
    whole = (
        tables.paths(source, destination),
        tables.loads(source, destination, amounts),
        tables.hops(source, destination),
    )
    square = tables.all_paths(), tables.all_hops()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walks, "AT_ONCE", at_once)
        parts = list(tables.chunks(source, destination))
        assert all(len(paths) <= at_once for _, paths in parts)
        assert [some for some, _ in parts] == [
            slice(at, min(at + at_once, len(source))) for at in range(0, len(source), at_once)
        ]
        if parts:
            assert np.array_equal(joined([paths for _, paths in parts]), whole[0])
        assert np.array_equal(tables.loads(source, destination, amounts), whole[1])
        assert np.array_equal(tables.hops(source, destination), whole[2])
        assert np.array_equal(tables.all_paths(), square[0])
        assert np.array_equal(tables.all_hops(), square[1])


@examples(60)
@given(networks(), st.data())
def test_a_part_of_the_hosts_keeps_the_fabrics_numbers_of_links(given_network, data) -> None:
    routes, *_ = given_network
    hosts = np.array(data.draw(st.lists(st.integers(0, routes.fabric.num_hosts - 1), min_size=1, unique=True)))
    part = routes.tables.part(hosts)
    both = np.indices((len(hosts), len(hosts))).reshape(2, -1)
    assert part.num_links == routes.fabric.num_links
    for one, other, path in zip(*both.tolist(), part.paths(*both), strict=True):
        assert path[path >= 0].tolist() == best_walk(routes, int(hosts[one]), int(hosts[other]))
    assert np.array_equal(part.all_hops().ravel(), routes.tables.hops(*hosts[both]))
    again = part.part(np.arange(len(hosts))[::-1])
    assert np.array_equal(again.all_paths(), part.all_paths()[::-1, ::-1])


@given(st.lists(st.one_of(st.just(np.nan), st.floats(1, 1e12)), min_size=2, max_size=6))
def test_only_unknown_values_are_filled_in(rates: list[float]) -> None:
    columns = np.zeros(len(rates)), np.zeros(len(rates)), np.array(rates), np.array(rates[::-1])
    tables = Tables(*columns, np.full((1, 1), -1))
    filled = tables.filled(rate=7.0, latency=3.0)
    assert filled.rate.tolist() == [7.0 if np.isnan(one) else one for one in rates]
    assert filled.latency.tolist() == [3.0 if np.isnan(one) else one for one in rates[::-1]]
    assert tables.filled(latency=3.0).rate is tables.rate


def test_delays_are_those_of_the_slower_hosts_link() -> None:
    builder = FabricBuilder("three")
    builder.add_switch("s")
    for name, rate in (("a", 2.0), ("b", 8.0), ("c", float("nan"))):
        builder.add_adapter(name, name)
        builder.add_cable(name, "s", rate=rate)
    tables = compute_routes(builder.build()).tables
    source, destination = np.array([0, 1, 1, 0]), np.array([1, 0, 1, 2])
    assert tables.delays(source, destination).tolist()[:3] == [0.5, 0.5, 0.0]
    assert np.isnan(tables.delays(source, destination)[3])


@given(
    st.lists(st.lists(st.integers(-1, 6), min_size=3, max_size=3), max_size=12),
    st.integers(1, 7),
    st.data(),
)
def test_links_are_loaded_by_the_paths_that_cross_them(paths, links: int, data) -> None:
    amounts = data.draw(st.lists(AMOUNTS, min_size=len(paths), max_size=len(paths)))
    expected = [sum(n * path.count(link) for path, n in zip(paths, amounts, strict=True)) for link in range(links)]
    assert link_loads(np.array(paths, dtype=np.int32).reshape(-1, 3), np.array(amounts), links).tolist() == expected


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(FabricError, match="expecting four columns of one length"):
        Tables(np.zeros(2), np.zeros(2), np.ones(2), np.ones(3), np.full((1, 1), -1))


@given(st.integers(1, 9))
def test_hosts_on_one_switch_have_a_link_out_and_a_link_in(hosts: int) -> None:
    tables = Tables.one_switch(hosts)
    source, destination = np.indices((hosts, hosts)).reshape(2, -1)
    pairs = zip(source.tolist(), destination.tolist(), strict=True)
    expected = [[] if one == other else [one, hosts + other] for one, other in pairs]
    assert [row[row >= 0].tolist() for row in tables.paths(source, destination)] == expected
    assert tables.all_hops().tolist() == (1 - np.eye(hosts, dtype=int)).tolist()
