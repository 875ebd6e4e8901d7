"""Routes that are computed on demand, against the rule applied switch by switch."""

import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.errors import RouteError
from topompi.inputs.limits import Limits
from topompi.topology import Fabric, FabricBuilder, Report, compute_routes
from topompi.topology.routecheck import check_routes
from topompi.topology.synthetic import from_spec


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Switches cabled at random, with parallel cables, one-way links, hosts of one or two rails, and idle ones."""
    switches, builder = draw(st.integers(1, 9)), FabricBuilder("random")
    for switch in range(switches):
        builder.add_switch(f"s{switch}")
    ends = st.integers(0, switches - 1)
    for port, (a, b) in enumerate(
        draw(st.lists(st.tuples(ends, ends).filter(lambda pair: pair[0] != pair[1]), max_size=24))
    ):
        if draw(st.integers(0, 9)):
            builder.add_cable(f"s{a}", f"s{b}", 10 + port, 10 + port)
        else:
            builder.add_link(f"s{a}", f"s{b}", 10 + port, 10 + port)
    for host, rails in enumerate(
        draw(st.lists(st.lists(st.integers(-1, switches - 1), min_size=1, max_size=2), max_size=10))
    ):
        for rail, leaf in enumerate(rails):
            builder.add_adapter(f"h{host}.{rail}", f"h{host}")
            if leaf >= 0:
                builder.add_cable(f"h{host}.{rail}", f"s{leaf}")
    return builder.build()


def by_the_rule(fabric: Fabric) -> np.ndarray:
    """The table of shortest paths and d-mod-k, entry by entry, with networkx's distances."""
    first = fabric.num_adapters
    graph = nx.DiGraph()
    graph.add_nodes_from(range(fabric.num_switches))
    leaving: dict[int, list[tuple[int, int, int]]] = {}
    for link in fabric.switch_links.tolist():
        source, target = int(fabric.link_source[link]) - first, int(fabric.link_target[link]) - first
        graph.add_edge(source, target)
        leaving.setdefault(source, []).append((target, int(fabric.link_source_port[link]), link))
    far = dict(nx.all_pairs_shortest_path_length(graph))
    level = fabric.switch_level.tolist()
    up = [sum(level[target] > level[s] for target, _, _ in leaving.get(s, ())) for s in range(fabric.num_switches)]
    table = np.full((fabric.num_switches, first), -1)
    for adapter, leaf in enumerate(fabric.adapter_leaf.tolist()):
        for s in range(fabric.num_switches if leaf >= 0 else 0):
            if s == leaf:
                table[s, adapter] = fabric.adapter_downlink[adapter]
                continue
            nearer = [
                one for one in sorted(leaving.get(s, ())) if far[one[0]].get(leaf, 99) + 1 == far[s].get(leaf, -1)
            ]
            if nearer:
                low = min(level[s], level[nearer[0][0]])
                below = np.prod(
                    [max(1, *(u for u, at in zip(up, level, strict=True) if at == k), 1) for k in range(low)]
                )
                table[s, adapter] = nearer[adapter // int(below) % len(nearer)][2]
    return table


@examples(150)
@given(fabrics())
def test_every_next_link_is_the_one_of_the_rule(fabric: Fabric) -> None:
    routes = compute_routes(fabric)
    assert routes.next_link[0].tolist() == by_the_rule(fabric).tolist()


@examples(100)
@given(fabrics())
def test_hops_without_a_walk_are_those_of_the_walk(fabric: Fabric) -> None:
    routes = compute_routes(fabric)
    switches, adapters = np.arange(-1, fabric.num_switches), np.arange(fabric.num_adapters)
    walked, _, _ = routes.tables.walk(np.repeat(switches, len(adapters)), np.tile(adapters, len(switches)))
    found = routes.tables.hops_from(switches, adapters)
    assert np.maximum(found, -1).ravel().tolist() == np.maximum(walked, -1).tolist()


@examples(100)
@given(fabrics())
def test_a_check_without_walks_passes_only_what_the_walks_pass(fabric: Fabric) -> None:
    routes = compute_routes(fabric)
    report, walked = Report(partial=True), Report(partial=True)
    check_routes(routes, report)
    check_routes(type(routes)(fabric, routes.engine, routes.next_link), walked)
    assert report.problems == walked.problems


def test_what_routes_cross_is_every_switch_and_link_of_their_walks() -> None:
    routes = compute_routes(from_spec("XGFT(3; 3,2,3; 1,2,2)"))
    adapters = np.array([0, 5, 7, 17])
    switch, column, link = routes.tables.crossed(adapters)
    leaves = np.unique(routes.fabric.adapter_leaf[adapters])
    _, links, _ = routes.tables.walk(np.repeat(leaves, len(adapters)), np.tile(adapters, len(leaves)))
    assert set(link.tolist()) == set(links[links >= 0].tolist())
    assert len(set(zip(switch.tolist(), column.tolist(), strict=True))) == len(switch)
    assert (routes.tables.links_at(switch, adapters[column]) == link).all()


def test_a_fabric_beyond_the_limit_of_routes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topompi.topology.computed.current_limits", lambda: Limits(routes=10))
    with pytest.raises(RouteError, match=r"expecting at most 10 entries in tables of routes, got 2,304"):
        compute_routes(from_spec("torus:4x6"))


PLACE_50_000 = """
from topompi.topology import TopologyInterface, load
routes = load("XGFT(3; 36,36,39; 1,36,36)").routes
job = TopologyInterface.place(routes.fabric.hosts[:500] + routes.fabric.hosts[500::100], routes)
job.get_hosts_sharing_links()
print(job.hop_matrix.max(), job.tree.depth, open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""


def test_fifty_thousand_hosts_and_a_job_of_a_thousand_take_little_memory() -> None:
    done = subprocess.run([sys.executable, "-c", PLACE_50_000], capture_output=True, text=True, timeout=120, check=True)
    hops, depth, kilobytes = map(int, done.stdout.split())
    assert (hops, depth) == (5, 3)
    assert kilobytes < 400_000  # 158 MB here; a table of switches x hosts would be 830 MB
