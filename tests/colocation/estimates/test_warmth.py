"""Rates alone with warm caches, from long shutters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.colocation.estimates.test_estimators import noisy
from tests.support import examples
from topompi.colocation.estimates.estimators import estimate
from topompi.colocation.estimates.records import Groups, Records, groups_of
from topompi.colocation.estimates.warmth import warmed

WINDOW = 0.32e-3


def cold(truth: float, lost: float, milliseconds: float, seed: int, noise: float = 0.02, shutters: int = 400) -> Groups:
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
    assert warmed(groups) == (groups, 0.0)


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


def test_few_noisy_long_shutters_change_nothing_by_their_noise():
    moved = [
        abs(estimate(one).performance - estimate(replace(one, warm=None)).performance)
        for one in (cold(0.8, 0, 5, seed, noise=0.2, shutters=80) for seed in range(30))
    ]
    assert np.mean(moved) < 0.001  # 0.014 if the noise were taken for cold caches


def test_the_interval_is_wider_by_the_uncertainty_of_the_correction():
    groups = cold(0.7, 0.2, 10, 1, noise=0.2)
    found, plain = estimate(groups), estimate(replace(groups, warm=None))
    assert found.performance - found.low > 2 * (plain.performance - plain.low)
    assert found.high - found.performance > 2 * (plain.high - plain.performance)
    assert found.low < 0.7 < found.high
