"""The performance of jobs on several nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.poppa.coupled import groups_on_nodes
from tests.colocation.estimates.test_estimators import noisy
from tests.support import examples, refusal
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.estimates.estimators import estimate
from topompi.machine.colocation.estimates.nodes import estimate_nodes, stopped_on


@pytest.mark.parametrize("step", [0.001, 0.005, 0.05, 0.5])
@pytest.mark.parametrize("speeds", [(0.5, 1), (0.5, 0.7), (0.6, 0.6), (0.5, 0.7, 0.9, 1), (0.8, 0.8, 0.8, 1)])
def test_the_slowest_node_has_the_performance_of_the_job(speeds, step):
    nodes = groups_on_nodes(speeds, step)
    assert estimate_nodes(nodes).performance == pytest.approx(min(speeds), rel=0.04)


def test_mean_and_product_of_the_nodes_are_wrong_and_so_is_the_least_where_ranks_wait():
    each = [estimate(one).performance for one in groups_on_nodes((0.5, 0.7, 0.9, 1), 0.5)]
    assert np.mean(each) > 0.7
    assert np.prod(each) < 0.35
    assert min(estimate(one, "local").performance for one in groups_on_nodes((0.5, 0.7, 0.9, 1), 0.001)) < 0.45


def test_ranks_that_wait_within_a_window_hide_a_part_of_the_loss_and_pay_more_than_the_truth_never_less():
    for speeds in ((0.6, 0.6), (0.5, 0.7), (0.8, 0.8, 0.8, 1)):
        assert estimate_nodes(groups_on_nodes(speeds, 0.0001)).performance > min(speeds)


@given(st.integers(2, 8), st.floats(0.3, 1), st.integers(0, 1000))
@examples(20)
def test_nodes_that_are_equal_within_noise_are_not_biased_by_their_least(nodes, truth, seed):
    found = estimate_nodes([noisy(truth, 0.02, 100, seed + at) for at in range(nodes)])
    assert found.performance == pytest.approx(truth, abs=0.012)
    assert found.total == 100 * nodes


@given(st.floats(0.3, 1), st.integers(0, 1000), st.permutations(range(3)))
@examples(20)
def test_one_node_is_the_plain_estimate_and_the_order_of_nodes_does_not_matter(truth, seed, order):
    groups = noisy(truth, 0.01, 100, seed)
    assert estimate_nodes([groups]) == estimate(groups)
    nodes = [noisy(truth * share, 0.01, 100, seed) for share in (1, 0.8, 0.6)]
    mixed = estimate_nodes([nodes[at] for at in order])
    assert mixed.performance == pytest.approx(estimate_nodes(nodes).performance)
    assert mixed.performance == pytest.approx(0.6 * truth, abs=0.01)


def test_a_job_is_stopped_by_the_shutters_of_all_its_nodes():
    one = replace(noisy(0.5, 0.01, 20), stopped=0.01)
    assert stopped_on([one]) == pytest.approx(0.01)
    assert stopped_on([one, one]) == pytest.approx(0.0199)
    assert "one node or more" in refusal(estimate_nodes, [], error=ColocationError)
