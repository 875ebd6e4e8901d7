"""Decisions of the shutter: turns, jobs that come and go, limits."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.machine.shutter.decide import (
    JobState,
    NodeSnapshot,
    Shutter,
    ShutterDecision,
    ShutterSettings,
    decide,
    next_shutter,
    pause_of,
)
from topompi.machine.shutter.errors import ShutterError

SETTINGS = ShutterSettings(most_stopped=1.0)
JOBS = st.lists(
    st.builds(JobState, st.integers(0, 20), st.booleans(), st.sampled_from([0.0, 0.5, 0.9968, 0.9969, 2.0])),
    unique_by=lambda job: job.number,
    max_size=8,
)


def turns(jobs, count, last=-1):
    """The jobs that run alone in successive shutters."""
    found = []
    for _ in range(count):
        last = next_shutter(jobs, last, SETTINGS).alone
        found.append(last)
    return found


def test_all_jobs_but_one_pause_and_each_runs_alone_in_turn():
    jobs = [JobState(number) for number in (5, 0, 2)]
    assert next_shutter(jobs, -1, SETTINGS) == Shutter(0, (2, 5))
    assert next_shutter(jobs, 0, SETTINGS) == Shutter(2, (0, 5))
    assert turns(jobs, 6) == [0, 2, 5, 0, 2, 5]


def test_the_turn_goes_on_behind_a_job_that_has_left_and_reaches_one_that_came():
    assert next_shutter([JobState(0), JobState(5)], 2, SETTINGS).alone == 5
    assert next_shutter([JobState(0), JobState(1), JobState(9)], 5, SETTINGS).alone == 9
    assert next_shutter([JobState(0), JobState(1)], 9, SETTINGS).alone == 0


@pytest.mark.parametrize("jobs", [[], [JobState(3)], [JobState(3), JobState(4, is_running=False)]])
def test_one_job_alone_is_never_paused(jobs):
    assert next_shutter(jobs, -1, SETTINGS) is None


def test_a_job_at_its_limit_is_not_stopped_but_may_still_run_alone():
    spent, fresh = JobState(0, stopped=0.9969), JobState(1)
    assert turns([spent, fresh], 3) == [0, 0, 0]
    assert next_shutter([spent, JobState(1, stopped=1.0)], -1, SETTINGS) is None


@given(JOBS, st.integers(-1, 21))
@examples(200)
def test_a_shutter_pauses_every_other_running_job_and_none_beyond_its_limit(jobs, last):
    made = next_shutter(jobs, last, SETTINGS)
    running = {job.number for job in jobs if job.is_running}
    if made is None:
        beyond = {job.number for job in jobs if job.is_running and job.stopped + SETTINGS.region > 1.0}
        assert len(running) < 2 or all(beyond - {number} for number in running)
    else:
        assert {made.alone, *made.paused} == running
        assert made.alone not in made.paused
        assert made.paused
        assert all(job.stopped + SETTINGS.region <= 1.0 for job in jobs if job.number in made.paused)


@given(JOBS, st.integers(-1, 21))
@examples(100)
def test_every_job_has_its_turn_within_one_round(jobs, last):
    fresh = [JobState(job.number) for job in jobs]
    if len(fresh) > 1:
        assert sorted(turns(fresh, len(fresh), last)) == sorted(job.number for job in fresh)


def test_a_shutter_is_due_after_the_pause_and_not_before():
    jobs = (JobState(0), JobState(1))
    assert decide(NodeSnapshot(10.15, 10.0, 0.2, -1, 10.0, jobs), SETTINGS) == ShutterDecision(pytest.approx(0.05))
    assert decide(NodeSnapshot(10.2, 10.0, 0.2, -1, 10.0, jobs), SETTINGS) == ShutterDecision(0.0, Shutter(0, (1,)))
    assert decide(NodeSnapshot(10.2, 10.0, 0.2, -1, 10.0, jobs[:1]), SETTINGS) == ShutterDecision(0.2)


@pytest.mark.parametrize(
    ("warmed", "stopped", "settings", "is_long"),
    [
        (0.0, 0.0, ShutterSettings(), True),
        (0.3, 0.0, ShutterSettings(), False),  # the last long one ended less than ten seconds before
        (0.0, 0.0, ShutterSettings(warm=0), False),
        (0.0, 0.96, SETTINGS, False),  # the other job may stand still for 0.04 s more, and the long one needs 0.0432
        (0.0, 0.95, SETTINGS, True),
    ],
)
def test_a_shutter_is_long_once_in_a_while_if_limits_allow_it(warmed, stopped, settings, is_long):
    found = decide(NodeSnapshot(10.2, 10.0, 0.2, -1, warmed, (JobState(0), JobState(1, True, stopped))), settings)
    assert found.shutter == Shutter(0, (1,), is_long)


def test_pauses_are_exponential_above_the_length_of_a_shutter_with_the_mean_that_was_asked_for():
    drawn = [pause_of((number + 0.5) / 10_000, ShutterSettings()) for number in range(10_000)]
    assert sum(drawn) / len(drawn) == pytest.approx(0.2, rel=1e-3)
    assert pause_of(0.0, ShutterSettings()) == pytest.approx(3 * 10 * 0.00032)
    beyond = [sum(one > 0.0096 + seconds for one in drawn) / 10_000 for seconds in (0.1904, 0.3808)]
    assert beyond == pytest.approx([math.exp(-1), math.exp(-2)], abs=1e-3)


@given(st.floats(0, 1, exclude_max=True), st.floats(1e-4, 1.0), st.integers(1, 20), st.floats(1e-4, 50.0))
@examples(100)
def test_two_shutters_never_touch(drawn, length, repeats, every):
    settings = ShutterSettings(length, every, repeats)
    assert pause_of(drawn, settings) >= min(every / 2, 3 * settings.region) > 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"length": 0},
        {"every": -1},
        {"length": float("nan")},
        {"repeats": 0},
        {"most_stopped": -1},
        {"warm": 60},
        {"warm_every": float("nan")},
    ],
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ShutterError, match="expecting"):
        ShutterSettings(**wrong)
