"""Studies of jobs that share links, in small: Pollard's, Jokanovic's and Leonardo's."""

import numpy as np
import pytest

from studies.jokanovic import applications, lanes
from studies.jokanovic.applications import BASE, CLASSES, RATE, application, character
from studies.jokanovic.sharing import outcomes
from studies.leonardo.cli import allocate, sharers
from studies.leonardo.machine import cluster_from, job_nodes, snapshot
from studies.pollard.network import NAMES, Setting, fragments, machine, mix_of, placed, slowdowns
from studies.pollard.patterns import trace
from studies.pollard.speedups import SETTINGS
from studies.routing import fat_tree
from tests.support import shared_data
from topompi.machine.interference import crossbar
from topompi.machine.interference.network import SharedNetwork, components, shared_network
from topompi.machine.interference.replay import replay
from topompi.netsim import SEND


def test_drawn_routes_are_shortest_reach_every_host_and_differ_from_d_mod_k():
    _, tables, drawn = fat_tree("xgft:3,3,2;1,3,2", 0.0, 3)
    source, target = np.divmod(np.arange(tables.num_hosts**2), tables.num_hosts)
    apart = source != target
    there, other = (one.paths(source[apart], target[apart]) for one in (tables, drawn))
    assert ((there >= 0).sum(axis=1) == (other >= 0).sum(axis=1)).all()
    assert (there != other).any()
    assert (fat_tree("xgft:3,3,2;1,3,2", 0.0, 3)[2].next_link == drawn.next_link).all()
    last = other[np.arange(len(other)), (other >= 0).sum(axis=1) - 1]
    assert (drawn.target[last] == target[apart]).all()


@pytest.mark.parametrize("pattern", NAMES)
@pytest.mark.parametrize("share", ["mean", "each"])
def test_a_rank_of_every_pattern_sends_the_same_bytes_in_the_mean(pattern, share):
    made = trace(pattern, 96, 5, 1 << 20, share=share).ranks
    assert made.amount[made.kind == SEND].sum() / 96 == pytest.approx(1 << 20)
    if share == "each":
        sent = np.bincount(made.rank[made.kind == SEND], made.amount[made.kind == SEND], 96)
        assert sent == pytest.approx(np.full(96, 1 << 20))
    assert (made.messages.nbytes > 0).all()  # every send has its receive, of the same bytes


def test_pairs_are_a_matching_and_meshes_exchange_both_ways_with_near_ranks_alone():
    pairs = trace("Pairs", 64, 5, 1024, share="message").ranks.messages
    assert sorted(pairs.source) == sorted(pairs.destination) == list(range(64))
    assert (pairs.destination[np.argsort(pairs.source)][pairs.destination] == pairs.source).all()
    mesh = trace("Unstr-mesh", 64, 5, 1024, share="message").ranks.messages
    ends = set(zip(mesh.source.tolist(), mesh.destination.tolist(), strict=True))
    assert ends == {(other, one) for one, other in ends}
    place = np.stack(np.unravel_index(np.arange(64), (4, 4, 4)), axis=1)
    assert (np.abs(place[mesh.source] - place[mesh.destination]).max(axis=1) == 1).all()


def test_jobs_on_a_fragmented_machine_have_nodes_of_their_own_in_pieces():
    found = fragments(1000, [200, 300, 100], 16, seed=1)
    together = np.concatenate(found)
    assert [len(one) for one in found] == [200, 300, 100]
    assert len(np.unique(together)) == 600
    assert ((np.diff(found[0]) > 1).sum()) > 10


@pytest.fixture(scope="module")
def small():
    return machine(4, (16, 20, 24))


def test_isolated_mixes_share_no_link_and_take_the_time_that_they_take_alone(small):
    for seed in (1, 2, 3):
        jobs = mix_of(small, seed)
        programs = placed(small, jobs, "isolated", Setting(), seed)
        network = SharedNetwork(small.routed)
        assert len(components(network, programs)) == len(jobs)
        found = replay(network, programs)
        assert (found.sharing == found.alone).all()


def test_no_job_is_faster_than_on_a_crossbar_and_random_nodes_cost_more_in_the_mean(small):
    found = [slow for seed in range(1, 5) for _, slow in slowdowns(small, seed, SETTINGS["each rank sends as much"])]
    assert min(min(slow.values()) for slow in found) > 1 - 1e-9
    assert np.mean([slow["random"] for slow in found]) > np.mean([slow["isolated"] for slow in found])


# --- Jokanovic's studies of jobs that share links, in small: her applications, mixes and lanes.


@pytest.mark.parametrize("name", ["CG", "WRF", "GROMACS", "CGPOP"])
def test_an_application_takes_the_sources_time_on_a_crossbar_and_has_its_class(name):
    assert crossbar.seconds(application(name), RATE) == pytest.approx(BASE[name], rel=1e-6)
    assert character(application(name), BASE[name], 2, "F2").name == CLASSES[name]


def test_the_messages_of_bt_are_the_benchmarks():
    made = applications.bt(16, (780_300, 156_060, 26_010), 0.0, 1)
    sizes, counts = np.unique(made.messages.nbytes, return_counts=True)
    assert dict(zip(sizes.tolist(), counts.tolist(), strict=True)) == {780_300: 96, 156_060: 144, 26_010: 144}


def test_eight_cg_lose_less_the_fewer_share_a_leaf_and_nothing_on_leaves_of_their_own():
    lost = [float(outcomes(["CG"] * 8, 8, how, 1)[0].inter.mean()) for how in ("RF:1", "F4", "F8", "F16")]
    assert lost == sorted(lost, reverse=True)
    assert lost[-1] == 0.0


def test_lanes_divide_the_whole_buffer_and_every_job_has_one():
    for how in (*lanes.ONE.values(), *lanes.APART.values()):
        settings = how.settings()
        assert settings.room * settings.lanes == lanes.TOTAL
        assert max(how.lane) < settings.lanes


def test_two_jobs_on_one_lane_lose_time_to_each_other():
    names = ("FT", "BT")
    assert lanes.total(names, lanes.ONE[2], 0.125).min() > 0


# --- Leonardo's study: its Dragonfly+, its snapshots, and isolation whose pods are cells.


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Three cells of three leaf switches of four nodes."""
    path = tmp_path_factory.mktemp("map") / "map.txt"
    lines = [f"NODE {node:04} CELL {node // 12} SWITCH {node // 4}\n" for node in range(36)]
    path.write_text("".join(lines))
    return cluster_from(str(path))


def test_cells_are_pods_and_routes_between_cells_cross_four_switches(cluster):
    assert cluster.num_nodes == 36
    assert np.diff(cluster.leaf_start).tolist() == [4] * 9
    assert np.diff(cluster.pod_start).tolist() == [3] * 3
    tables = shared_network(cluster, latency=0.0)
    near, cell, far = (tables.paths(np.array([0]), np.array([to]))[0] for to in (1, 5, 20))
    assert [int((path >= 0).sum()) for path in (near, cell, far)] == [2, 4, 5]


def test_jobs_of_a_snapshot_have_no_node_in_common_and_begin_with_the_named_one():
    jobs = {"1": np.array([0, 1]), "2": np.array([1, 2]), "3": np.array([2, 3]), "4": np.array([4])}
    assert list(snapshot(jobs, 0, 1.0, 6)) == ["1", "3", "4"]
    assert list(snapshot(jobs, 1, 1.0, 6)) == ["2", "4"]
    assert list(snapshot(jobs, 0, 0.5, 6)) == ["1", "3"]


@pytest.mark.parametrize("policy", ["isolated", "disjoint"])
def test_no_two_isolated_jobs_cross_one_link_of_a_dragonfly_plus(cluster, policy):
    network = SharedNetwork(shared_network(cluster, latency=0.0))
    shared = 0
    for seed in range(12):
        draw = np.random.default_rng(seed)
        sizes = {str(job): int(size) for job, size in enumerate(draw.integers(2, 16, 6))}
        assert not sharers(network, allocate(cluster, sizes, policy)).any()
        shared += int(sharers(network, allocate(cluster, sizes, "first")).any())
    assert shared > 3


def test_real_jobs_are_found_on_the_map():
    real = cluster_from(shared_data("fabrics/leonardo-nodemap.txt.xz"))
    assert len(np.diff(real.pod_start)) == 22
    assert len(job_nodes(shared_data("fabrics/leonardo-job-nodelists.tar.gz"), real)) == 2196


def test_a_job_gets_none_but_usable_nodes(cluster):
    usable = np.array([1, 2, 3, 9, 10, 30])
    found = allocate(cluster, {"A": 4, "B": 2, "C": 1}, "first", usable)
    assert {name: nodes.tolist() for name, nodes in found.items()} == {"A": [1, 2, 3, 9], "B": [10, 30]}
