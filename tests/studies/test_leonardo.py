"""Leonardo's study: its Dragonfly+, its snapshots, and isolation whose pods are cells."""

from __future__ import annotations

import numpy as np
import pytest

from studies.leonardo.cli import allocate, sharers
from studies.leonardo.machine import cluster_from, job_nodes, snapshot
from tests.support import shared_data
from topompi.machine.interference.network import SharedNetwork, shared_network


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
