"""Rooted plans over leaders, run by a small simulator that is independent of their generator."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topompi.schedules import Hierarchy


@st.composite
def hierarchies(draw, largest=24):
    """Nested clusters of any shape over ranks in any order."""
    size = draw(st.integers(1, largest))
    levels = draw(st.integers(0, 3))
    labels = np.zeros(size, dtype=int)
    clusters = []
    for _ in range(levels):
        split = np.array(draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)))
        labels = labels * 3 + split
        clusters.append(labels.copy())
    return Hierarchy(size, clusters)


def run_gather(hierarchy, root):
    """Run all ranks' stages; a stage runs when it is the next one of all its members. Returns what each holds."""
    size = hierarchy.size
    plans = [hierarchy.plan(root, rank) for rank in range(size)]
    holds = [{plan.position: rank} for rank, plan in enumerate(plans)]
    todo = [list(plan.stages) for plan in plans]
    border_crossings = 0
    while any(todo):
        ready = [
            rank
            for rank in range(size)
            if todo[rank]
            and all(
                todo[member] and todo[member][0].level == todo[rank][0].level
                for member in hierarchy.members(todo[rank][0].level, rank)
            )
        ]
        assert ready, f"deadlock: root {root}, waiting {[(r, t[0].level) for r, t in enumerate(todo) if t]}"
        rank = ready[0]
        level = todo[rank][0].level
        members = hierarchy.members(level, rank)
        stages = [todo[member].pop(0) for member in members]
        receiver = members[stages[0].root]
        for index, (member, stage) in enumerate(zip(members, stages, strict=True)):
            assert stage.me == index
            np.testing.assert_array_equal(stage.begin, stages[0].begin)
            np.testing.assert_array_equal(stage.end, stages[0].end)
            sent = range(stage.begin[index], stage.end[index])
            if member == receiver:
                continue
            assert set(sent) <= set(holds[member]), f"rank {member} sends blocks that it does not hold"
            assert not set(sent) & set(holds[receiver]), "a block arrives twice"
            holds[receiver].update({position: holds[member][position] for position in sent})
            border_crossings += len(sent)
        assert set(range(stages[0].low, stages[0].high)) <= set(holds[receiver])
    return plans, holds, border_crossings


@given(hierarchies(), st.data())
def test_gather_brings_every_block_to_any_root_once_and_in_the_announced_order(hierarchy, data):
    root = data.draw(st.integers(0, hierarchy.size - 1))
    plans, holds, _ = run_gather(hierarchy, root)
    order = plans[root].order
    assert [holds[root][position] for position in range(hierarchy.size)] == list(order)
    np.testing.assert_array_equal(order[plans[root].inverse], np.arange(hierarchy.size))


@given(hierarchies(), st.data())
def test_each_block_enters_the_roots_clusters_once(hierarchy, data):
    """A block travels at most one hop for each level between it and the root, down and up: no detours."""
    root = data.draw(st.integers(0, hierarchy.size - 1))
    _, _, moves = run_gather(hierarchy, root)
    assert moves <= (hierarchy.size - 1) * (2 * hierarchy.num_levels - 1)


@given(hierarchies(), st.data())
def test_a_rank_holds_one_stretch_of_blocks(hierarchy, data):
    """All that a rank ever holds fits its one buffer, low:high, without holes."""
    root = data.draw(st.integers(0, hierarchy.size - 1))
    plans, holds, _ = run_gather(hierarchy, root)
    for plan, held in zip(plans, holds, strict=True):
        assert sorted(held) == list(range(min(held), max(held) + 1))
        assert plan.low <= min(held)
        assert plan.high == max(held) + 1


@given(hierarchies(), st.data())
def test_equal_stages_describe_a_gather_without_counts(hierarchy, data):
    """Where a stage is called equal, member m's blocks lie m strides behind the first slot."""
    root = data.draw(st.integers(0, hierarchy.size - 1))
    for rank in range(hierarchy.size):
        for stage in hierarchy.plan(root, rank).stages:
            if stage.equal:
                others = [m for m in range(len(stage.begin)) if m != stage.root]
                for member in others:
                    assert stage.begin[member] == stage.first + member * stage.equal
                    assert stage.end[member] == stage.begin[member] + stage.equal


def test_block_placement_on_equal_hosts_needs_no_counts_and_no_permutation():
    """The common case: rank 0 gathers 4 hosts of 4 ranks in order."""
    plan = Hierarchy(16, [np.arange(16) // 4]).plan(0, 0)
    assert [stage.equal for stage in plan.stages] == [1, 4]
    assert plan.in_rank_order


def test_leaders_are_lowest_ranks_and_rank_zero_leads_every_level():
    hierarchy = Hierarchy(6, [np.array([1, 0, 1, 0, 1, 0]), np.array([5, 4, 5, 3, 9, 3])])
    assert [hierarchy.color(level, 0) for level in (1, 2, 3)] == [0, 0, 0]
    assert list(hierarchy.members(1, 0)) == [0, 1]
    assert list(hierarchy.members(2, 1)) == [1, 3]
    assert hierarchy.color(1, 3) == -1


def test_levels_that_are_not_nested_are_refused():
    with pytest.raises(ValueError, match="a cluster of level 2 lies in two clusters"):
        Hierarchy(4, [np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2])])


@given(hierarchies(largest=12))
def test_all_roots_of_small_hierarchies(hierarchy):
    for root in range(hierarchy.size):
        _, holds, _ = run_gather(hierarchy, root)
        assert len(holds[root]) == hierarchy.size
