"""Estimators of interference against jobs with phases whose true performance is known."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.poppa.coupled import groups_on_nodes
from studies.poppa.dilation import asleep, dilated
from studies.poppa.jobmodel import Phase, Shutter, simulate
from tests.support import examples, refusal
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.estimates.estimators import METHODS, estimate, filter_bias
from topompi.machine.colocation.estimates.nodes import estimate_nodes, stopped_on
from topompi.machine.colocation.estimates.records import ProgressRates, Records, groups_of, read_records, write_records

STEADY = Phase(1.0, aggressiveness=1.0)


def noisy(truth: float, noise: float, shutters: int = 20_000, seed: int = 1, windows: int = 1) -> ProgressRates:
    rng = np.random.default_rng(seed)
    means = np.array([truth, 1.0, truth])[:, None, None]
    return ProgressRates(means + noise * rng.standard_normal((3, shutters, windows)))


def drawn(jobs: int, milliseconds: float, seed: int) -> list[list[Phase]]:
    """Jobs of a compute phase and a memory phase, which lose 7 to 12 % and 25 to 65 % of their speed."""
    rng = np.random.default_rng(seed)
    share, ms = 1 / (jobs - 1), milliseconds / 1000
    return [
        [
            Phase(ms, 2.0, 0.1, 0.1 * share),
            Phase(ms * rng.uniform(1, 1.5), 0.8, rng.uniform(0.4, 0.7), rng.uniform(0.5, 1) * share),
        ]
        for _ in range(jobs)
    ]


def mean_error(
    jobs: int, milliseconds: float, method: str = "local", windows: int = 16, jitter: float = 0.25, nodes: int = 512
) -> float:
    """Mean absolute error of the run time alone that a method predicts, relative to the true one."""
    found = simulate(
        drawn(jobs, milliseconds, seed=round(10 * milliseconds) + jobs),
        max(1, 8 // jobs),
        Shutter(0.0032, windows, 0.071, jitter),
        nodes=nodes,
        noise=0.005,
    )
    values = [estimate(groups_of(found.records, str(job)), method).performance for job in range(jobs)]
    return float(np.mean(np.abs(np.array(values) / found.performance - 1)))


@pytest.mark.parametrize("jobs", [2, 3, 4, 8])
def test_the_mean_error_with_phases_of_1_to_50_ms_is_at_most_2_percent(jobs):
    errors = {ms: mean_error(jobs, ms) for ms in ((1, 2, 5, 10, 50) if jobs < 8 else (1, 10))}
    assert np.mean(list(errors.values())) <= 0.02, errors
    assert errors[1] <= 0.02, errors


def test_one_window_per_region_and_ratios_of_sums_are_what_bounds_the_source():
    ours = np.mean([mean_error(2, ms) for ms in (1, 5, 10)])
    assert np.mean([mean_error(2, ms, "local", windows=1) for ms in (1, 5, 10)]) > 2 * ours
    assert np.mean([mean_error(2, ms, "filtered", windows=1) for ms in (1, 5, 10)]) > 0.04


@pytest.mark.parametrize(("milliseconds", "method"), [(2, "unfiltered"), (10, "unfiltered"), (100, "balanced")])
def test_with_one_window_per_region_the_estimator_that_errs_less_is_taken(milliseconds, method):
    found = simulate(drawn(2, milliseconds, 3), 4, Shutter(0.0032, 1, 0.071), nodes=128, noise=0.005)
    got = estimate(groups_of(found.records, "0"))
    assert (got.method, bool(got.fallback)) == (method, method == "unfiltered")


def test_equal_pauses_fall_into_step_with_the_jobs():
    assert mean_error(2, 1, "local", jitter=0, nodes=1024) > 0.03
    assert mean_error(2, 1, jitter=0.25, nodes=1024) < 0.01


def test_only_random_pauses_sample_jobs_that_a_shutter_brings_out_of_step_with_each_other():
    errors = []
    for poisson in (False, True):
        found = simulate(drawn(2, 3, 32), 4, Shutter(pause=0.071, poisson=poisson), nodes=512, noise=0.005)
        values = [estimate(groups_of(found.records, job)).performance for job in "01"]
        errors.append(np.abs(np.array(values) / found.performance - 1).max())
    assert errors[0] > 0.08
    assert errors[1] < 0.05


def _disturbed(groups: ProgressRates, slow: float, lost: float, seed: int = 0) -> ProgressRates:
    """Windows as on real cores: the first one after a stop or a resumption is slow, and some lose the core."""
    rng = np.random.default_rng(seed)
    rates = groups.rates.copy()
    rates[:, :, 0] *= np.array([1 - slow / 2, 1 - slow, 1 - 2 * slow])[:, None]
    return ProgressRates(np.where(rng.random(rates.shape) < lost, rates * rng.random(rates.shape), rates))


@pytest.mark.parametrize(("slow", "lost"), [(0.0, 0.0), (0.03, 0.01), (0.04, 0.05)])
@pytest.mark.parametrize("milliseconds", [1, 5, 50])
def test_cold_windows_and_windows_without_a_core_hardly_move_the_default(milliseconds, slow, lost):
    found = simulate(drawn(2, milliseconds, 7), 4, Shutter(0.0032, 16, 0.071), nodes=512, noise=0.005)
    for job, truth in enumerate(found.performance):
        groups = _disturbed(groups_of(found.records, str(job)), slow, lost)
        assert estimate(groups).performance == pytest.approx(truth, abs=0.025)
        if lost == 0.05:
            assert estimate(groups, "local").performance > truth + 0.1


def test_a_partner_that_halves_the_speed_gives_performance_one_half():
    found = simulate([[Phase(1.0, 3.0, 0.5, 0.0)], [STEADY]], 20, Shutter(pause=0.02), nodes=4)
    assert found.performance == pytest.approx([0.5, 1])
    for method in METHODS:
        victim = estimate(groups_of(found.records, "0"), method)
        assert (victim.performance, victim.degradation, victim.dilation) == pytest.approx((0.5, 0.5, 2)), method


def test_long_steady_phases_have_the_performance_of_their_times():
    # Alone 1 s each; beside the partner 1 s and 2 s: T_solo / T_co = 2 / 3, where a ratio of sums gives 5 / 6.
    phases = [Phase(1.0, 2.0), Phase(1.0, 0.5, 0.5)]
    found = simulate([phases, [STEADY]], 4, Shutter(pause=0.3), nodes=2000)
    groups = groups_of(found.records, "0")
    assert found.performance[0] == pytest.approx(2 / 3, abs=0.01)
    assert estimate(groups, "local").performance == pytest.approx(2 / 3, abs=0.01)
    assert estimate(groups, "unfiltered").performance == pytest.approx(5 / 6, abs=0.015)


@pytest.mark.parametrize("method", ["local", "unfiltered", "filtered"])
@pytest.mark.parametrize("noise", [0.005, 0.01, 0.02])
def test_without_interference_the_bias_is_below_half_a_percent(method, noise):
    assert abs(estimate(noisy(1.0, noise), method).performance - 1) < 0.005


@pytest.mark.parametrize(("noise", "found"), [(0.005, 0.994), (0.01, 0.987), (0.02, 0.975), (0.05, 0.946)])
def test_the_bias_of_the_filter_is_the_published_one(noise, found):
    assert 1 + filter_bias(1.0, noise) == pytest.approx(found, abs=0.0015)
    literal = estimate(noisy(1.0, noise), "filtered", correct=False)
    assert literal.performance == pytest.approx(found, abs=0.0015)
    assert literal.bias == pytest.approx(found - 1, abs=0.006)
    assert 0.15 < literal.kept / literal.total < 0.4


def test_at_ten_percent_of_interference_the_filter_has_no_bias():
    assert abs(filter_bias(0.9, 0.02)) < 0.002


def test_too_few_groups_fall_back_and_the_result_says_so():
    rates = np.ones((3, 40, 1))
    rates[0, :37] = 0.5  # phase boundaries
    found = estimate(ProgressRates(rates), "filtered")
    assert (found.method, found.total) == ("unfiltered", 40)
    assert found.fallback == "0 of 40 shutters pass filtered: unfiltered"
    nothing = estimate(ProgressRates(np.empty((3, 0, 1))))
    assert (nothing.performance, nothing.low, nothing.high) == (1, 0, 1)
    assert "nothing is known" in nothing.doubt


@given(st.floats(1e-3, 1e9), st.floats(0.3, 1.0), st.sampled_from(sorted(METHODS)))
@examples(30)
def test_the_unit_of_the_rate_does_not_matter(unit, truth, method):
    groups = noisy(truth, 0.01, 200)
    scaled = estimate(ProgressRates(groups.rates * unit), method)
    assert scaled.performance == pytest.approx(estimate(groups, method).performance, rel=1e-9)


@given(st.permutations(range(48)))
@examples(20)
def test_the_order_of_the_lines_does_not_matter(order):
    rows = [
        (region, "a", rank, t + at + window / 2, t + at + window / 2 + 0.5, 10.0 * rank + at + t + window)
        for t in (0, 100, 200, 300)
        for at, region in enumerate(("before", "during", "after"))
        for window in (0, 1)
        for rank in (0, 1)
    ]
    straight, mixed = (groups_of(Records.of(one), "a").rates for one in (rows, [rows[at] for at in order]))
    assert np.array_equal(straight, mixed)
    assert straight[1, 1].tolist() == [101 + 111, 102 + 112]  # per second, of two ranks in two windows of 0.5 s


def test_shutters_of_other_jobs_do_not_count_and_broken_ones_are_dropped():
    rows = [("before", "a", 0, 0.0, 1.0, 1.0), ("after", "a", 0, 2.0, 3.0, 3.0)]
    rows += [
        ("before", "a", 0, 10.0, 11.0, 1.0),
        ("during", "a", 0, 11.0, 12.0, 4.0),
        ("after", "a", 0, 12.0, 13.0, 1.0),
    ]
    rows += [("before", "a", 0, 20.0, 21.0, 1.0), ("during", "a", 0, 21.0, 22.0, 9.0)]  # the daemon ended here
    groups = groups_of(Records.of(rows), "a")
    assert groups.alone.tolist() == [False, True]
    assert groups.dropped == 1
    assert estimate(groups, "unfiltered").performance == (1 / 4)


def test_the_time_in_which_others_stopped_a_job_is_that_of_the_model_and_of_equation_9():
    found = simulate([[STEADY]] * 3, 50, Shutter(0.0032, 4, 0.2, jitter=0), nodes=1)
    for job, stopped in zip("012", found.stopped, strict=True):
        assert groups_of(found.records, job).stopped == pytest.approx(stopped, rel=0.02)
        assert stopped == pytest.approx(asleep(0.0032, 0.2, 3))


def test_with_cycles_rates_are_per_cycle_and_the_limit_of_the_filter_is_absolute():
    rows = [
        (region, "a", 0, t + at, t + at + 1, delta, 1000.0)
        for t in range(0, 400, 10)
        for at, (region, delta) in enumerate((("before", 100.0), ("during", 200.0), ("after", 120.0)))
    ]
    groups = groups_of(Records.of(rows), "a")
    assert groups.rates[:, 0, 0].tolist() == [0.1, 0.2, 0.12]
    assert estimate(groups, "filtered").kept == 40  # 0.02 is less than 0.05
    assert estimate(groups, "filtered", absolute=False).method == "unfiltered"  # 0.02 is a tenth of 0.2


def test_a_log_is_read_as_it_was_written_and_without_a_torn_last_line(tmp_path: Path):
    path = tmp_path / "log"
    records = simulate([[STEADY], [STEADY]], 2, Shutter(windows=2), nodes=1).records
    write_records(path, records)
    with path.open("a") as stream:
        stream.write('{"event": "joined"}\n["befo')
    again = read_records(path)
    for name in ("region", "job", "rank", "start", "end", "delta", "base"):
        np.testing.assert_array_equal(getattr(again, name), getattr(records, name), name)


def test_a_log_that_was_continued_after_a_restart_of_the_node_has_one_time(tmp_path: Path):
    path = tmp_path / "log"
    records = simulate([[Phase(1.0, 3.0, 0.5)], [STEADY]], 3, nodes=1).records
    write_records(path, records)
    text = path.read_text()
    lines = [json.loads(line) for line in text.splitlines()[1:]]
    later = [[*line[:3], line[3] + 1e6, line[4] + 1e6, *line[5:]] for line in lines]  # a node that ran for 12 days
    path.write_text(text[: text.index("\n") + 1] + "".join(json.dumps(line) + "\n" for line in (*later, *lines)))
    groups = groups_of(read_records(path), "0")
    assert groups.alone.tolist() == [True, False] * 6
    assert estimate(groups).performance == pytest.approx(0.5)
    assert 0.005 < groups.stopped < 0.009


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("[1", "JSON"),
        ('["before", 1]', "[region, job"),
        (json.dumps(["after", "a", 0, 0, "x", 1]), "t1: expecting a number, got 'x'"),
        (json.dumps(["durng", "a", 0, 0, 1, 1]), "region: expecting one of before, during"),
        (json.dumps(["during", "a", 0, 0, 1, None]), "delta: expecting a number, got None"),
        (json.dumps(["during", "a", 0, 2, 1, 5]), "t1: expecting a time after 2, got 1"),
        (json.dumps(["during", "", 0, 0, 1, 5]), "job: expecting a name"),
        (json.dumps(["during", 7, 0, 0, 1, 5]), "job: expecting a name, got 7"),
        (json.dumps(["during", "a", 1.5, 0, 1, 5]), "rank: expecting a whole number from 0, got 1.5"),
        ('["during", "a", 0, 0, 1, 5, NaN]', "expecting JSON, got NaN"),
        ('["during", "a", 0, 0, 1, 1e400]', "delta: expecting a number, got inf"),
        ('{"region": "during"}', "[region"),
        ("7", "[region"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line, told):
    path = tmp_path / "log"
    path.write_text('{"format": "topompi shutter log", "version": 1}\n' + line + "\n")
    message = refusal(read_records, path, error=ColocationError)
    assert f"{path}:2: " in message
    assert told in message
    path.write_text('{"format": "topompi shutter log", "version": 2}\n')
    assert f"{path}:1: " in refusal(read_records, path, error=ColocationError)


@pytest.mark.parametrize(
    ("microseconds", "percent"),
    [(200, 0.05), (400, 0.10), (800, 0.20), (1600, 0.39), (3200, 0.763), (6400, 1.46), (12800, 2.68), (25600, 4.62),
     (51200, 7.24), (102400, 10.1), (204800, 12.6), (409600, 14.3)],
)  # fmt: skip
def test_equation_9_has_the_digits_of_the_table(microseconds, percent):
    digits = len(str(percent).partition(".")[2])
    assert round(100 * asleep(microseconds / 1e6, 0.2), max(2, digits) if percent < 10 else 1) == percent


def test_equation_10_agrees_with_equation_9():
    s, p, n = 0.0032, 0.2, 2
    assert round(dilated(1, s, p), 4) == 1.0077
    assert dilated(7, s, p) == pytest.approx(7 * n * (3 * s + p) / (2 * n * s + n * p + s))
    assert dilated(1, 1e9, p) == pytest.approx(1.2)


def on_each_node(milliseconds: float, rounds: int, nodes: int = 60) -> tuple[list[ProgressRates], float]:
    """Rates of a job on many independent nodes, as logs of their own, and its true performance."""
    shutter = Shutter(pause=0.05, poisson=True)
    found = simulate(drawn(2, milliseconds, 3), rounds, shutter, nodes=nodes, noise=0.005)
    groups = groups_of(found.records, "0")
    parts = np.split(groups.rates, nodes, axis=1)
    return [ProgressRates(part) for part in parts], float(found.performance[0])


@pytest.mark.parametrize("method", ["local", "unfiltered"])
@pytest.mark.parametrize("shutters", [8, 20, 100])
def test_the_interval_covers_the_truth_as_often_as_it_says_under_noise(method, shutters):
    found = [estimate(noisy(0.8, 0.02, shutters, seed), method) for seed in range(150)]
    assert np.mean([one.low <= 0.8 <= one.high for one in found]) >= 0.91  # 0.95 less two standard errors
    assert estimate(noisy(0.8, 0.1), seed=3) == estimate(noisy(0.8, 0.1), seed=3)


@pytest.mark.long
@pytest.mark.parametrize("milliseconds", [1, 50, 500])
def test_the_interval_covers_the_truth_of_jobs_whose_shutters_are_correlated_by_their_phases(milliseconds):
    logs, truth = on_each_node(milliseconds, 60)
    found = [estimate(one) for one in logs]
    assert np.mean([one.low <= truth <= one.high for one in found]) >= 0.89  # of 60 logs


# --- The performance of jobs on several nodes.


@pytest.mark.parametrize("step", [0.001, 0.005, 0.05, 0.5])
@pytest.mark.parametrize("speeds", [(0.5, 1), (0.5, 0.7), (0.6, 0.6), (0.5, 0.7, 0.9, 1), (0.8, 0.8, 0.8, 1)])
def test_the_slowest_node_has_the_performance_of_the_job(speeds, step):
    nodes = groups_on_nodes(speeds, step)
    assert estimate_nodes(nodes).performance == pytest.approx(min(speeds), rel=0.04)


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
