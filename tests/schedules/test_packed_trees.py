"""Trees that share a message: spanning trees, their loads on the routes, few steps, and numbers of blocks."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.networks import job, jobs
from tests.schedules.test_orders import tangled
from tests.support import examples
from topompi.mpi.prediction.predictor import Predictor
from topompi.schedules import check, find_algorithm, make
from topompi.schedules.orders import with_order
from topompi.schedules.rooted import packing as growth
from topompi.schedules.rooted.packedtrees import (
    LEAST_BYTES,
    MOST_ROUNDS,
    START,
    bcast_packed_trees,
    parts_of,
    reduce_packed_trees,
)
from topompi.schedules.rooted.packing import TREES, least_sum, packing
from topompi.schedules.segments import make_cut
from topompi.schedules.table import MOST_PARTS
from topompi.topology import TopologyInterface, load_routes

FULL = ("torus:4x4x4", "torus:8x8", "dragonfly:4,2,2", "XGFT(2; 8,8; 1,2)", "XGFT(2; 8,8; 1,1)")
MAKE = {"bcast": bcast_packed_trees, "reduce": reduce_packed_trees}


@given(jobs(most_hosts=24), st.sampled_from(list(MAKE)), st.integers(1, 14), st.data())
@examples(90)
def test_packed_trees_are_proved_on_random_fabrics_and_each_rank_gets_each_block_once(
    network, collective, blocks, data
):
    root = data.draw(st.integers(0, network.num_ranks - 1))
    schedule = make(collective, "packed_trees", network, root, blocks)
    check(schedule)
    assert len(schedule.messages) == blocks * (network.num_ranks - 1)


@pytest.mark.parametrize("spec", FULL)
@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("collective", MAKE)
def test_no_link_carries_more_than_the_message_in_any_step_and_the_pipeline_ends_when_the_deepest_host_can(
    collective, seed, spec
):
    hosts = np.arange(64) if seed is None else np.random.default_rng(seed).permutation(64)
    network = with_order(job(spec, hosts, [1] * 64))
    schedule = make(collective, "packed_trees", network, 5, 12 * TREES)
    packed = packing(network, 5, inwards=collective == "reduce")
    assert packed.load == pytest.approx(1.0)
    deepest = packed.depth.sum(axis=0).max()
    assert least_sum(64) <= deepest <= least_sum(64) + 4
    rows = schedule.messages
    step = schedule.step[rows] - schedule.step[rows].min()
    assert step.max() + 1 == 12 + -(-deepest // TREES) - 1
    if collective == "reduce":
        step = step.max() - step
    on = np.zeros((step.max() + 1, len(network.capacity)))
    for time, *ends in zip(step, schedule.source[rows], schedule.destination[rows], strict=True):
        links = network.links[tuple(network.rank_host[ends])]
        on[time, links[links >= 0]] += 1
    on *= network.capacity.min() / network.capacity
    assert on[:12].max() == TREES
    assert on[12:].max() <= TREES + 1  # in the last rounds, one message more if nothing else is possible


def test_a_slow_host_sends_no_longer_than_others():
    network = with_order(job("XGFT(2; 8,8; 1,8)", range(64), [1] * 64))
    capacity = network.capacity.copy()
    capacity[network.links[9, 0, 0]] /= 2  # the link on which host 9 sends
    slow = replace(network, capacity=capacity)
    sends = (packing(slow).parent == 9).sum()
    assert sends <= TREES / 2
    assert packing(slow).load == pytest.approx(1.0)


def test_hosts_of_several_ranks_receive_the_message_once_and_trees_enter_them_at_different_ranks():
    network = with_order(job("XGFT(2; 4,4; 1,4)", range(16), [4] * 16))
    schedule = make("bcast", "packed_trees", network, 3, 8)
    rows = schedule.messages
    host = network.rank_host
    outside = rows[host[schedule.source[rows]] != host[schedule.destination[rows]]]
    entered = Counter(schedule.destination[outside].tolist())
    assert all(many == 2 for rank, many in entered.items())
    assert set(entered) == set(np.flatnonzero(host != host[3]).tolist())


@given(tangled(most=14), st.booleans())
@examples(60)
def test_trees_span_all_hosts_and_have_the_load_that_they_state_on_any_routes(network, inwards):
    packed = packing(network, 1, inwards=inwards)
    loads = np.zeros(len(network.capacity))
    for parent, depth in zip(packed.parent, packed.depth, strict=True):
        assert np.flatnonzero(parent < 0).tolist() == np.flatnonzero(depth == 0).tolist() == [1]
        below = np.flatnonzero(parent >= 0)
        assert (depth[below] == depth[parent[below]] + 1).all()
        ends = (below, parent[below]) if inwards else (parent[below], below)
        loads += network.loads_of(*ends, np.full(len(below), 1 / TREES))
    assert packed.load == pytest.approx((loads / network.capacity).max())  # hosts' own links have rate 1


def test_edges_avoid_pairs_of_hosts_without_a_route():
    network = with_order(job("XGFT(2; 4,4; 1,4)", range(16), [1] * 16))
    hops, paths = network.hops.copy(), network.links.copy()
    for source in range(1, 16):
        target = source % 15 + 1
        hops[source, target], paths[source, target] = -1, -1
    parent = packing(replace(network, hops=hops, paths=paths)).parent
    assert all(parent[tree, target] != (target - 2) % 15 + 1 for tree in range(TREES) for target in range(1, 16))


def test_jobs_with_too_many_routes_have_chains(monkeypatch):
    monkeypatch.setattr(growth, "MOST_LINKS", 100)
    network = replace(with_order(job("torus:3x3@hosts_per_switch=2", range(18), [1] * 18)))
    packed = packing(network)
    assert packed.depth.max() == 17
    check(make("bcast", "packed_trees", network, 0, 8))


@given(st.integers(1, 1 << 28), st.sampled_from([1e8, 1.25e9, 4e9, 2.5e10]))
@examples(90)
def test_the_number_of_blocks_makes_the_pipeline_as_fast_as_any_other_number_of_steps(nbytes, rate):
    network = job("XGFT(2; 4,4; 1,4)", range(16), [1] * 16)
    network = replace(network, capacity=np.full_like(network.capacity, rate))
    blocks = parts_of(network, nbytes)
    assert blocks % TREES == 0
    most = max(min(MOST_ROUNDS, nbytes // (TREES * LEAST_BYTES)), 1)

    def seconds(steps):
        return (steps + 5 / 2) * (nbytes / (steps * rate) + START)

    assert seconds(blocks // TREES) <= min(map(seconds, range(1, most + 1))) * 1.02
    assert make_cut("bcast", "packed_trees", network, 0, nbytes).schedule.blocks == min(blocks, nbytes)


def test_the_cost_model_predicts_the_number_of_blocks_that_runs():
    fabric = load_routes("torus:4x4")
    predictor = Predictor(TopologyInterface.place(fabric.fabric.hosts, fabric))
    blocks = parts_of(predictor.network, 1 << 20)
    assert 16 < blocks < MOST_PARTS
    named, known = f"packed_trees/{-(-(1 << 20) // blocks)}", find_algorithm("bcast", "packed_trees")
    assert known.blocks_of(predictor.network, 1 << 20) == blocks
    assert predictor.seconds("Bcast", "packed_trees", 1 << 20, 0) == predictor.seconds("Bcast", named, 1 << 20, 0)
    assert predictor.seconds("Bcast", "packed_trees", 1 << 20, 0) < predictor.seconds("Bcast", "chain/8K", 1 << 20, 0)
