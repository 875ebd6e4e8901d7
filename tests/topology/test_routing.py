"""Computed routes, walks and restrictions, against networkx and closed forms."""

from collections import Counter

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.errors import RouteError
from topompi.netsim import NetsimError
from topompi.network import DIES, LOOPS
from topompi.topology import FabricBuilder, HostRoutes, Routes, compute_routes, load
from topompi.topology.randomlinks import RandomLinks
from topompi.topology.synthetic import from_spec
from topompi.views.tables import tables_of

SPECS = ("xgft:3,2,2;1,2,2", "XGFT(2; 5,4; 1,2; 1,2)", "kary:3,2", "torus:3x4", "torus:5", "dragonfly:3,2,1", "slurm64")


def all_hosts(fabric):
    return np.arange(fabric.num_hosts, dtype=np.int32)


@pytest.mark.parametrize("spec", SPECS)
def test_computed_routes_are_shortest_paths(spec):
    fabric = from_spec(spec)
    graph = networkx.Graph(fabric.to_networkx())
    lengths = dict(networkx.all_pairs_shortest_path_length(graph))
    hops = HostRoutes(compute_routes(fabric), all_hosts(fabric)).hops
    expected = [[max(0, lengths[a][b] - 1) for b in fabric.adapter_ids] for a in fabric.adapter_ids]
    np.testing.assert_array_equal(hops, expected)


@pytest.mark.parametrize("spec", SPECS)
def test_paths_are_chains_of_links_from_host_to_host(spec):
    fabric = from_spec(spec)
    routes = HostRoutes(compute_routes(fabric), all_hosts(fabric))
    paths = routes.paths()
    for i in range(fabric.num_hosts):
        for j in range(fabric.num_hosts):
            links = paths[i, j][paths[i, j] >= 0]
            assert len(links) == (routes.hops[i, j] + 1 if i != j else 0)
            if len(links):
                assert fabric.link_source[links[0]] == i
                assert fabric.link_target[links[-1]] == j
                np.testing.assert_array_equal(fabric.link_target[links[:-1]], fabric.link_source[links[1:]])


@pytest.mark.parametrize("spec", ["xgft:4,4;1,4", "kary:3,3", "xgft:4,4,2;1,4,4", "XGFT(2; 8,4; 1,2; 1,4)"])
def test_shifts_in_non_blocking_trees_load_no_link_twice(spec):
    """What d-mod-k is made for (Zahavi 2010): in a full tree every shift permutation is free of conflicts."""
    fabric = from_spec(spec)
    paths = HostRoutes(compute_routes(fabric), all_hosts(fabric)).paths()
    senders = np.arange(fabric.num_hosts)
    for shift in range(1, fabric.num_hosts):
        links = paths[senders, (senders + shift) % fabric.num_hosts]
        assert np.bincount(links[links >= 0]).max() == 1, f"shift {shift}"


def test_sharing_follows_over_subscription():
    """20 hosts over 16 up-links: destinations 0 and 16, 1 and 17, ... enter by one link; 8 of 20 hosts share."""
    fabric = from_spec("XGFT(2; 20,4; 1,8; 1,2)")
    groups = HostRoutes(compute_routes(fabric), all_hosts(fabric)).sharing()
    assert len(groups) == 4 * 4
    assert all(len(group) == 2 and group[1] - group[0] == 16 for group in groups)
    full = from_spec("xgft:4,4;1,4")
    assert HostRoutes(compute_routes(full), all_hosts(full)).sharing() == []


@examples(30)
@given(st.sampled_from(SPECS), st.randoms(use_true_random=False))
def test_restricted_routes_are_the_same_routes(spec, random):
    """By id, port and rate, whatever the order of the hosts."""
    routes = compute_routes(from_spec(spec))
    chosen = random.sample(range(routes.fabric.num_hosts), k=random.randint(1, min(8, routes.fabric.num_hosts)))
    hosts = np.array(chosen, dtype=np.int32)
    part = routes.restrict(hosts)
    assert part.fabric.hosts == tuple(routes.fabric.hosts[host] for host in hosts)
    assert part.fabric.num_switches <= routes.fabric.num_switches
    assert by_name(routes, hosts) == by_name(part, np.arange(len(hosts), dtype=np.int32))


def by_name(routes, hosts):
    fabric = routes.fabric
    ends = zip(fabric.link_source, fabric.link_target, strict=True)
    ports = zip(fabric.link_source_port, fabric.link_target_port, strict=True)
    named = [(fabric.vertex_id(a), fabric.vertex_id(b), *of) for (a, b), of in zip(ends, ports, strict=True)]
    return [[named[link] for link in path[path >= 0]] for row in HostRoutes(routes, hosts).paths() for path in row]


def line_of_switches(length=3):
    """Switches in a row, one host at each."""
    builder = FabricBuilder("row")
    for switch in range(length):
        builder.add_switch(f"s{switch}")
        builder.add_adapter(f"h{switch}", f"h{switch}")
        builder.add_cable(f"h{switch}", f"s{switch}", 1, 1)
    for switch in range(length - 1):
        builder.add_cable(f"s{switch}", f"s{switch + 1}", 2, 3)
    return builder.build()


def test_walks_say_whether_a_route_dies_or_loops_and_where():
    fabric = line_of_switches()
    routes = compute_routes(fabric)
    table = routes.next_link.copy()
    towards = {
        (fabric.vertex_id(fabric.link_source[link]), fabric.vertex_id(fabric.link_target[link])): link
        for link in range(fabric.num_links)
    }
    table[0, 1, 2] = towards["s1", "s0"]  # s0 sends h2's traffic to s1, which sends it back
    table[0, 1, 0] = -1  # s1 does not know h0
    hops, _, last = Routes(fabric, "by hand", table).tables.walk(np.array([0, 2, 1]), np.array([2, 0, 1]))
    assert hops.tolist() == [LOOPS, DIES, 1]
    assert last[1] == 1


def test_two_rails_take_the_rail_with_the_fewest_hops():
    """Hosts a and b have their first rails two switches apart and their second rails on one switch."""
    builder = FabricBuilder("rails")
    for switch in ("s0", "s1", "s2"):
        builder.add_switch(switch)
    for host, leaf in (("a", "s0"), ("b", "s1")):
        builder.add_adapter(f"{host}0", host)
        builder.add_adapter(f"{host}1", host)
        builder.add_cable(f"{host}0", leaf)
        builder.add_cable(f"{host}1", "s2")
    builder.add_cable("s0", "s1")
    fabric = builder.build()
    routes = HostRoutes(compute_routes(fabric), all_hosts(fabric))
    assert routes.hops.tolist() == [[0, 1], [1, 0]]
    names = [fabric.adapter_ids[rail[0]] for rail in routes.tables.ends(np.array([0]), np.array([1]))]
    assert names == ["a1", "b1"]
    assert [fabric.vertex_id(fabric.link_target[link]) for link in routes.paths()[0, 1]] == ["s2", "b1"]


def test_hosts_in_different_components_have_no_route():
    builder = FabricBuilder("two")
    for name in ("0", "1"):
        builder.add_switch(f"s{name}")
        builder.add_adapter(f"h{name}", f"h{name}")
        builder.add_cable(f"h{name}", f"s{name}")
    fabric = builder.build()
    assert HostRoutes(compute_routes(fabric), all_hosts(fabric)).hops.tolist() == [[0, -1], [-1, 0]]
    assert fabric.switch_component.tolist() == [0, 1]


@pytest.mark.parametrize("spec", ["xgft:3,4,2;1,2,2", "torus:4x3", "dragonfly:4,2,2"])
@given(seed=st.integers(0, 2**32 - 1))
@examples(20)
def test_components_over_some_switches_are_those_of_the_graph_without_the_others(spec, seed):
    fabric = from_spec(spec)
    joining = np.random.default_rng(seed).random(fabric.num_switches) < 0.6
    ends = [one[fabric.switch_links] - fabric.num_adapters for one in (fabric.link_source, fabric.link_target)]
    graph = networkx.Graph()
    graph.add_nodes_from(range(fabric.num_switches))
    graph.add_edges_from((a, b) for a, b in zip(*ends, strict=True) if joining[a] and joining[b])
    found = np.empty(fabric.num_switches, dtype=int)
    for number, members in enumerate(sorted(networkx.connected_components(graph), key=min)):
        found[list(members)] = number
    assert fabric.switch_components(joining).tolist() == found.tolist()


def test_hosts_of_one_switch_need_no_links_between_switches():
    builder = FabricBuilder("one")
    builder.add_switch("s")
    for name in ("h0", "h1"):
        builder.add_adapter(name, name)
        builder.add_cable(name, "s")
    fabric = builder.build()
    assert HostRoutes(compute_routes(fabric), all_hosts(fabric)).hops.tolist() == [[0, 1], [1, 0]]


# --- Static random routes: drawn per pair by a seed, with equal probabilities on fat trees.


def every_path(spec: str, seed: int) -> np.ndarray:
    return tables_of(load(spec).routes, latency=0, seed=seed).all_paths()


def test_one_seed_gives_the_same_routes_and_another_gives_others() -> None:
    first, again, other = (every_path("xgft:4,4,3;1,3,2", seed) for seed in (7, 7, 8))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize(("spec", "paths"), [("XGFT(2; 4,4; 1,5)", 5), ("xgft:2,3,2;1,2,3", 6)])
def test_a_pair_draws_every_path_of_a_fat_tree_with_the_same_probability(spec: str, paths: int) -> None:
    """600 seeds: counts within five standard deviations of their mean, for a far pair and its way back."""
    last = load(spec).fabric.num_hosts - 1
    for source, target in ((0, last), (last, 0)):
        found: Counter[tuple[int, ...]] = Counter()
        for seed in range(600):
            network = tables_of(load(spec).routes, latency=0, seed=seed)
            found[tuple(network.paths(np.array([source]), np.array([target]))[0].tolist())] += 1
        assert len(found) == paths
        spread = 5 * (600 / paths * (1 - 1 / paths)) ** 0.5
        assert all(abs(count - 600 / paths) < spread for count in found.values())


def test_pairs_of_one_destination_draw_by_themselves() -> None:
    """In a table by destination the four hosts of a leaf would share the link up towards it."""
    paths = every_path("XGFT(2; 16,2; 1,16)", 1)
    up = paths[:16, 16:, 1]
    assert len(np.unique(up[:, 0])) > 5
    assert all(0.5 < np.mean(up[:, host] != up[0, host]) <= 1 for host in range(16))


@pytest.mark.parametrize("spec", ["dragonfly:4,2,2", "xgft:4,4;1,2;1,3", "dragonfly+:3,2,2,2"])
def test_loads_are_the_sums_over_the_paths(spec: str) -> None:
    network = tables_of(load(spec).routes, latency=0, seed=3)
    draw = np.random.default_rng(3)
    source, target = draw.integers(0, network.num_hosts, (2, 500))
    amounts = draw.integers(1, 100, 500)
    expected = np.zeros(network.num_links)
    for row, amount in zip(network.paths(source, target), amounts, strict=True):
        np.add.at(expected, row[row >= 0], amount)
    assert network.loads(source, target, amounts) == pytest.approx(expected)


def test_no_table_by_destination_is_made_of_routes_per_pair() -> None:
    network = tables_of(load("xgft:4,4;1,2").routes, latency=0, seed=3)
    for call in (lambda: network.table, lambda: network.crossed(np.arange(16, dtype=np.int32))):
        with pytest.raises(NetsimError, match="expecting routes by destination, got routes per pair of adapters"):
            call()


def test_the_draws_are_limited_as_computed_routes_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPOMPI_LIMITS", "routes=10")
    with pytest.raises(RouteError, match="routes"):
        RandomLinks.of(load("xgft:4,4;1,2").fabric)
