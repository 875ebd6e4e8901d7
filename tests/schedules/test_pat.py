"""PAT: trees of all ranks at once, few shares far, many near."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.schedules import check
from topompi.schedules.symmetric.pat import allgather_pat, reduce_scatter_pat

MAKERS = (allgather_pat, reduce_scatter_pat)


@pytest.mark.parametrize("make_one", MAKERS)
@given(data=st.data())
@examples(60)
def test_it_is_right_for_any_ranks_order_and_counts(make_one, data):
    size = data.draw(st.integers(1, 40))
    counts = data.draw(st.none() | st.lists(st.integers(0, 3), min_size=size, max_size=size))
    schedule = make_one(size, order=data.draw(st.permutations(range(size))), counts=counts)
    check(schedule)
    rows = schedule.rows()
    for rank in {0, size // 2, size - 1}:
        mine = rows[(rows[:, 1] == rank) | (rows[:, 2] == rank)]
        assert (schedule.rows_of(rank) == mine).all()


@pytest.mark.parametrize("make_one", MAKERS)
@pytest.mark.parametrize("size", [2, 3, 8, 13, 64, 100])
def test_half_of_the_shares_come_from_the_neighbour_and_each_step_has_one_message_or_two(make_one, size):
    """At the distance 2^k travel the shares of owners d before the sender, d a multiple of 2^(k+1) below p - 2^k."""
    schedule = make_one(size)
    rows = schedule.rows()[schedule.messages]
    assert len(np.unique(rows[:, 0])) == (size - 1).bit_length()
    ahead = (rows[:, 2] - rows[:, 1]) % size if make_one is allgather_pat else (rows[:, 1] - rows[:, 2]) % size
    for k in range((size - 1).bit_length()):
        there = ahead == 1 << k
        assert rows[there, 7].sum() == size * len(range(0, size - (1 << k), 2 << k))
        assert np.bincount(rows[there, 1]).max() <= (1 if size & (size - 1) == 0 else 2)
    assert rows[:, 7].sum() == size * (size - 1)
