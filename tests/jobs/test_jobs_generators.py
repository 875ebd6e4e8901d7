"""Generators of workloads: their means are those of the sources, and more jobs arrive by day than at night."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma

from topompi.machine.jobs.workload.generate import capacity_mix, lublin_feitelson, power_of_two_mix

DAY = 86_400


def mean_below(most: float, *parts: tuple[float, float, float]) -> float:
    """The mean of e**x for a mixture of gamma distributions (share, shape, scale) of x, drawn again above most."""
    mass = sum(share * gamma.cdf(most, shape, scale=scale) for share, shape, scale in parts)
    whole = (
        share * quad(lambda x, a=a, b=b: np.exp(x) * gamma.pdf(x, a, scale=b), 0, most, points=[a * b], limit=200)[0]
        for share, a, b in parts
    )
    return sum(whole) / mass


@pytest.fixture(scope="module")
def drawn():
    """A hundred thousand jobs of the model of Lublin and Feitelson on its 128 nodes."""
    return lublin_feitelson(np.random.default_rng(1), 100_000, 128)


def test_gaps_between_arrivals_have_the_mean_of_the_authors_program(drawn):
    published = mean_below(13, (1, 10.2303 * 1.0225, 0.4871))
    assert published == pytest.approx(911, abs=1)
    assert np.diff(drawn.submit).mean() == pytest.approx(published, rel=0.03)


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_run_times_have_the_mean_of_the_authors_program_for_each_size(drawn, size):
    first = 0.78 - 0.0054 * size
    published = mean_below(12, (first, 4.2, 0.94), (1 - first, 312, 0.03))
    assert drawn.run[drawn.nodes == size].mean() == pytest.approx(published, rel=0.06)


def test_long_run_times_are_drawn_again_and_not_clipped(drawn):
    assert drawn.run.max() < np.exp(12)
    assert (drawn.run > 0.98 * drawn.run.max()).sum() < 10


def test_sizes_have_the_published_shares(drawn):
    assert (drawn.nodes == 1).mean() == pytest.approx(0.244, abs=0.005)
    above = drawn.nodes[drawn.nodes > 1]
    assert (above & (above - 1) == 0).sum() / len(drawn) > 0.576
    # E(log2 of a parallel size) = (Uprob Ulow + Umed + (1 - Uprob) Uhi) / 2, as the authors' program explains.
    assert np.log2(above).mean() == pytest.approx((0.86 * 0.8 + 4.5 + 0.14 * 7) / 2, abs=0.03)


def test_the_load_on_128_nodes_is_that_of_the_authors_program(drawn):
    load = (drawn.run * drawn.nodes).sum() / (128 * np.ptp(drawn.submit))
    assert load == pytest.approx(0.74, rel=0.03)


@pytest.mark.parametrize("make", [capacity_mix, power_of_two_mix, lublin_feitelson])
def test_most_jobs_arrive_in_the_afternoon_and_fewest_at_night(make):
    jobs = make(np.random.default_rng(1), 40_000, 1296)
    hours = np.bincount(jobs.submit % DAY // 3600, minlength=24)
    assert 12 <= hours.argmax() <= 15
    assert hours[9:18].sum() > 2 * hours[[21, 22, 23, 0, 1, 2, 3, 4, 5]].sum()
    assert hours.argmin() in (23, 0, 1, 2, 3, 4, 5)


def test_the_half_hours_of_lublin_and_feitelson_have_their_weights(drawn):
    half_hours = np.arange(11, 59)
    cumulative = gamma.cdf(np.append(half_hours - 0.5, 58.5), 8.1737, scale=3.9631)
    share = np.diff(cumulative) / np.ptp(cumulative)
    found = np.bincount(drawn.submit % DAY // 1800, minlength=48) / len(drawn)
    assert found[(half_hours - 1) % 48] == pytest.approx(share, abs=0.003)


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


def test_run_times_of_all_jobs_have_the_mean_of_the_authors_program(drawn):
    sizes, counts = np.unique(drawn.nodes, return_counts=True)
    first = 0.78 - 0.0054 * sizes
    means = [mean_below(12, (share, 4.2, 0.94), (1 - share, 312, 0.03)) for share in first]
    assert drawn.run.mean() == pytest.approx(np.average(means, weights=counts), rel=0.01)
