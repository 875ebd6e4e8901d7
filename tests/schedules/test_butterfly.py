"""Butterflies: the checker's proof for any ranks, orders and counts, and the steps and bytes of their docstrings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schedules.test_allgather import SIZES, jobs
from tests.support import examples
from topompi.schedules.proof import ScheduleError, check
from topompi.schedules.symmetric.circulant import allgather_circulant, allreduce_circulant, reduce_scatter_circulant

CIRCULANT = (allreduce_circulant, reduce_scatter_circulant, allgather_circulant)


def rounds(schedule):
    """Number of steps with messages."""
    return len(np.unique(schedule.step[schedule.messages]))


def traffic(schedule):
    """Blocks that each rank sends, and those that it receives, each of shape (p,)."""
    rows = schedule.messages
    ends = (schedule.source[rows], schedule.destination[rows])
    return [np.bincount(end, weights=schedule.count[rows], minlength=schedule.size) for end in ends]


def pairs(schedule):
    """The step, source and destination of each message; messages of one step and pair of ranks count once."""
    rows = schedule.messages
    return np.unique(np.stack((schedule.step[rows], schedule.source[rows], schedule.destination[rows])), axis=1)


@pytest.mark.parametrize("size", SIZES)
def test_circulant_is_proved_and_takes_the_fewest_steps_and_bytes_for_any_size(size):
    for make in CIRCULANT:
        schedule = make(size)
        check(schedule)
        both = 2 if make is allreduce_circulant else 1
        assert rounds(schedule) == both * (size - 1).bit_length()
        for blocks in traffic(schedule):
            np.testing.assert_array_equal(blocks, np.full(size, both * (size - 1)))
        step, source, destination = pairs(schedule)
        for end in (source, destination):
            assert len(np.unique(np.stack((step, end)), axis=1).T) == len(step)


@examples(100)
@given(jobs(largest=70), st.data())
def test_circulant_is_proved_for_any_order_counts_and_blocks(job, data):
    size, order, counts, _ = job
    check(allreduce_circulant(size, order=order, blocks=data.draw(st.integers(1, 2 * size))))
    check(reduce_scatter_circulant(size, order=order, counts=counts))
    check(allgather_circulant(size, order=order, counts=counts))


def test_circulant_in_rank_order_moves_nothing_at_the_end_of_an_allgather():
    schedule = allgather_circulant(13)
    local = np.flatnonzero(schedule.source == schedule.destination)
    assert schedule.step[local].max() == 0


@pytest.mark.parametrize("make", CIRCULANT[:2])
def test_circulant_sums_break_rank_order(make):
    with pytest.raises(ScheduleError):
        check(make(6), commutative=False)


@pytest.mark.parametrize("make", CIRCULANT)
def test_an_order_that_lacks_a_rank_is_refused(make):
    with pytest.raises(ValueError, match="holds each rank of range"):
        make(3, order=[0, 1, 1])
