"""Placements of several jobs: fragments of leaves, random nodes, allocators and files, the same for all commands."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.jokanovic import xgft
from tests.interference.fabrics import machine, shapes, shuffled
from tests.support import command_line, refusal
from topompi.errors import TopompiError
from topompi.machine.interference import levels_of
from topompi.machine.interference.placement import at_random, draws_of, fragmented, mapping, place
from topompi.machine.jobs import Cluster
from topompi.machine.jobs.allocation import ALLOCATORS
from topompi.topology import load
from topompi.views.cluster import cluster_of, node_hosts

S8 = Cluster.regular(2048, 16, 16)  # the leaves and subtrees of XGFT(3;16,16,8;1,S,S)
SIZES = {str(job): 256 for job in range(8)}


# Jokanovic 2014, sections 3.1 and 3.2: leaf switches and sub-trees of level 2.
@pytest.mark.parametrize(
    ("placement", "size", "leaves", "trees"),
    [
        *[("F16", 256, 16, 1), ("F8", 256, 32, 2), ("F4", 256, 64, 4), ("F2", 256, 128, 8), ("NF", 256, 16, 1)],
        *[("F16", 512, 32, 2), ("F8", 512, 64, 4), ("F4", 512, 128, 8)],
    ],
)
def test_a_fragmented_job_uses_the_sources_number_of_leaves_and_subtrees(placement, size, leaves, trees):
    nodes = place(S8, {"job": size}, placement)["job"]
    assert len(nodes) == len(set(nodes)) == size
    assert (len(np.unique(S8.leaf[nodes])), len(np.unique(S8.pod[nodes]))) == (leaves, trees)
    assert (np.diff(nodes) > 0).all()
    assert xgft.footprint([16, 16, 8], size, size // leaves) == [size, leaves, trees]


def test_the_footprints_of_a_cluster_are_those_of_the_levels_of_its_fabric():
    routes = load("XGFT(3; 16,16,8; 1,4,4)").routes
    levels, cluster = levels_of(routes.fabric), cluster_of(routes)
    hosts = node_hosts(cluster, routes.fabric)[place(cluster, {"job": 256}, "F4")["job"]]
    assert [len(levels.used(hosts, level)) for level in range(3)] == [256, 64, 4]


def test_a_job_that_needs_more_leaves_than_there_are_does_not_fit():
    assert "job: expecting at most 256 nodes in placement F2, got 512" in refusal(place, S8, {"job": 512}, "F2")
    with pytest.raises(TopompiError, match="expecting a job that fits, got 512 nodes, 2 per leaf switch"):
        xgft.footprint([16, 16, 8], 512, 2)


@pytest.mark.parametrize(("each", "together"), [(16, 1), (8, 2), (4, 4), (2, 8)])
def test_eight_jobs_fill_the_machine_and_16_over_n_of_them_share_each_leaf(each, together):
    jobs = fragmented(S8, SIZES, each)
    assert sorted(np.concatenate(list(jobs.values())).tolist()) == list(range(2048))
    for nodes in jobs.values():
        assert set(np.unique(nodes // 16, return_counts=True)[1].tolist()) == {each}
    leaf = [sum((nodes // 16 == leaf).any() for nodes in jobs.values()) for leaf in range(128)]
    assert set(leaf) == {together}


@given(shapes(), st.lists(st.integers(1, 8), min_size=1, max_size=4), st.sampled_from(["NF", "F1", "F2", "RF:3"]))
def test_no_two_jobs_get_a_node(shape, sizes, placement):
    try:
        placed = place(machine(*shape), {str(job): size for job, size in enumerate(sizes)}, placement)
    except TopompiError:
        return
    assert [len(nodes) for nodes in placed.values()] == sizes
    assert len(np.unique(np.concatenate(list(placed.values())))) == sum(sizes)


def test_jobs_that_are_not_fragmented_do_not_share_leaves():
    placed = fragmented(S8, {"A": 20, "B": 40, "C": 3})
    assert [sorted(set((nodes // 16).tolist())) for nodes in placed.values()] == [[0, 1], [2, 3, 4], [5]]


def test_the_last_nodes_of_a_fragmented_job_fill_a_leaf():
    cluster = Cluster.regular(12, 4)
    placed = fragmented(cluster, {"A": 4, "B": 5, "C": 2}, 3)
    assert [nodes.tolist() for nodes in placed.values()] == [[0, 1, 2, 4], [5, 6, 7, 8, 9], [10, 11]]
    placed = fragmented(cluster, {"A": 3, "B": 3}, 2)
    assert [nodes.tolist() for nodes in placed.values()] == [[0, 1, 4], [2, 3, 5]]


def test_random_nodes_are_a_draw_of_the_seed_over_the_whole_machine():
    sizes = {"A": 256, "B": 512}
    one, same, other = (at_random(S8, sizes, seed) for seed in (1, 1, 2))
    assert all((one[name] == same[name]).all() and (one[name] != other[name]).any() for name in sizes)
    assert len(np.intersect1d(one["A"], one["B"])) == 0
    assert (np.diff(one["A"]) > 0).all()
    counts = np.bincount(np.concatenate([at_random(S8, {"A": 256}, seed)["A"] for seed in range(200)]) // 256)
    assert counts == pytest.approx(np.full(8, 200 * 32), rel=0.05)
    assert "expecting jobs of 2048 nodes together, got 2049" in refusal(place, S8, {"A": 2000, "B": 49}, "RF:1")
    assert draws_of("RF:5", 3) == ["RF:5", "RF:6", "RF:7"]
    assert draws_of("F8", 3) == ["F8"]


def test_switches_of_a_torus_are_leaves():
    placed = place(cluster_of(load("torus:4@hosts_per_switch=2").routes), {"A": 4, "B": 4}, "F1")
    assert [(nodes % 2).tolist() for nodes in placed.values()] == [[0] * 4, [1] * 4]


def test_an_allocator_keeps_a_job_in_one_part_of_a_machine_that_has_several():
    cluster = Cluster(**{**vars(Cluster.regular(8, 2)), "part": np.array([0, 0, 0, 0, 1, 1, 1, 1], dtype=np.int32)})
    placed = place(cluster, {"A": 3, "B": 2}, "first")
    assert [nodes.tolist() for nodes in placed.values()] == [[0, 1, 2], [4, 5]]


@pytest.mark.parametrize("text", ["", "F0", "F", "RF", "RF:x", "F8 F4", "nowhere/file"])
def test_unknown_placements_are_refused(text):
    assert "placement: expecting NF, F8, F4, ..., RF:SEED, an allocator" in refusal(place, S8, {"A": 1}, text)
    assert "allocator: expecting one of" in refusal(place, S8, {"A": 1}, "scattered")


def test_a_mapping_vector_gives_each_node_equal_numbers_of_consecutive_ranks():
    assert mapping([4, 2], 4).tolist() == [4, 4, 2, 2]
    assert "expecting a multiple of 2 nodes as ranks, got 3" in refusal(mapping, [4, 2], 3)


def test_a_file_gives_jobs_their_nodes_in_its_order(tmp_path):
    cluster = cluster_of(load("xgft:2,2;1,1").routes)
    names = cluster.hosts
    (tmp_path / "p").write_text(f"A {names[2]},{names[0]}\nB {names[1]}\nC {names[3]}\n")
    found = place(cluster, {"A": 2, "B": 1}, str(tmp_path / "p"))
    assert {name: nodes.tolist() for name, nodes in found.items()} == {"A": [2, 0], "B": [1]}
    assert "A: expecting 1 nodes, got 2" in refusal(place, cluster, {"A": 1}, str(tmp_path / "p"))
    assert "expecting the nodes of job D" in refusal(place, cluster, {"A": 2, "D": 1}, str(tmp_path / "p"))


# ---- one rule for all commands ----


def test_nodes_are_in_the_order_of_leaves_and_hosts_are_not(tmp_path):
    routes = load(str(shuffled("xgft:4,4;1,2", 5, tmp_path))).routes
    cluster = cluster_of(routes)
    host = node_hosts(cluster, routes.fabric)
    assert (host != np.arange(16)).any()
    assert [routes.fabric.hosts[one] for one in host.tolist()] == list(cluster.hosts)
    leaf = routes.fabric.adapter_leaf[routes.fabric.rails[0]][host]
    assert (np.diff(np.flatnonzero(np.diff(leaf, prepend=-1))) == 4).all()


NAMING = sorted(name for name, kind in ALLOCATORS.items() if kind().names_nodes)


@pytest.mark.parametrize("placement", ["NF", "F1", "F2", "F3", "RF:1", "RF:7", "file", *NAMING])
@pytest.mark.parametrize("seed", [1, 2])
def test_characterise_and_replay_put_jobs_on_the_same_hosts(placement, seed, tmp_path):
    source = shuffled("xgft:4,4,2;1,2,2", seed, tmp_path)
    if placement == "file":
        (tmp_path / "now").write_text("A h[0003,0001,0017,0030]\nB h[0000,0009]\n")
    where = str(tmp_path / "now") if placement == "file" else placement
    words = ("A=alltoall@ranks=8,ppn=2,size=1K", "B=alltoall@ranks=2", "--topology", source, "-p", where, "--json")
    one, other = (command_line("jobs", command, *words) for command in ("characterise", "replay"))
    assert (one.returncode, other.returncode) == (0, 0), one.stderr + other.stderr
    loads = {job["job"]: job for job in json.loads(one.stdout)["jobs"]}
    replayed = json.loads(other.stdout)["placements"][0]
    assert {name: job["hosts"] for name, job in loads.items()} == replayed["hosts"]
    assert [job["base"] for job in replayed["jobs"]] == [loads[name]["base_seconds"] for name in ("A", "B")]
    assert all(loads[name]["levels"][0]["groups"] == size for name, size in (("A", 4), ("B", 2)))
