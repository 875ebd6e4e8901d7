"""Prices of jobs that share nodes."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.poppa.dilation import asleep, dilated
from studies.poppa.jobmodel import Phase, Shutter, simulate
from tests.colocation.estimates.test_estimators import drawn
from tests.support import examples, refusal
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.estimates.estimators import NOTHING, Estimate, estimate
from topompi.machine.colocation.estimates.records import groups_of
from topompi.machine.colocation.prices.billing import bill
from topompi.machine.colocation.prices.rules import RULES, Run, charged_cores, find_factor, price


def known(performance: float, spread: float = 0.0) -> Estimate:
    return Estimate("local", performance, performance - spread, performance + spread, 100, 100)


HALF = Run("a", 200.0, 16, solo_seconds=100.0)


def test_the_worst_price_as_usual_of_the_source_is_its_largest_discount():
    run = Run("a", 162.0, 1, solo_seconds=100.0)
    assert price(run, 1.0, known(1 / 1.62), "as-usual").amount == pytest.approx(162)
    assert round(100 * price(run, 1.0, rule="oracle").discount, 1) == 38.3


@given(st.floats(0.05, 1), st.floats(1e-3, 1e6), st.integers(1, 1000), st.floats(0, 0.3))
@examples(60)
def test_prices_are_in_order_and_the_estimate_of_the_truth_gives_the_oracles(performance, seconds, cores, spread):
    run = Run("a", seconds, cores, solo_seconds=performance * seconds)
    fair, usual, oracle = (price(run, 3.0, known(performance, spread), rule) for rule in RULES)
    assert fair.amount == pytest.approx(oracle.amount)
    assert fair.amount <= fair.undisturbed * (1 + 1e-12) <= usual.amount * (1 + 2e-12)
    assert fair.low <= fair.amount <= fair.high
    assert fair.discount == pytest.approx(1 - performance)


def test_a_job_that_seems_faster_beside_others_pays_no_more_and_its_estimate_is_kept():
    found = price(HALF, 1.0, known(1.2))
    assert found.amount == price(HALF, 1.0).amount == 3200
    assert (found.performance, found.raw) == (1.0, 1.2)


@given(st.floats(1e-3, 1e6), st.integers(1, 1000), st.floats(0, 0.9))
@examples(20)
def test_a_job_without_a_shutter_pays_the_full_price_and_may_have_lost_anything(seconds, cores, stopped):
    run = Run("a", seconds, cores, stopped=stopped)
    found = price(run, 3.0)
    assert found.amount == found.high == price(run, 3.0, rule="as-usual").amount
    assert found.low < 1e-9 * found.amount
    (charged,) = bill([], [run], 3.0)
    assert charged.price == found
    assert "full price" in charged.basis["why"]
    assert (charged.basis["low"], charged.basis["high"], charged.basis["shutters"]) == (0, 1, 0)


def test_the_overhead_of_the_shutter_is_not_charged():
    stopped = asleep(0.0032, 0.2, 2)
    run = Run("a", dilated(100.0, 0.0032, 0.2, 2), 1, stopped=stopped)
    for rule in ("poppa", "as-usual"):
        assert price(run, 1.0, known(1.0), rule).amount == pytest.approx(100)


def test_the_charge_of_a_job_whose_partner_halves_its_speed_is_half_as_measured():
    jobs = [[Phase(1.0, 3.0, 0.5)], [Phase(1.0, aggressiveness=1.0)]]
    found = simulate(jobs, 20, Shutter(pause=0.02), nodes=4, noise=0.01, seed=1)
    estimates = [estimate(groups_of(found.records, name)) for name in "01"]
    charged = price(HALF, 1.0, estimates[0])
    assert charged.amount / 1600 == pytest.approx(0.5, abs=0.01)
    assert charged.low < 800 < charged.high
    assert price(Run("1", 100.0, 1), 1.0, estimates[1]).discount == pytest.approx(0, abs=0.01)


def test_the_mean_discount_is_within_two_points_of_the_oracles_and_prices_as_usual_are_above_one():
    """Prices as shares of the price alone, by the true run time alone, over jobs with phases of 1 to 50 ms."""
    shares: dict[str, list[float]] = {rule: [] for rule in RULES}
    for jobs in (2, 3, 4):
        for milliseconds in (1, 5, 50):
            found = simulate(
                drawn(jobs, milliseconds, 7), max(1, 8 // jobs), Shutter(pause=0.071), nodes=256, noise=0.005
            )
            for job, truth in enumerate(found.performance):
                run = Run(str(job), 1.0, 1, solo_seconds=float(truth))
                one = estimate(groups_of(found.records, run.job))
                for rule in RULES:
                    shares[rule].append(price(run, 1.0, one, rule).amount / truth)
    fair, usual, oracle = (np.array(shares[rule]) for rule in RULES)
    assert abs(fair.mean() - oracle.mean()) < 0.02
    assert np.abs(fair - oracle).max() < 0.08
    assert (usual > 1).all()
    assert (oracle < 1).all()


def test_a_factor_of_a_site_is_a_function(tmp_path: Path, monkeypatch):
    (tmp_path / "site_prices.py").write_text(
        "def steps(solo, shared):\n    return 2.0 if solo / shared > 0.9 else 1.0\n"
        "def flat(solo, shared):\n    return 2.0\n"
        "def rises(solo, shared):\n    return shared / solo\n"
        "def fails(solo, shared):\n    return 1 / 0\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert price(HALF, 9.0, known(0.5), "site_prices:steps").amount == 1.0 * 16 * 100
    assert price(HALF, 9.0, known(0.5), "site_prices:flat").discount == 0
    assert "rise at 0.0625" in refusal(find_factor, "site_prices:rises", error=ColocationError)
    assert "ZeroDivisionError" in refusal(find_factor, "site_prices:fails", error=ColocationError)
    assert "got no module 'no_such_place'" in refusal(find_factor, "no_such_place:f", error=ColocationError)


def test_cores_are_whole_nodes_and_impossible_runs_are_refused():
    assert [charged_cores(cores, 16) for cores in (1, 16, 17)] == [16, 16, 32]
    assert "seconds" in refusal(Run, "a", -1.0, 1, error=ColocationError)
    assert "cores" in refusal(Run, "a", 1.0, 0, error=ColocationError)
    assert "run time alone" in refusal(price, Run("a", 1.0, 1), 1.0, NOTHING, "oracle", error=ColocationError)
