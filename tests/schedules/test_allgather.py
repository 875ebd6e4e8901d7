"""Allgathers: the checker's proof for many sizes, orders and clusters, and the costs that their docstrings state."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.schedules.symmetric.allgather import allgather_doubling, allgather_leaders, allgather_ring
from topompi.schedules.trees import depth_first

SIZES = [*range(1, 18), 24, 31, 32, 33, 48, 64, 100]


@st.composite
def jobs(draw, largest=24):
    """An order of ranks, the blocks of each, and nested clusters of any shape."""
    size = draw(st.integers(1, largest))
    order = np.array(draw(st.permutations(range(size))))
    counts = np.array(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
    clusters, label = [], np.zeros(size, dtype=int)
    for _ in range(draw(st.integers(0, 3))):
        label = label * 3 + draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
        clusters.append(label)
    return size, order, counts, clusters


def crossing(schedule, cluster):
    """Messages that enter or leave each cluster, as the rows of the schedule."""
    rows = schedule.messages
    return rows[cluster[schedule.source[rows]] != cluster[schedule.destination[rows]]]


@examples(50)
@given(jobs())
def test_a_ring_in_tree_order_crosses_each_border_once_each_way_in_a_step(job):
    size, _, _, clusters = job
    schedule = allgather_ring(size, order=depth_first(clusters, size))
    for cluster in clusters:
        rows = crossing(schedule, cluster)
        for side in (schedule.source, schedule.destination):
            ends = np.stack((schedule.step[rows], cluster[side[rows]]))
            assert np.unique(ends, axis=1).shape == ends.shape


@pytest.mark.parametrize("size", [2, 4, 16, 64])
def test_doubling_with_near_last_sends_least_over_the_far_border(size):
    """One block from each rank over the middle of the order, where the near-first exchange sends p / 2 from each."""
    half = np.arange(size) // (size // 2)
    for near_last, blocks in ((True, size), (False, size * size // 2)):
        schedule = allgather_doubling(size, near_last=near_last)
        assert schedule.count[crossing(schedule, half)].sum() == blocks
        assert len(schedule.messages) == size * math.log2(size)


@pytest.mark.parametrize("size", [3, 5, 7, 24, 100])
def test_surplus_ranks_cost_two_messages_each(size):
    core = 1 << int(math.log2(size))
    schedule = allgather_doubling(size)
    assert len(schedule.messages) == core * math.log2(core) + 2 * (size - core)


@examples(50)
@given(jobs(), st.sampled_from(["ring", "doubling"]))
def test_leaders_bring_each_share_into_an_outermost_cluster_once(job, exchange):
    size, _, _, clusters = job
    outer = next((cluster for cluster in clusters if len(set(cluster)) > 1), np.arange(size))
    schedule = allgather_leaders(size, clusters, exchange=exchange)
    rows = crossing(schedule, outer)
    entered = np.bincount(outer[schedule.destination[rows]], weights=schedule.count[rows], minlength=outer.max() + 1)
    tops = len(set(outer))
    foreign = (size - np.bincount(outer)) * (np.bincount(outer) > 0)
    if exchange == "ring" or tops & (tops - 1) == 0:
        np.testing.assert_array_equal(entered, foreign)
    if exchange == "ring":
        assert len(rows) == tops * (tops - 1)


def test_a_level_of_one_cluster_changes_nothing():
    hosts = np.arange(12) // 4
    plain, topped = (allgather_leaders(12, clusters) for clusters in ((hosts,), (hosts * 0, hosts)))
    for name, column in plain.columns().items():
        np.testing.assert_array_equal(column, topped.columns()[name])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: allgather_ring(3, order=[0, 1, 1]), "holds each rank of range"),
        (lambda: allgather_doubling(3, order=[0, 1]), "holds each rank of range"),
        (lambda: allgather_ring(3, counts=[1, 2]), "expecting 3 counts of blocks"),
        (lambda: allgather_ring(2, counts=[1, -2]), "none negative"),
        (lambda: allgather_leaders(2, exchange="star"), "got 'star'"),
    ],
)
def test_what_is_no_order_or_no_count_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
