"""Tori and meshes: recognised by their cables alone, whatever the names and numbers of the switches."""

import json
from dataclasses import replace
from math import prod

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.mapping.distances import DistanceTable, TorusDistances
from topompi.topology import Fabric, TopologyInterface, compute_routes, load
from topompi.topology.sources import fabricjson
from topompi.topology.torus import find_torus
from topompi.views.machine import machine_of


def links_of(graph: nx.Graph) -> tuple[np.ndarray, np.ndarray]:
    both = [*graph.edges, *((b, a) for a, b in graph.edges)]
    return np.array([a for a, _ in both]), np.array([b for _, b in both])


def grid(dims: list[int], wrap: list[bool], order: list[int]) -> nx.Graph:
    """The grid by networkx, its points renumbered."""
    graph = nx.grid_graph(dims[::-1], periodic=tuple(wrap[::-1]))
    return nx.relabel_nodes(graph, dict(zip(sorted(graph.nodes), order, strict=True)))


def fabric_of(source: str, drop: int | None = None) -> Fabric:
    """A fabric under another name, without one of its cables between switches where `drop` says so."""
    fabric = load(source).fabric
    kept = np.ones(fabric.num_links, dtype=bool)
    if drop is not None:
        link = fabric.switch_links[drop]
        ends = {int(fabric.link_source[link]), int(fabric.link_target[link])}
        pairs = zip(fabric.link_source.tolist(), fabric.link_target.tolist(), strict=True)
        kept = np.array([{a, b} != ends for a, b in pairs])
    columns = ("source", "target", "source_port", "target_port", "rate", "latency")
    cut = {f"link_{column}": getattr(fabric, f"link_{column}")[kept] for column in columns}
    names = tuple(f"s{switch}" for switch in range(fabric.num_switches))
    return replace(fabric, name="a machine", switch_names=names, **cut)


@examples(60)
@given(st.data())
def test_a_grid_of_any_shape_is_found_and_is_as_far_as_networkx_walks(data: st.DataObject) -> None:
    dims = data.draw(st.lists(st.integers(2, 6), min_size=1, max_size=4).filter(lambda dims: 4 <= prod(dims) <= 400))
    wrap = [data.draw(st.booleans()) for _ in dims]
    graph = grid(dims, wrap, data.draw(st.permutations(range(prod(dims)))))
    found = find_torus(*links_of(graph), len(graph))
    assert found is not None
    rings = [extent > 2 and ring for extent, ring in zip(dims, wrap, strict=True)]
    expected = sorted([(extent, ring) for extent, ring in zip(dims, rings, strict=True) if extent not in (2, 4)])
    got = [(extent, ring) for extent, ring in zip(found.dims, found.wrap, strict=True) if extent > 2]
    assert sorted(one for one in got if one[0] != 4) == expected
    distances = TorusDistances(found.dims, found.wrap, found.coordinates)
    every = np.arange(len(graph))
    walked = dict(nx.all_pairs_shortest_path_length(graph))
    table = distances.between(every[:, None], every[None, :])
    assert table.tolist() == [[walked[a][b] for b in every.tolist()] for a in every.tolist()]


@examples(60)
@given(st.data())
def test_a_grid_with_one_edge_moved_or_gone_is_none(data: st.DataObject) -> None:
    dims = data.draw(st.lists(st.integers(3, 5), min_size=2, max_size=3))
    graph = grid(dims, [True] * len(dims), list(range(prod(dims))))
    gone = data.draw(st.sampled_from(sorted(graph.edges)))
    graph.remove_edge(*gone)
    if data.draw(st.booleans()):
        graph.add_edge(*data.draw(st.sampled_from(sorted(nx.non_edges(graph)))))
        if nx.is_isomorphic(graph, grid(dims, [True] * len(dims), list(range(prod(dims))))):
            return
    assert find_torus(*links_of(graph), len(graph)) is None


SMALL = [(4, 3, 2), (4, 4), (5, 3), (8, 8, 8), (4, 4, 4, 4, 2), (6,), (7, 2)]


@pytest.mark.parametrize("dims", [*SMALL, pytest.param((16, 8, 12), marks=pytest.mark.long)])
def test_switches_that_are_numbered_row_by_row_keep_their_coordinates(dims: tuple[int, ...]) -> None:
    fabric = fabric_of(f"torus:{'x'.join(map(str, dims))}")
    assert fabric.torus is not None
    assert (fabric.torus.dims, set(fabric.torus.wrap)) == (dims, {True})
    assert fabric.torus.coordinates.tolist() == [list(place) for place in np.ndindex(*dims)]
    assert str(fabric.torus) == f"torus {'x'.join(map(str, dims))}"


@pytest.mark.parametrize(
    "source", ["XGFT(2; 4,4; 1,2)", "XGFT(2; 4,2; 1,2)", "XGFT(2; 4,4; 1,1)", "kary:4,3", "dragonfly:4,2,2", "stampede"]
)
def test_trees_and_dragonflies_are_no_tori(source: str) -> None:
    assert load(source).fabric.torus is None


def test_a_torus_without_a_cable_is_mapped_on_by_its_true_distances() -> None:
    routes = compute_routes(fabric_of("torus:4x4x3", drop=5))
    assert routes.fabric.torus is None
    assert isinstance(machine_of(TopologyInterface.place(routes.fabric.hosts, routes)).distances, DistanceTable)


def test_a_job_on_a_torus_of_any_name_keeps_its_places_also_through_json() -> None:
    routes = compute_routes(fabric_of("torus:5x4x3"))
    job = TopologyInterface.place([routes.fabric.hosts[at] for at in (59, 0, 17, 31)], routes)
    places = [[4, 3, 2], [0, 0, 0], [1, 1, 2], [2, 2, 1]]
    assert machine_of(job).distances.coordinates.tolist() == places
    read = fabricjson.read_document(json.loads(fabricjson.write(job.routes.fabric)), "job.json").fabric
    assert read.torus is not None
    assert read.torus.dims == (5, 4, 3)
    assert read.torus.coordinates.tolist() == job.routes.fabric.torus.coordinates.tolist()
