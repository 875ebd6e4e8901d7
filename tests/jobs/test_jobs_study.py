"""Scenarios: the order of policies, intervals, and the least speed-up at which isolation pays."""

import numpy as np
import pytest

from studies.mixes import capacity_mix, power_of_two_mix
from topompi.machine.jobs import Cluster, simulate
from topompi.machine.jobs.metrics import summarise
from topompi.machine.jobs.study import POLLARD, break_even, interval

CAB = Cluster.regular(1296, 18, 18)


def test_on_a_saturated_load_waits_have_the_order_of_the_literature():
    jobs = capacity_mix(np.random.default_rng(1), 4000, 1296, 1.1)
    waits = {
        name: summarise(simulate(jobs, CAB, None, one, speed.format(seed=1))).mean_wait
        for name, (one, speed) in POLLARD.items()
    }
    assert waits["TO"] < waits["TA"]
    assert waits["TA"] > waits["TA 5 %"] > waits["TA 10 %"] > waits["TA 20 %"]
    assert waits["TA V2"] < waits["TA"]


def test_at_the_break_even_speed_isolation_costs_nothing_and_just_below_it_does():
    jobs = capacity_mix(np.random.default_rng(3), 2000, 1296, 1.1)
    percent = break_even(jobs, CAB)

    def turnaround(name: str, speed: str) -> float:
        outcome = simulate(jobs, CAB, allocator=name, speed=speed)
        return float((outcome.end - jobs.submit).mean())

    assert 0 < percent < 60
    assert turnaround("isolated", f"faster:{percent!r}") <= turnaround("first", "as-logged")
    assert turnaround("isolated", f"faster:{percent - 0.1!r}") > turnaround("first", "as-logged")


def test_an_interval_covers_the_mean_in_95_of_100_samples():
    rng = np.random.default_rng(0)
    covers = [(found := interval(rng.normal(5, 2, 6))).low <= 5 <= found.high for _ in range(2000)]
    assert np.mean(covers) == pytest.approx(0.95, abs=0.015)


# --- Random workloads of studies: their means are those of the sources, and more jobs arrive by day than at night.


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
