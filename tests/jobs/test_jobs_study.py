"""Scenarios: the order of policies, intervals, and the least speed-up at which isolation pays."""

from __future__ import annotations

import numpy as np
import pytest

from studies.mixes import capacity_mix, power_of_two_mix
from topompi.machine.jobs import Cluster, IsolationCheck, simulate
from topompi.machine.jobs.metrics import sharing, summarise
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


@pytest.mark.long
def test_sharing_falls_from_first_available_to_exclusive_as_in_the_literature():
    jobs = power_of_two_mix(np.random.default_rng(1), 1500, 1296)
    found = {
        name: sharing(simulate(jobs, CAB, allocator=name)) for name in ("first", "contiguous", "blocks", "exclusive")
    }
    assert found["first"].partners > found["contiguous"].partners > found["blocks"].partners
    assert found["exclusive"].partners == 0


def test_the_isolated_policy_never_shares_where_the_first_free_nodes_do():
    jobs, watch = capacity_mix(np.random.default_rng(2), 400, 1296, 1.1), IsolationCheck()
    simulate(jobs, CAB, allocator="isolated", observers=[watch])
    assert watch.checks > 100
    assert not watch.found
    assert sharing(simulate(jobs, CAB, allocator="first")).partners > 0


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


def test_a_light_load_waits_for_nothing():
    jobs = capacity_mix(np.random.default_rng(1), 1000, 1296, 0.2)
    assert summarise(simulate(jobs, CAB)).mean_wait < 60
