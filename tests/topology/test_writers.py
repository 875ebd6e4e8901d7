"""Topologies written for Slurm and as graphs: read back they are the same tree, and remarks name the rest."""

import re

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import shared_data
from topompi.errors import SourceError
from topompi.topology import Discovery, FabricBuilder, Report, load
from topompi.topology.routecheck import with_routes
from topompi.topology.writers import ENDINGS, written
from topompi.topology.writers.slurmtree import named_by, node_names, slurm_tree

SOURCES = ["xgft:4,2,2;1,2,2", "xgft:3;1", "xgft:2,3;1,4", "dragonfly:2,1,1", "torus:3x2x2", "xgft:5,4,3;1,3,1"]


def same_leaves(one, other):
    """Whether two fabrics have the same hosts on the same leaf switches."""

    def parts(fabric):
        leaf = fabric.adapter_leaf
        return {frozenset(np.array(fabric.hosts)[fabric.adapter_host[leaf == at]]) for at in np.unique(leaf)}

    return parts(one) == parts(other)


def read_back(routes, tmp_path, name, kind="tree"):
    text, _ = written(routes, name, kind)
    (tmp_path / name).write_text(text)
    return load(str(tmp_path / name)).routes


@pytest.mark.parametrize("ending", [".conf", ".yaml"])
@pytest.mark.parametrize("source", SOURCES)
def test_slurm_s_tree_is_read_back_with_the_same_leaves_and_one_path_up(source, ending, tmp_path):
    routes = load(source).routes
    again = read_back(routes, tmp_path, f"topology{ending}")
    assert same_leaves(routes.fabric, again.fabric)
    assert again.fabric.num_links == 2 * (again.fabric.num_hosts + again.fabric.num_switches - 1)  # a tree


@pytest.mark.parametrize("ending", [".conf", ".yaml"])
def test_the_groups_of_a_fat_tree_are_its_pods(ending, tmp_path):
    routes = load("xgft:4,3,2;1,2,2").routes
    again = read_back(routes, tmp_path, f"topology{ending}")
    hosts = np.arange(24)
    pairs = np.repeat(hosts, 24), np.tile(hosts, 24)
    order = [again.fabric.host_index[host] for host in routes.fabric.hosts]
    expected = routes.tables.hops(*pairs)
    found = again.tables.hops(*(np.array(order)[end] for end in pairs))
    assert (found == expected).all()


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_every_switch_of_any_tree_has_one_parent_and_every_host_one_leaf(children, data):
    up = [1, *(data.draw(st.integers(1, 3)) for _ in children[1:])]
    routes = load(f"xgft:{','.join(map(str, children))};{','.join(map(str, up))}").routes
    rows, _ = slurm_tree(routes)
    names = [row.name for row in rows]
    below = [name for row in rows for name in row.switches]
    hosts = [host for row in rows for host in row.nodes]
    assert len(set(names)) == len(names)
    assert len(set(below)) == len(below) == len(names) - 1
    assert sorted(hosts) == sorted(routes.fabric.hosts)
    assert all(re.fullmatch(r"[\w/:-]+", name) for name in names)


def test_names_of_groups_do_not_meet_names_of_switches():
    names = ["group", "group-2", "a.b", "a-b"]
    builder = FabricBuilder("ring")  # no switch of a ring is above two others
    for name in names:
        builder.add_switch(name, name)
        builder.add_adapter(f"h{name}", f"h{name}")
    for port, name in enumerate(names):
        builder.add_cable(name, names[port - 1], 10, 20)
        builder.add_cable(name, f"h{name}", 1, 1)
    rows, _ = slurm_tree(with_routes(Discovery(builder.build()), Report()).routes)
    assert len({row.name for row in rows}) == len(rows) > 5


@pytest.mark.parametrize("ending", [".conf", ".yaml"])
def test_blocks_are_the_leaf_switches(ending, tmp_path):
    routes = load("xgft:3,4;1,2").routes
    again = read_back(routes, tmp_path, f"topology{ending}", "block")
    assert same_leaves(routes.fabric, again.fabric)
    text, _ = written(routes, f"t{ending}", "block")
    assert re.search(r"(BlockSizes=|block_sizes:\s+- )3\b", text)


def test_remarks_name_everything_that_slurm_s_tree_leaves_out():
    _, notes = slurm_tree(load("xgft:4,2,2;1,2,2").routes)
    assert notes == [
        "names of 12 switches are changed to letters that Slurm takes",
        "12 switches are 7 here: a tree has one switch above each group",
        "parallel cables, rates and routes are left out",
    ]


def test_unconnected_parts_have_roots_of_their_own():
    rows, notes = slurm_tree(load(str(shared_data("cases/A32-disconnected/topology.conf"))).routes)
    below = {name for row in rows for name in row.switches}
    assert sum(row.name not in below for row in rows) > 1
    assert any("roots of their own" in note for note in notes)


def test_hosts_are_renamed_by_a_rule_or_a_file(tmp_path):
    rows, _ = slurm_tree(load("xgft:2,2;1,1").routes)
    assert named_by(rows, node_names("s/^h0*(.)/node\\1/"))[0].nodes == ("node0", "node1")
    (tmp_path / "names").write_text("# host node\n" + "".join(f"h000{n} n{n}.x\n" for n in range(4)))
    assert named_by(rows, node_names(str(tmp_path / "names")))[1].nodes == ("n2.x", "n3.x")


@pytest.mark.parametrize(
    ("spec", "text", "words"),
    [
        ("s/h/a b/", "", "expecting node names of letters, digits, '.', '_' and '-', got 'a b000"),
        ("s/h.*/n/", "", "expecting a node of its own for each host, got n for h0000 and h0001"),
        ("s/(/n/", "", "--nodes s/(/n/: "),
        ("s/h/\\4/", "", "--nodes s/h/\\4/: invalid group reference"),
        ("", "h0000 a b\n", ":1: expecting a host and a node, got 3 words"),
        ("", "h0000 a\n", "expecting a line for host h0001, got none"),
    ],
)
def test_names_that_do_not_fit_are_refused(spec, text, words, tmp_path):
    (tmp_path / "names").write_text(text)
    rows, _ = slurm_tree(load("xgft:2,2;1,1").routes)
    with pytest.raises(SourceError, match=re.escape(words)):
        named_by(rows, node_names(spec or str(tmp_path / "names")))


def test_graphs_have_the_fabric_s_devices_and_cables(tmp_path):
    fabric = load("xgft:3,2;1,2").routes.fabric
    text, _ = written(load("xgft:3,2;1,2").routes, "f.graphml")
    (tmp_path / "f.graphml").write_text(text)
    graph = networkx.read_graphml(tmp_path / "f.graphml", force_multigraph=True)
    assert (len(graph), graph.number_of_edges()) == (fabric.num_adapters + fabric.num_switches, fabric.num_links)
    dot, _ = written(load("xgft:3,2;1,2").routes, "f.dot")
    assert dot.count(" -- ") == fabric.num_links // 2
    assert '"h0000" -- ' in dot
    assert "32 Gb/s" in dot


def test_an_unknown_ending_is_refused_with_the_known_ones():
    with pytest.raises(SourceError, match="expecting a name that ends with " + ", ".join(map(re.escape, ENDINGS))):
        written(load("xgft:2;1").routes, "f.txt")
