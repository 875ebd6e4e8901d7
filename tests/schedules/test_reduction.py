"""Reductions: the checker's proof, rank order if promised, and the costs that their docstrings state."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schedules.test_allgather import SIZES, crossing, jobs
from tests.support import examples
from topompi.schedules.proof import ScheduleError, check
from topompi.schedules.rooted.inorder import in_order
from topompi.schedules.rooted.reduction import (
    reduce_chain,
    reduce_circulant,
    reduce_halving,
    reduce_knomial,
    reduce_leaders,
)
from topompi.schedules.symmetric.allreduce import (
    allreduce_halving,
    allreduce_leaders,
    allreduce_ring,
)
from topompi.schedules.symmetric.reduce_scatter import (
    reduce_scatter_halving,
    reduce_scatter_ring,
)
from topompi.schedules.trees import knomial


def roots(size):
    return range(size) if size <= 12 else (0, 1, size // 2, size - 1)


@st.composite
def ranges(draw, size):
    """Nested clusters, each a range of ranks."""
    cut = np.zeros(size, dtype=bool)
    clusters = []
    for _ in range(draw(st.integers(0, 3))):
        cut = cut | np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
        clusters.append(np.cumsum(cut))
    return clusters


@examples(80)
@given(st.integers(1, 24), st.data())
def test_ordered_reductions_keep_rank_order_over_any_ranges_of_ranks(size, data):
    root, radix = data.draw(st.tuples(st.integers(0, size - 1), st.integers(2, 5)))
    clusters = data.draw(ranges(size))
    reduce = reduce_leaders(size, clusters, root=root, radix=radix, ordered=True)
    check(reduce, commutative=False)
    assert reduce.root == root
    for exchange in ("doubling", "halving"):
        schedule = allreduce_leaders(size, clusters, exchange=exchange, radix=radix, ordered=True, blocks=3)
        check(schedule, commutative=False)


@pytest.mark.parametrize("make", [allreduce_ring, reduce_scatter_ring, lambda size: reduce_knomial(size, root=3)])
def test_what_is_documented_for_commutative_operations_only_breaks_rank_order(make):
    check(make(6))
    with pytest.raises(ScheduleError):
        check(make(6), commutative=False)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("radix", [2, 3, 5])
def test_in_order_trees_are_as_deep_as_k_nomial_ones(size, radix):
    height = next(height for height in range(10) if radix**height >= size)
    for root in roots(size):
        tree = in_order((), size, root=root, radix=radix)
        assert tree.depth.max() <= height
        assert tree.down.max() + 1 <= (radix - 1) * height
    np.testing.assert_array_equal(in_order((), size, radix=radix).parent, knomial(size, radix).parent)


@examples(50)
@given(jobs(), st.data())
def test_one_message_leaves_each_cluster_without_the_root_and_none_enters(job, data):
    size, _, _, clusters = job
    root = data.draw(st.integers(0, size - 1))
    schedule = reduce_leaders(size, clusters, root=root)
    assert len(schedule.messages) == size - 1
    for cluster in clusters:
        rows = crossing(schedule, cluster)
        others = sorted(set(cluster) - {cluster[root]})
        assert sorted(cluster[schedule.source[rows]]) == others


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("blocks", [1, 2, 5, 8])
def test_circulant_takes_the_fewest_steps_with_one_send_and_one_receive_a_rank_and_step(size, blocks):
    schedule = reduce_circulant(size, root=size // 2, blocks=blocks)
    rows = schedule.messages
    assert len(rows) == (size - 1) * blocks
    assert schedule.count[rows].tolist() == [1] * len(rows)
    assert len(np.unique(schedule.step[rows])) == (blocks - 1 + math.ceil(math.log2(size)) if size > 1 else 0)
    for end in (schedule.source, schedule.destination):
        pairs = np.stack((schedule.step[rows], end[rows]))
        assert len(np.unique(pairs, axis=1).T) == len(rows)


@pytest.mark.parametrize("size", [2, 8, 32])
def test_ring_and_halving_send_the_least_bytes_from_each_rank(size):
    """2 (1 - 1/p) of a vector for an allreduce, half of it for a reduce-scatter."""
    for make, share in (
        (allreduce_ring, 2),
        (allreduce_halving, 2),
        (reduce_scatter_ring, 1),
        (reduce_scatter_halving, 1),
    ):
        schedule = make(size)
        rows = schedule.messages
        sent = np.bincount(schedule.source[rows], weights=schedule.count[rows])
        np.testing.assert_array_equal(sent, np.full(size, share * (size - 1)))


@pytest.mark.parametrize("size", [4, 16, 64])
def test_halving_sends_the_largest_parts_between_neighbours(size):
    """Over the middle of the order goes one block from each rank and, for an allreduce, one back."""
    half = np.arange(size) // (size // 2)
    for make, share in ((allreduce_halving, 2), (reduce_scatter_halving, 1)):
        schedule = make(size)
        assert schedule.count[crossing(schedule, half)].sum() == share * size


@pytest.mark.parametrize("size", [2, 3, 8, 13, 64])
@pytest.mark.parametrize("root", [0, 1])
def test_halving_to_one_root_takes_the_messages_of_its_docstring(size, root):
    corners = 1 << int(math.log2(size))
    messages = corners * int(math.log2(corners)) + corners - 1 + size - corners
    assert len(reduce_halving(size, root=root).messages) == messages


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: reduce_knomial(4, radix=1), "radix of at least 2"),
        (lambda: reduce_knomial(4, radix=1, ordered=True), "radix of at least 2"),
        (lambda: reduce_knomial(4, root=4, ordered=True), "expecting root"),
        (lambda: reduce_chain(4, root=4), "expecting root"),
        (lambda: reduce_circulant(4, root=4), "expecting root"),
        (lambda: reduce_circulant(4, blocks=0), "at least one block"),
        (lambda: reduce_halving(4, root=-1), "expecting root"),
        (lambda: reduce_halving(4, order=[0, 1, 2, 2]), "holds each rank"),
        (lambda: reduce_leaders(4, ([0, 1, 0, 1],), ordered=True), "a range of ranks"),
        (lambda: reduce_leaders(4, ([0, 0, 1, 1], [0, 1, 1, 2]), ordered=True), "nested"),
        (lambda: reduce_leaders(4, ([0, 0, 1],), ordered=True), "each of 4 ranks"),
        (lambda: allreduce_leaders(4, exchange="star"), "got 'star'"),
        (lambda: allreduce_leaders(4, exchange="ring", ordered=True), "does not commute"),
        (lambda: reduce_scatter_ring(4, counts=[1]), "expecting 4 counts of blocks"),
    ],
)
def test_what_cannot_be_done_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
