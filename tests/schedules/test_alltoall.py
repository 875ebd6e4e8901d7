"""Alltoalls: the checker's proof, and the numbers of steps and messages that their docstrings state."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schedules.test_allgather import crossing
from tests.support import examples
from topompi.schedules.alltoall.aggregation import alltoall_node_aware
from topompi.schedules.alltoall.direct import (
    alltoall_bruck,
    alltoall_pairwise,
    alltoall_scatter_destination,
    alltoall_shift,
)
from topompi.schedules.proof import check

DIRECT = (alltoall_pairwise, alltoall_shift, alltoall_scatter_destination)


@st.composite
def placements(draw, largest=20):
    """Host of each rank, unevenly many on each, in any order."""
    size = draw(st.integers(1, largest))
    return np.array(draw(st.lists(st.integers(0, 5), min_size=size, max_size=size)))


@examples(60)
@given(st.integers(1, 20), st.data())
def test_every_alltoallv_is_proved_and_sends_nothing_for_nothing(size, data):
    row = st.lists(st.integers(0, 2), min_size=size, max_size=size)
    counts = np.array(data.draw(st.lists(row, min_size=size, max_size=size)))
    for make in DIRECT:
        schedule = make(size, counts=counts)
        check(schedule)
        assert schedule.num_rows == np.count_nonzero(counts)
        assert schedule.independent


@examples(60)
@given(st.integers(1, 60), st.integers(2, 9))
def test_bruck_is_proved_and_sends_one_message_for_each_digit(size, radix):
    schedule = alltoall_bruck(size, radix=radix)
    check(schedule)
    digits = next(digits for digits in range(7) if radix**digits >= size)
    messages = sum(min(radix, math.ceil(size / radix**place)) - 1 for place in range(digits))
    rows = schedule.messages
    np.testing.assert_array_equal(np.bincount(schedule.source[rows], minlength=size), np.full(size, messages))
    assert len(np.unique(schedule.step[rows])) == digits


@pytest.mark.parametrize("size", [1, 2, 3, 6, 8, 13])
def test_pairwise_is_an_exchange_in_every_step(size):
    schedule = alltoall_pairwise(size)
    pairs = {*zip(schedule.step, schedule.source, schedule.destination, strict=True)}
    assert pairs == {(step, there, here) for step, here, there in pairs}
    assert len({(step, here) for step, here, _ in pairs}) == schedule.num_rows
    assert schedule.num_steps == 2 ** math.ceil(math.log2(size))


@examples(60)
@given(st.integers(1, 40))
def test_shifts_are_a_permutation_in_every_step(size):
    for schedule in (alltoall_shift(size), alltoall_scatter_destination(size)):
        assert schedule.num_steps == size
        for side in (schedule.source, schedule.destination):
            np.testing.assert_array_equal(np.bincount(schedule.step * size + side), np.ones(size * size))


@examples(60)
@given(placements(), st.integers(1, 4))
def test_each_pair_of_hosts_has_one_message_with_all_its_blocks(hosts, carriers):
    _, hosts, ranks = np.unique(hosts, return_inverse=True, return_counts=True)
    schedule = alltoall_node_aware(hosts, carriers=carriers)
    rows = crossing(schedule, hosts)
    pair = hosts[schedule.source[rows]], hosts[schedule.destination[rows]]
    carried = np.zeros((len(ranks), len(ranks)), dtype=int)
    np.add.at(carried, pair, schedule.count[rows])
    assert len(rows) == len(ranks) * (len(ranks) - 1)
    np.testing.assert_array_equal(carried, np.outer(ranks, ranks) * (1 - np.eye(len(ranks), dtype=int)))
    senders = {(int(hosts[rank]), int(rank)) for rank in schedule.source[rows]}
    assert np.bincount([host for host, _ in senders], minlength=1).max() <= carriers


def test_all_ranks_carry_alike_where_hosts_are_alike():
    """17 hosts of 4 ranks: each rank carries to 4 of the 16 other hosts, and from as many."""
    hosts = np.arange(68) // 4
    schedule = alltoall_node_aware(hosts)
    rows = crossing(schedule, hosts)
    for side in (schedule.source, schedule.destination):
        np.testing.assert_array_equal(np.bincount(side[rows]), np.full(68, 4))
    # Of the 256 blocks that leave or reach a host, a quarter is the carrier's own; 12 blocks go directly inside.
    inside = np.setdiff1d(schedule.messages, rows)
    assert len(inside) == 17 * 2 * 4 * 3
    assert schedule.count[inside].sum() == 17 * (2 * 192 + 12)


def test_one_rank_a_host_needs_no_carrying():
    schedule = alltoall_node_aware(np.random.default_rng(0).permutation(9))
    assert schedule.num_rows == 81
    assert len(schedule.messages) == 72


def test_the_window_is_handed_on():
    assert alltoall_scatter_destination(5).window == 32
    assert alltoall_shift(5, window=0).window == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: alltoall_bruck(4, radix=1), "radix of at least 2"),
        (lambda: alltoall_node_aware([0, 0], carriers=0), "at least one carrier"),
        (lambda: alltoall_shift(3, counts=np.ones((3, 2))), "shape"),
        (lambda: alltoall_shift(2, counts=-np.ones((2, 2))), "at least 0"),
    ],
)
def test_what_cannot_be_done_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
