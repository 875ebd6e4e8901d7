"""Scans and exscans: proofs for any clusters, their messages, and the lower bound of every scan."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.networks import jobs
from topompi.schedules import ALGORITHMS, Schedule, ScheduleError, analyse, check, lower_bound, make
from topompi.schedules.symmetric.scan import scan_chain, scan_doubling, scan_leaders

BOTH = pytest.mark.parametrize("inclusive", [True, False])


@BOTH
@given(st.integers(1, 40), st.integers(1, 4))
def test_chain_and_doubling_are_proved_and_send_what_they_say(inclusive, size, blocks):
    chain = scan_chain(size, inclusive=inclusive, blocks=blocks)
    doubling = scan_doubling(size, inclusive=inclusive, blocks=blocks)
    for schedule in (chain, doubling):
        check(schedule, commutative=False)
    power = 1 << (size - 1).bit_length()
    assert len(chain.messages) == (size - 1) * blocks
    assert len(doubling.messages) == size * (size - 1).bit_length() - power + 1


@BOTH
def test_between_hosts_go_the_vectors_of_leaders_only(inclusive):
    """With ranks in order, as few messages as a doubling between hosts, and a prefix into each but the first."""
    host = np.repeat(np.arange(8), 4)
    schedule = scan_leaders(32, [host], inclusive=inclusive)
    messages = schedule.messages
    crossing = host[schedule.source[messages]] != host[schedule.destination[messages]]
    assert crossing.sum() == 8 * 3 - 8 + 1
    leader = schedule.source[messages][crossing] % 4
    assert (leader == 3).all()


@given(st.data())
def test_a_scan_with_one_transfer_left_out_is_refused(data):
    size = data.draw(st.integers(2, 12))
    good = scan_leaders(size, [np.arange(size) // 3], inclusive=data.draw(st.booleans()))
    row = data.draw(st.sampled_from(good.messages.tolist()))
    columns = {name: np.delete(column, row) for name, column in good.columns().items()}
    with pytest.raises(ScheduleError):
        check(Schedule(good.collective, size, "", root=None, blocks=1, **columns), commutative=False)


@given(jobs())
def test_no_scan_undercuts_the_bound(network):
    for collective in ("scan", "exscan"):
        for name in ALGORITHMS[collective]:
            schedule = make(collective, name, network)
            assert analyse(schedule, network).ratio >= 1 - 1e-9 or not lower_bound(network, collective, 1).seconds


def test_the_bound_is_what_leaves_and_enters_each_host():
    """Counted by hand: of hosts 0, 1, 2 with ranks in order the first only sends, the last only receives."""
    from topompi.schedules.analysis.bounds import _necessary

    out, into = _necessary("scan", 1, np.array([0, 0, 1, 1, 2, 2]), 3, None)
    assert (out.tolist(), into.tolist()) == ([1, 1, 0], [0, 1, 1])
    out, into = _necessary("scan", 1, np.array([0, 1, 0, 1]), 2, None)
    assert (out.tolist(), into.tolist()) == ([1, 1], [1, 1])


def test_levels_that_are_not_nested_are_refused():
    with pytest.raises(ValueError, match="two clusters of the level above"):
        scan_leaders(4, [np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])])


def test_a_chain_takes_as_many_steps_as_it_says():
    assert [scan_chain(size, blocks=4).num_steps for size in (1, 2, 9)] == [1, 1 + 4, 1 + 7 + 4]
    for one, other in pairwise(scan_chain(9, inclusive=False, blocks=b).num_steps for b in (1, 2, 3)):
        assert other == one + 2
