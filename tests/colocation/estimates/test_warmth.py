"""Rates alone with warm caches, from long shutters."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.poppa.coverage import Cell, logs_of, score
from studies.poppa.jobmodel import Phase, Shutter, simulate
from tests.colocation.estimates.test_estimators import noisy
from tests.support import examples
from topompi.machine.colocation.estimates.estimators import NOTHING, TOO_SHORT, estimate
from topompi.machine.colocation.estimates.records import ProgressRates, Records, groups_of

WINDOW = 0.32e-3


def cold(
    truth: float, lost: float, milliseconds: float, seed: int, noise: float = 0.02, shutters: int = 400
) -> ProgressRates:
    """A job that has lost a share of its rate to cold caches at the stop, which warm up; every fourth shutter is long.

    The rate of warm caches is 1, and that beside others ``truth``.
    """
    found = noisy(truth, noise, shutters, seed, windows=10)
    at = (np.arange(10) + 0.5) * WINDOW
    rates = found.rates.copy()
    rates[1] *= 1 - lost * np.exp(-at / (1e-3 * milliseconds))
    rng = np.random.default_rng(seed + 1)
    end = 1 - lost * np.exp(-33e-3 / (1e-3 * milliseconds))
    late = np.where(np.arange(shutters) % 4 == 0, end * (1 + noise * rng.standard_normal(shutters)), np.nan)
    return replace(found, rates=rates, warm=late)


@given(st.floats(0.4, 1), st.floats(0, 0.3), st.floats(2, 10), st.integers(0, 1000))
@examples(25)
def test_cold_caches_do_not_move_the_estimate(truth, lost, milliseconds, seed):
    groups = cold(truth, lost, milliseconds, seed)
    found = estimate(groups)
    assert found.performance == pytest.approx(truth, abs=0.025)


def test_without_long_shutters_a_job_with_cold_caches_is_found_too_fast():
    groups = cold(0.7, 0.2, 10, 1)
    assert estimate(replace(groups, warm=None)).performance > 0.82
    assert estimate(groups).performance == pytest.approx(0.7, abs=0.02)
    few = np.where(np.arange(400) < 36, groups.warm, np.nan)  # nine of them
    assert estimate(replace(groups, warm=few)) == estimate(replace(groups, warm=None))


@given(st.integers(0, 1000))
@examples(25)
def test_noise_alone_is_hardly_taken_for_cold_caches(seed):
    groups = cold(0.8, 0.0, 5, seed, noise=0.05)
    plain = estimate(replace(groups, warm=None)).performance
    assert estimate(groups).performance == pytest.approx(plain, abs=0.012)


def test_a_job_that_is_slower_after_long_is_left_alone():
    # Its ranks on other nodes make it wait: this is no cold cache.
    groups = cold(0.8, -0.3, 10, 3)
    assert estimate(groups).performance == estimate(replace(groups, warm=None)).performance


def test_the_late_rate_is_that_of_the_last_half_of_the_long_shutter_and_other_shutters_have_none():
    rows = []
    for start, is_long in ((0.0, True), (10.0, False)):
        rows += [("before", "a", 0, start, start + 1, 2.0), ("during", "a", 0, start + 1, start + 2, 4.0)]
        if is_long:
            rows += [("warm", "a", rank, start + 2 + at, start + 3 + at, at) for at in range(4) for rank in (0, 1)]
            rows = [row for row in rows if row[2] == 0 or row[0] == "warm"]
        rows += [("after", "a", 0, start + 7, start + 8, 2.0)]
    groups = groups_of(Records.of(rows), "a")
    assert groups.rates.shape == (3, 2, 1)
    assert groups.warm is not None
    assert groups.warm[0] == pytest.approx(2.5)  # windows 2 and 3 have 2 and 3 steps in a second
    assert np.isnan(groups.warm[1])
    assert groups_of(Records.of([row for row in rows if row[0] != "warm"]), "a").warm is None


def test_windows_next_to_the_stop_are_corrected_for_their_own_time_since_it():
    # `local` uses these alone, and extrapolates to the stop, where the caches are coldest.
    assert estimate(cold(0.7, 0.3, 2, 0), "local").performance == pytest.approx(0.7, abs=0.01)


def test_few_noisy_long_shutters_change_less_than_their_noise():
    moved = [
        abs(estimate(one).performance - estimate(replace(one, warm=None)).performance)
        for one in (cold(0.8, 0, 5, seed, noise=0.2, shutters=80) for seed in range(30))
    ]
    assert np.mean(moved) < 0.01  # 0.014 if all of the noise were taken for cold caches


def test_the_interval_is_wider_by_the_uncertainty_of_the_correction():
    groups = cold(0.7, 0.2, 10, 1, noise=0.2)
    found, plain = estimate(groups), estimate(replace(groups, warm=None))
    assert found.hidden > 0.05
    assert found.high - found.performance > 2 * (plain.high - plain.performance)
    assert found.low < 0.7 < found.high


@pytest.mark.parametrize("milliseconds", [0.5, 5.0, 20.0])
def test_the_models_caches_refill_exponentially_after_a_stop_and_are_empty_at_the_return(milliseconds):
    shutter = Shutter(region=0.0032, windows=10, pause=0.02, long_every=2)
    made = simulate([[Phase(1.0, 1.0, 0.4)], [Phase(1.0, 1.0, 0, 1.0)]], 4, shutter, nodes=1, refill=milliseconds / 1e3)
    groups = groups_of(made.records, "0")
    groups = groups.only(groups.alone)
    ends = 1 - np.exp(-np.arange(11) * WINDOW * 1e3 / milliseconds)
    expected = 1 - 0.4 * (np.diff(ends) * milliseconds / WINDOW / 1e3)
    assert groups.rates[1] == pytest.approx(np.tile(expected, (4, 1)))
    assert groups.rates[[0, 2]] == pytest.approx(0.6)
    assert made.performance[0] == pytest.approx(0.6)
    assert (groups.region, groups.late) == pytest.approx((0.0032, 0.04 + 0.75 * 0.0032))


@pytest.mark.parametrize(
    "cell",
    [
        Cell(20, 0, 1.0, 20, 0), Cell(5, 100, 1.0, 20, 2), Cell(0.5, 20, 1.0, 20, 0), Cell(0, 5, 1.0, 20, 2),
        Cell(20, 1000, 0.2, 20, 2),
    ],
)  # fmt: skip
def test_intervals_cover_the_truth_of_caches_that_refill_between_phases_of_any_length(cell):
    groups, truth = logs_of(cell, 20, seed=5)
    assert score(groups, truth, "balanced").coverage >= 0.85  # of 20 logs; the grid of the lab has more


def test_the_interval_of_a_victim_without_long_shutters_has_the_truth_and_says_that_it_is_too_short_to_tell():
    groups, truth = logs_of(Cell(20, 0, 1.0, 20, 0), 5)
    found = estimate(groups[0])
    assert found.doubt == TOO_SHORT
    assert found.low < truth[0] < found.high


@given(st.integers(0, 9), st.floats(0.4, 1), st.integers(0, 1000))
@examples(20)
def test_fewer_than_ten_shutters_say_nothing_of_caches(shutters, truth, seed):
    found = estimate(noisy(truth, 0.01, shutters, seed, windows=10))
    assert found.low == 0
    assert found.doubt
    assert (found == NOTHING) == (shutters == 0)


@given(st.floats(0.3, 1), st.floats(0, 0.4), st.floats(0.5, 20), st.integers(0, 1000))
@examples(10)
def test_long_shutters_narrow_the_interval_and_it_holds_the_estimate(truth, lost, milliseconds, seed):
    groups = cold(truth, lost, milliseconds, seed, shutters=80)
    found, blind = estimate(groups), estimate(replace(groups, warm=None))
    for one in (found, blind):
        assert 0 <= one.low <= one.performance <= one.high
    assert found.high - found.low < blind.high - blind.low + 0.05
