"""Virtual network blocks: worked examples of each rule, with the rule and without it.

The cluster has 36 nodes in leaves of 6, and pods of 3 leaves. A part has 4 of a leaf's nodes; the remainder leaves are
leaves 0 and 3.
"""

import numpy as np
import pytest

from topompi.machine.jobs import Cluster
from topompi.machine.jobs.allocation import Job, Placement
from topompi.machine.jobs.allocation.blocks import BlockAllocator

TWO_PODS = Cluster.regular(36, 6, 3)
LEAF = [list(range(start, start + 6)) for start in range(0, 72, 6)]


def placed(policy: BlockAllocator, sizes: list[int], cluster: Cluster = TWO_PODS) -> list[int] | None:
    """The nodes of the last of these jobs, which come one after another; ``-n`` ends job n, counted from 1."""
    state, nodes = policy.state(cluster), None
    for number, size in enumerate(sizes, 1):
        if size < 0:
            state.end(-size)
            continue
        placement = policy.place(Job(number, size), state)
        nodes = None if placement is None else sorted(placement.nodes.tolist())
        if placement is not None:
            state.start(Job(number, size), placement)
    return nodes


def test_small_jobs_fill_the_last_leaf_first_and_big_ones_the_first_whole_leaves():
    assert placed(BlockAllocator(), [3]) == [30, 31, 32]
    assert placed(BlockAllocator(), [3, 3]) == [33, 34, 35]
    assert placed(BlockAllocator(), [3, 3, 4]) == [24, 25, 26, 27]
    assert placed(BlockAllocator(), [12]) == LEAF[1] + LEAF[2]
    assert placed(BlockAllocator(), [12, 12]) == LEAF[4] + LEAF[5]


SMALL = [6, 6, 6, 6, -1, -2, -3]  # leaves 5 to 3 are free again, leaf 2 is not


@pytest.mark.parametrize(
    ("sizes", "off", "with_rule", "without"),
    [
        ([12, 6, 6, 6, 6], "d", None, LEAF[0]),  # a small job below the big block
        ([*SMALL, 18], "", None, LEAF[1] + LEAF[4] + LEAF[5]),  # a big job above the small block
        ([*SMALL, 12], "", LEAF[0] + LEAF[1], LEAF[4] + LEAF[5]),
    ],
)
def test_rule_a_keeps_big_jobs_below_small_ones(sizes, off, with_rule, without):
    assert placed(BlockAllocator(off), sizes) == with_rule
    assert placed(BlockAllocator("a" + off), sizes) == without


def test_no_big_job_goes_to_a_leaf_of_small_ones_even_without_limits():
    assert placed(BlockAllocator("a"), [4, 2, -1, 8], Cluster.regular(12, 6, 2)) is None


def test_rule_b_parts_leaves_in_powers_of_two_and_gives_the_rest_to_jobs_of_two_nodes():
    assert placed(BlockAllocator(), [8]) == [6, 7, 8, 9, 12, 13, 14, 15]
    assert placed(BlockAllocator("b"), [8]) == [0, 1, *LEAF[1]]
    full = [8, 6, 6, 6]
    assert placed(BlockAllocator("d"), [*full, 2]) == [10, 11]
    assert placed(BlockAllocator("d"), [*full, 2, 2]) == [16, 17]
    assert placed(BlockAllocator("d"), [*full, 1]) == [10]
    assert placed(BlockAllocator("bd"), [*full, 2]) == [12, 13]
    sevens = Cluster.regular(42, 7, 3)
    assert placed(BlockAllocator("d"), [8, 7, 7, 7, 2], sevens) == [11, 12]
    assert placed(BlockAllocator("d"), [8, 7, 7, 7, 3], sevens) is None


def test_multiples_of_a_part_are_parts_too_where_it_is_asked_for():
    assert placed(BlockAllocator(multiples=True), [12]) == [6, 7, 8, 9, 12, 13, 14, 15, 24, 25, 26, 27]


def test_rule_c_puts_remainders_together_and_without_it_each_has_an_empty_leaf():
    assert placed(BlockAllocator(), [7]) == [0, *LEAF[1]]
    assert placed(BlockAllocator(), [7, 7]) == [1, *LEAF[2]]
    assert placed(BlockAllocator("c"), [7]) == [0, *LEAF[1]]
    assert placed(BlockAllocator("c"), [7, 7]) == [12, *LEAF[4]]


def test_rule_d_lets_small_jobs_in_among_remainders_only():
    full = [8, 6, 6, 6]
    assert placed(BlockAllocator(), [*full, 3]) == [0, 1, 2]
    assert placed(BlockAllocator(), [*full, 3, 3]) == [3, 4, 5]
    assert placed(BlockAllocator(), [*full, 3, 3, 3]) is None
    assert placed(BlockAllocator("d"), [*full, 3]) is None
    below = [7, 7, 6, 6, 6, -1]  # leaf 1, between those of the big block, is empty
    assert placed(BlockAllocator(), [*below, 3]) == [0, 2, 3]
    assert placed(BlockAllocator(), [*below, 6]) is None


def test_rule_d_prefers_a_leaf_with_remainders_to_an_empty_one():
    """Leaf 3 has a remainder, leaf 0 is empty: a small job goes among the remainders, and leaf 0 stays whole."""
    state = BlockAllocator().state(TWO_PODS)
    for number, (nodes, role) in enumerate(
        [([*LEAF[4], 18], ("big", 3)), (LEAF[1], ("big", -1)), (LEAF[2], ("big", -1)), (LEAF[5], ("small", -1))]
    ):
        state.start(Job(number, len(nodes)), Placement(np.array(nodes), role))
    placement = BlockAllocator().place(Job(9, 3), state)
    assert placement is not None
    assert placement.nodes.tolist() == [19, 20, 21]


@pytest.mark.parametrize("held", [[0], [31], [0, 35], [18]])
def test_a_small_job_from_outside_does_not_move_the_limits_of_the_blocks(held):
    cluster, policy = Cluster.regular(180, 18, 5), BlockAllocator()
    state = policy.state(cluster)
    for number, node in enumerate(held):
        state.start(Job(number, 1), policy.adopt(Job(number, 1), np.array([node]), cluster))
    whole = 18 * (10 - len({node // 18 for node in held}))
    for size in (19, 54, whole):
        placement = policy.place(Job(9, size), state)
        assert placement is not None, size
        assert state.busy[placement.nodes].sum() == 0
    assert policy.place(Job(9, 18), state) is not None


def test_a_big_job_from_outside_keeps_small_ones_off_its_leaves_only():
    policy = BlockAllocator()
    state = policy.state(TWO_PODS)
    state.start(Job(0, 7), policy.adopt(Job(0, 7), np.array([*LEAF[5], 24]), TWO_PODS))
    placement = policy.place(Job(1, 3), state)
    assert placement is not None
    assert placement.nodes.tolist() == [18, 19, 20]


def test_rule_e_takes_neighbours_of_one_pod_then_any_of_one_pod_then_the_first():
    wide = Cluster.regular(72, 6, 6)  # leaves 0, 1, 6 and 7 take remainders
    gap = [7, 7, 7, -1, -3]  # of leaves 2, 3 and 4 the middle one stays in use
    assert placed(BlockAllocator(), [*gap, 12], wide) == LEAF[4] + LEAF[5]
    assert placed(BlockAllocator("e"), [*gap, 12], wide) == LEAF[2] + LEAF[4]
    free_are_0_2_3 = [6, 6, 6, 6, 6, 6, -3, -4, -6, 12]
    assert placed(BlockAllocator("a", remainder_leaves=0), free_are_0_2_3) == LEAF[0] + LEAF[2]
    assert placed(BlockAllocator("ae", remainder_leaves=0), [6, 6, 6, 6, 6, 6, -2, -3, -6, 12]) == LEAF[0] + LEAF[3]


def test_rule_f_waits_and_without_it_a_job_takes_any_free_nodes():
    assert placed(BlockAllocator(), [*SMALL, 18]) is None
    assert placed(BlockAllocator("f"), [*SMALL, 18]) == LEAF[0] + LEAF[1] + LEAF[3]


@pytest.mark.parametrize(
    ("policy", "in_parts"),
    [
        (BlockAllocator(), {32, 64}),
        (BlockAllocator("b"), set()),
        (BlockAllocator(multiples=True), {32, 48, 64, 80, 96}),
    ],
    ids=["literal", "without b", "multiples"],
)
def test_sizes_1_to_100_take_whole_leaves_and_a_remainder_or_parts_of_16(policy: BlockAllocator, in_parts: set[int]):
    """On MareNostrum's 172 leaves of 18 nodes, all free."""
    cluster = Cluster.of("MareNostrum", [18] * 172, [18] * 9 + [10])
    for size in range(1, 101):
        placement = policy.place(Job(0, size), policy.state(cluster))
        leaves, each = np.unique(cluster.leaf[placement.nodes], return_counts=True)
        whole, rest = divmod(size, 18)
        expected = [16] * (size // 16) if size in in_parts else [rest] * (rest > 0) + [18] * whole
        assert sorted(each.tolist()) == expected, size
        assert leaves[-1] < 18 or (size <= 18 and leaves.tolist() == [171])
