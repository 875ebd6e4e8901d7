"""Isolation on the forwarding tables of real fabrics."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples, shared_data
from topompi.machine.jobs import Cluster, check, find_allocator
from topompi.machine.jobs.allocation import Job
from topompi.machine.jobs.allocation.disjoint import Disjoint, Exact
from topompi.topology import load
from topompi.topology.inspection import link_use
from topompi.views.cluster import cluster_of

TABLES = ("minhop", "dfsssp", "nue")


@cache
def janus(tables: str) -> Cluster:
    fabric = shared_data("fabrics/janus-2014.ibnetdiscover.xz")
    return cluster_of(
        load(fabric, shared_data(f"fabrics/derived-ibsim-opensm/janus.{tables}.opensm-lfts.dump.xz")).routes
    )


def filled(allocator: str, cluster: Cluster, seed: int, largest: int, jobs: int) -> tuple[int, int, int]:
    """Jobs that found nodes, those that did not though enough were free, and pairs that share links."""
    rng, policy = np.random.default_rng(seed), find_allocator(allocator)
    state, placed, refused = policy.state(cluster), 0, 0
    for number in range(jobs):
        if state.running and rng.random() < 0.45:
            state.end(int(rng.choice(list(state.running))))
        job = Job(number, int(rng.integers(1, largest + 1)))
        placement = policy.place(job, state)
        if placement is not None:
            state.start(job, placement)
            placed += 1
        elif job.size <= state.free:
            refused += 1
    found = check({number: placement.nodes for number, (_, placement) in state.running.items()}, cluster.links)
    return placed, refused, len(found)


@pytest.mark.parametrize(("tables", "percent"), [("minhop", 94), pytest.param("dfsssp", 91, marks=pytest.mark.long)])
def test_whole_leaves_do_not_isolate_on_real_tables(tables, percent):
    cluster, rng, shared = janus(tables), np.random.default_rng(1), 0
    for _ in range(400):
        leaves = rng.permutation(cluster.num_leaves)[:8]
        jobs = {one: np.flatnonzero(np.isin(cluster.leaf, leaves[4 * one : 4 * one + 4])) for one in range(2)}
        shared += bool(check(jobs, cluster.links))
    assert abs(shared / 4 - percent) <= 4


@pytest.mark.parametrize("tables", [TABLES[0], *(pytest.param(one, marks=pytest.mark.long) for one in TABLES[1:])])
def test_disjoint_shares_no_link_on_real_tables(tables):
    placed, _, pairs = filled("disjoint", janus(tables), 2, 60, 60)
    assert placed > 20
    assert pairs == 0


def test_leaf_exclusive_jobs_do_share_links_on_real_tables():
    assert filled("leaf-exclusive", janus("minhop"), 2, 60, 60)[2] > 0


def test_a_cluster_of_a_fabric_has_its_leaves_and_its_routes():
    cluster = cluster_of(load("xgft:4,3,2;1,2,2").routes)
    assert (cluster.num_nodes, cluster.num_leaves, cluster.num_pods) == (24, 6, 2)
    assert not len(cluster.links.links_of(np.arange(4)))
    inside = cluster.links.links_of(np.arange(12))
    assert not np.isin(inside, cluster.links.links_of(np.arange(12, 24))).any()
    assert len(cluster.links.links_of(np.array([0, 4]))) == 4
    assert len(cluster.links.links_of(np.array([0, 12]))) == 8


@pytest.mark.parametrize("fabric", ["xgft:4,4,4;1,2,2", "xgft:8,8;1,4"])
def test_the_greedy_part_of_disjoint_finds_nodes_in_nine_of_ten_states_where_there_are_any(fabric):
    cluster, rng = cluster_of(load(fabric).routes), np.random.default_rng(0)
    exact, greedy = Exact(), Disjoint(repair=0)
    states, found = (exact.state(cluster), greedy.state(cluster)), [0, 0]
    for number in range(60):
        if states[0].running and rng.random() < 0.45:
            number_ended = int(rng.choice(list(states[0].running)))
            for state in states:
                state.end(number_ended)
        job = Job(number, int(rng.integers(1, 25)))
        best, other = exact.place(job, states[0]), greedy.place(job, states[1])
        assert best is not None or other is None
        if best is not None:
            found[0] += 1
            found[1] += other is not None
            for state in states:
                state.start(job, best)
    assert found[1] >= 0.9 * found[0] > 20


@examples(40)
@given(st.sampled_from(["xgft:4,3,2;1,2,2", "xgft:5,4;1,2;1,2", "dragonfly:3,2,2"]), st.randoms())
def test_links_of_a_job_have_the_numbers_and_the_rates_of_the_fabric(spec, random):
    routes = load(spec).routes
    cluster, fabric = cluster_of(routes), routes.fabric
    nodes = np.array(random.sample(range(cluster.num_nodes), random.randint(1, cluster.num_nodes)))
    hosts = np.array([fabric.host_index[cluster.hosts[node]] for node in nodes], dtype=np.int32)
    used = cluster.links.links_of(nodes)
    assert used.tolist() == sorted(link_use(routes, hosts).switch_links.tolist())
    assert np.array_equal(cluster.network.rate, fabric.link_rate, equal_nan=True)
    one, other = (axis.ravel() for axis in np.meshgrid(nodes, nodes))
    carried = np.flatnonzero(cluster.network.loads(one, other, np.ones(len(one))))
    assert np.intersect1d(carried, fabric.switch_links).tolist() == used.tolist()


def test_a_cluster_without_a_fabric_has_no_network():
    assert Cluster.regular(8, 4).network is None
