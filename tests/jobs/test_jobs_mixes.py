"""Random workloads of studies: their means are those of the sources, and more jobs arrive by day than at night."""

from __future__ import annotations

import numpy as np
import pytest

from studies.mixes import capacity_mix, power_of_two_mix

DAY = 86_400


@pytest.mark.parametrize("make", [capacity_mix, power_of_two_mix])
def test_most_jobs_arrive_in_the_afternoon_and_fewest_at_night(make):
    jobs = make(np.random.default_rng(1), 40_000, 1296)
    hours = np.bincount(jobs.submit % DAY // 3600, minlength=24)
    assert 12 <= hours.argmax() <= 15
    assert hours[9:18].sum() > 2 * hours[[21, 22, 23, 0, 1, 2, 3, 4, 5]].sum()
    assert hours.argmin() in (23, 0, 1, 2, 3, 4, 5)


def test_a_power_of_two_mix_arrives_as_often_as_the_published_log():
    jobs = power_of_two_mix(np.random.default_rng(1), 49_107)
    assert len(jobs) / (np.ptp(jobs.submit) / DAY) == pytest.approx(1535, rel=0.01)  # 49,107 jobs in 32 days
    assert (jobs.run * jobs.nodes).mean() / 3600 == pytest.approx(40.7, rel=0.01)
    assert (jobs.run * jobs.nodes).sum() / (3096 * np.ptp(jobs.submit)) == pytest.approx(0.84, rel=0.01)


def test_a_capacity_mix_has_the_published_limits_and_the_caller_s_load():
    jobs = capacity_mix(np.random.default_rng(1), 49_107, 1296, 0.6)
    assert (jobs.run.max(), jobs.nodes.max()) == (86_400, 256)
    assert (jobs.nodes < 18).mean() == pytest.approx(0.83, abs=0.01)
    assert (jobs.run * jobs.nodes).sum() / (1296 * np.ptp(jobs.submit)) == pytest.approx(0.6, rel=0.01)
