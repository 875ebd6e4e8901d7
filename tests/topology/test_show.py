"""``topompi topology show``: its facts about a fabric, and no claims that the source does not support."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import ROOT, command_line, shared_data
from topompi.topology import FabricBuilder, TopologyInterface, compute_routes, load
from topompi.topology.byleaf import hops_by_leaf, summarise_by_leaf
from topompi.topology.clusternames import ClusterNames
from topompi.topology.sources import fabricjson
from topompi.topology.summary import hop_histogram, summarise

TREE = "SwitchName=edge1 Nodes=n[1-4]\nSwitchName=edge2 Nodes=n[5-8]\nSwitchName=core Switches=edge[1-2]\n"
NODE_MAP = "".join(f"NODE {node:04} RACK 1 CELL {node // 4} SWITCH 1{node // 2}\n" for node in range(8))
COORDINATES = "".join(f"{rank}: 0 {rank // 2} {rank}\n" for rank in range(4))
YAML = "- topology: t\n  tree:\n    switches:\n      - switch: a\n        nodes: n[1-2]\n"


def show(*words, **variables):
    done = command_line("topology", "show", *words, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("content", [TREE, NODE_MAP, COORDINATES, YAML], ids=["conf", "map", "coordinates", "yaml"])
def test_nothing_that_needs_cables_is_said_of_a_source_without(tmp_path, content):
    (tmp_path / "source").write_text(content)
    discovery = load(tmp_path / "source")
    again = tmp_path / "fabric.json"
    again.write_text(fabricjson.write(discovery.fabric))
    for source in (tmp_path / "source", again):
        summary = json.loads(show(source, "--json"))
        assert summary["cabled"] is False
        found = {row[key] for row in summary["levels"] for key in ("up", "down", "oversubscription")}
        assert found == {None} == {summary["job"]["links_shared"], summary["job"]["hosts_sharing_links"]}
        said = show(source)
        assert "over-subscription and shared links: unknown, this source lists no cables" in said
        assert " : 1" not in said


def test_a_part_of_a_fabric_without_cables_has_none(tmp_path):
    (tmp_path / "topology.conf").write_text(TREE)
    routes = load(tmp_path / "topology.conf").routes
    assert not routes.restrict(np.arange(3)).fabric.cabled
    assert load("xgft:2,2;1,1").routes.restrict(np.arange(3)).fabric.cabled


def levels_by_pairs(routes, hosts):
    """Links up into and out of each level, counted pair by pair along the routes."""
    fabric = routes.fabric
    at = [-1] * fabric.num_adapters + fabric.switch_level.tolist()
    used = set()
    for source in hosts:
        for target in hosts:
            adapters = [int(fabric.host_adapters[host][0]) for host in (source, target)]
            if source == target:
                continue
            link = int(fabric.adapter_uplink[adapters[0]])
            while True:
                used.add(link)
                vertex = int(fabric.link_target[link])
                if vertex == adapters[1]:
                    break
                link = int(routes.next_link[0, vertex - fabric.num_adapters, adapters[1]])
    up = [(at[fabric.link_source[link]], at[fabric.link_target[link]]) for link in used]
    return [
        (sum(target == level > source for source, target in up), sum(source == level < target for source, target in up))
        for level in range(max(map(max, up)) + 1)
    ]


@given(st.data())
def test_the_levels_of_a_job_are_its_hosts_and_the_links_of_its_routes(data):
    source = data.draw(st.sampled_from(["XGFT(2; 5,4; 1,4)", "xgft:4,4;1,2", "XGFT(3; 3,2,2; 1,2,2)"]))
    routes = load(source).routes
    hosts = data.draw(st.lists(st.integers(0, routes.fabric.num_hosts - 1), min_size=2, max_size=8, unique=True))
    interface = TopologyInterface.place([routes.fabric.hosts[host] for host in hosts], routes)
    rate = routes.fabric.link_rate[0]
    levels = summarise(routes, interface, job=True)["levels"]
    assert [(row["down"] / rate, row["up"] / rate) for row in levels] == levels_by_pairs(routes, hosts)
    assert levels[0]["down"] / rate == len(hosts)


def test_a_jobs_table_says_that_it_is_the_jobs():
    said = show("xgft:4,4;1,2", "--hosts", "h[0000-0003,0015]")
    assert "levels of the job: its 5 hosts and the links that its routes use" in said
    assert "levels of the job" not in show("xgft:4,4;1,2")


def test_janus_has_one_over_subscription_by_its_cables_and_none_by_its_configuration_file():
    assert " : 1" not in show(shared_data("fabrics/janus.topology.conf"))
    assert "1 : 1" in show(shared_data("fabrics/janus-2014.ibnetdiscover.xz"))


def test_clusters_below_one_switch_have_its_name(tmp_path):
    (tmp_path / "topology.conf").write_text(TREE)
    said = show(tmp_path / "topology.conf")
    for words in ("core: 8 hosts within 3 hops", "edge1: 4 hosts within 1 hop", "edge2: 4 hosts within 1 hop"):
        assert words in said
    assert "cluster " not in said
    fat_tree = load("xgft:2,2;1,2").routes
    names = ClusterNames(TopologyInterface.place(list(fat_tree.fabric.hosts), fat_tree))
    assert names.name(names._interface.tree.root) == ""  # two switches are above all hosts


def test_what_no_terminal_reads_is_not_wrapped(tmp_path):
    """The list of every third host of 600 is some 800 characters long."""
    nodes = ",".join(f"n{number}" for number in range(0, 600, 3))
    (tmp_path / "topology.conf").write_text(f"SwitchName=leaf Nodes={nodes}\n")
    assert max(map(len, show(tmp_path / "topology.conf", COLUMNS="80").splitlines())) > 700


def test_a_torus_is_named_by_its_cables(tmp_path):
    path = tmp_path / "fabric.json"
    done = command_line("topology", "export", "torus:4x3", "-o", path)
    assert done.returncode == 0, done.stderr
    path.write_text(path.read_text().replace("torus", "somewhere"))
    assert "\nthe switches are cabled as a torus 4x3\n" in show(path)
    assert json.loads(show(path, "--json"))["torus"] == "torus 4x3"
    assert json.loads(show("slurm64", "--json"))["torus"] is None


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_encoding_without_our_signs_gets_others(encoding):
    command = [sys.executable, "-m", "topompi", "topology", "show", "xgft:4,4;1,2"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, env=environment)
    assert "16 hosts" in done.stdout
    assert "##########" in done.stdout


@pytest.mark.parametrize("source", ["XGFT(3; 3,2,4; 1,2,1)", "torus:3x3x2", "dragonfly:4,2,2", "slurm64"])
def test_by_leaf_the_numbers_are_those_of_all_pairs(source):
    routes = load(source).routes
    wanted = summarise(routes, TopologyInterface.place(routes.fabric.hosts, routes, source=source))
    for key in ("hosts_sharing_links", "links_shared", "tree"):
        wanted["job"][key] = None
    assert summarise_by_leaf(routes, source) == wanted


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3)), min_size=1, max_size=6), st.integers(0, 40))
def test_by_leaf_parts_of_a_fabric_count_too(switches, seed):
    """Random trees of switches, some not joined."""
    builder, rng = FabricBuilder("random"), np.random.default_rng(seed)
    for switch, (above, hosts) in enumerate(switches):
        builder.add_switch(f"s{switch}")
        for host in range(hosts):
            builder.add_adapter(f"s{switch}h{host}", f"s{switch}h{host}")
            builder.add_cable(f"s{switch}h{host}", f"s{switch}")
        if above < switch and rng.random() < 0.8:
            builder.add_cable(f"s{switch}", f"s{above}")
    routes = compute_routes(builder.build())
    assert hops_by_leaf(routes) == hop_histogram(TopologyInterface.place(routes.fabric.hosts, routes))


def test_beyond_the_limit_of_routes_a_whole_fabric_is_shown_by_leaf():
    plain, limited = show("XGFT(2; 4,4; 1,2)"), show("XGFT(2; 4,4; 1,2)", TOPOMPI_LIMITS="routes=200")
    before, shared = plain[: plain.index("16 hosts share")], plain.index(" hops ")
    hops = plain[shared : plain.index("within 3 hops")].rsplit("\n", 1)[0]
    left_out = "cluster tree and shared links are of fewer hosts than 16: give --hosts"
    assert limited == f"{before}{hops}\n{left_out}\n"
