"""Measured trials in simulated calls: the candidate of each call, and the winner."""

from collections import Counter
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topompi.mpi.execution.specs import NATIVE
from topompi.mpi.selection.judging import CLEAR, JOBS_DIFFER, Verdict, judge
from topompi.mpi.selection.trial import (
    AGAIN,
    CONFIRM,
    LONG,
    LONG_CALLS,
    PATIENCE,
    SHORT_CALLS,
    TURNS,
    CallOrder,
    Contest,
    Trial,
    proceed,
)
from topompi.mpi.tuning.comparison import interval

SEARCH = SHORT_CALLS[1:4]  # the stages before the confirming ones


def trial_of(*candidates, **how):
    return Trial(Contest(candidates, **how))


def conducted(trial, seconds):
    """The verdict, and the calls it took, where a call takes what is said of its algorithm and its number from 1 on."""
    calls, numbers = [], Counter()
    while trial.verdict is None:
        name = trial.next()
        if name is None:
            trial.close(trial.times)
            continue
        calls.append(name)
        numbers[name] += 1
        trial.note(seconds(name, numbers[name]))
    return trial.verdict, calls


def run_trial(times, names, seed=0, noise=0.0, unit=1e-3, spikes=0.0, again=False):
    """The verdict on candidates with these true times, and the calls it took."""
    generator = np.random.default_rng(seed)

    def seconds(name, number):
        spike = 5 if generator.random() < spikes else 1
        return unit * times[names.index(name)] * (1 + noise * generator.random()) * spike

    return conducted(trial_of(*names, again=again), seconds)


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=12), st.sampled_from([1e-6, 1e-3, 1.0]))
def test_a_trial_without_noise_finds_the_fastest_and_leaves_native_for_a_clear_gain_only(times, unit):
    names = [NATIVE, *(f"a{number}" for number in range(1, len(times)))]
    verdict, calls = run_trial(times, names, unit=unit)
    best = min(times[1:], default=inf)
    assert verdict.algorithm == (NATIVE if times[0] < CLEAR * best else names[1:][times[1:].index(best)])
    most = 5 * (1 + SEARCH[0].rivals) + 8 * (1 + SEARCH[1].rivals) + 2 * 60 * (1 + SEARCH[2].rivals)
    assert len(calls) <= 4 * len(names) + most
    assert set(calls) == (set(names) if len(names) > 1 else set())


@given(st.floats(0, 100), st.booleans())
def test_rounds_that_take_long_are_fewer_and_never_too_few(seconds, again):
    """Whatever the first round of two candidates took, the second stage has rounds for a second."""
    contest = Contest((NATIVE, "a"), again)
    first = proceed(contest, [])
    then = proceed(contest, [(first, np.full(2, seconds / 2))])
    stage = LONG_CALLS[1] if seconds / 2 >= LONG else AGAIN[1] if again else SHORT_CALLS[1]
    rounds = int((then.order == 0).sum())
    assert stage.fewest <= rounds <= stage.rounds
    assert rounds == stage.fewest or rounds * seconds <= PATIENCE


def test_the_luckiest_of_many_equals_is_seldom_chosen():
    """Twelve rivals in calls that vary by a half: one is always lucky, but not in the last stages too."""
    names = [NATIVE, *(f"a{number}" for number in range(12))]
    wins = sum(run_trial([1] * 13, names, seed, 1.0, unit=1e-3)[0].algorithm != NATIVE for seed in range(300))
    assert wins <= 2


@given(st.floats(0.1, 10), st.sampled_from([1e-6, 1e-3, 1.0]))
def test_what_an_earlier_trial_found_is_looked_at_in_one_stage(native, unit):
    verdict, calls = run_trial([native, 1], [NATIVE, "a"], unit=unit, again=True)
    assert (verdict.algorithm, verdict.rival) == ("a" if native >= CLEAR else NATIVE, "a")
    length = CONFIRM.rounds // TURNS
    assert len(calls) <= 2 * (1 + TURNS * (1 + length))
    if native * unit < PATIENCE / 2 / CONFIRM.rounds:
        of_native, of_rival = (1 + length) * [NATIVE], (1 + length) * ["a"]
        assert calls == [NATIVE, "a", *TURNS // 2 * (of_native + of_rival + of_rival + of_native)]


def test_a_first_call_that_makes_connections_does_not_shorten_the_only_stage():
    trial = trial_of(NATIVE, "a", again=True)
    for seconds in (0.001, 0.04):
        trial.next()
        trial.note(seconds)
    assert trial.next() is None
    trial.close(trial.times)
    assert len(trial.times) == 2 * TURNS * (1 + CONFIRM.rounds // TURNS)


def test_a_gain_that_an_earlier_trial_found_is_found_again_and_a_loss_is_not():
    """In calls that vary by a third, with one of ten that takes five times as long."""

    def wins(native):
        return sum(
            run_trial([native, 1], [NATIVE, "a"], seed, 0.3, spikes=0.1, again=True)[0].algorithm == "a"
            for seed in range(100)
        )

    assert wins(1.25) >= 95
    assert wins(1.0) <= 3
    assert wins(0.9) == 0


@pytest.mark.parametrize("lucky", [1, 2])
def test_a_rival_that_was_lucky_once_is_not_chosen(lucky):
    """What holds for half a second, as other work on some host, is not what holds."""
    contest, history = Contest((NATIVE, "a")), []
    while isinstance(what := proceed(contest, history), CallOrder):
        now_lucky = len(history) < len(SHORT_CALLS) - 1 or lucky == 2
        times = np.where(np.isin(what.order, (0, -1)) | (not now_lucky), 1.0, 0.8) / 1000
        history.append((what, times))
    assert what.algorithm == (NATIVE if lucky == 1 else "a")
    assert len(history) == len(SHORT_CALLS)


def test_a_clear_gain_is_found_in_noise():
    wins = sum(run_trial([1.5, 1, 2], [NATIVE, "a", "b"], seed, 0.3)[0].algorithm == "a" for seed in range(100))
    assert wins >= 95


def test_a_clear_gain_is_found_among_disturbed_calls():
    """One call of five takes five times as long."""

    def wins(times):
        return sum(
            run_trial(times, [NATIVE, "a", "b"], seed, 0.1, spikes=0.2)[0].algorithm == "a" for seed in range(100)
        )

    assert wins([1.2, 1, 1.1]) >= 70
    assert wins([1, 1, 1]) <= 5


@pytest.mark.parametrize(("bad", "winner"), [({1, 2, 3}, "best"), ({1, 2, 4}, "best"), ({3, 4}, "a")])
def test_one_disturbed_look_drops_no_candidate(bad, winner):
    """The third and the fourth call of each, which follow their like, are the looks at who is worth more."""
    names = [NATIVE, *"abcde", "best"]

    def seconds(name, number):
        times = {NATIVE: 1.6, "best": 5.0 if number in bad else 1.0}
        return times.get(name, 1.5) / 1000

    assert conducted(trial_of(*names), seconds)[0].algorithm == winner


def test_a_candidate_that_fails_once_goes_no_further():
    """However quick its other calls are."""

    def seconds(name, number):
        return 0.001 if name == NATIVE else inf if number == 3 else 0.0005

    verdict, calls = conducted(trial_of(NATIVE, "a"), seconds)
    assert (verdict.algorithm, calls.count("a")) == (NATIVE, 4)


def test_turns_are_interleaved_after_a_round_that_does_not_count():
    trial = trial_of(NATIVE, "a", "b")
    assert [trial.next() for _ in range(4)] == [NATIVE, "a", "b", None]
    trial.close(np.array([1, 1, 1.0]) / 1000)
    assert [trial.next() for _ in range(10)] == [*[NATIVE] * 3, *["a"] * 3, *["b"] * 3, None]
    trial.close(np.ones(9) / 1000)
    calls = [trial.next() for _ in range(16)]
    assert calls == [*[NATIVE] * 3, *["a"] * 3, *["b"] * 3, *["b"] * 2, *["a"] * 2, *[NATIVE] * 2, None]


@given(st.integers(0, 2**32 - 1), st.floats(1.1, 4))
def test_a_call_counts_by_what_it_takes_after_its_like(seed, gain):
    """Whatever calls after another candidate's take, in which plans and connections are made: none of them counts."""
    generator, before = np.random.default_rng(seed), [""]

    def seconds(name, number):
        before.append(name)
        if before[-2] != name:
            return LONG * generator.choice([1e-3, generator.random()])
        return 0.001 * gain if name == NATIVE else 0.001

    verdict, _ = conducted(trial_of(NATIVE, "a"), seconds)
    assert verdict == Verdict("a", pytest.approx(gain), 0.001, "a")


@pytest.mark.parametrize(
    ("first", "long"), [([2, 0.5, 0.5, 0.5], False), ([0.5, 2, 2, 2], False), ([2, 2, 2, 1], True)]
)
def test_one_disturbed_first_call_does_not_make_calls_long(first, long):
    """They are where native's and half of the candidates' are; else all are looked at once more."""
    trial = trial_of(NATIVE, "a", "b", "c")
    for seconds in first:
        trial.next()
        trial.note(seconds * LONG)
    assert trial.next() is None
    trial.close(trial.times)
    assert len(list(iter(trial.next, None))) == (LONG_CALLS[1].fewest * 4 if long else 3 * 4)


def test_the_first_round_counts_where_calls_are_long():
    names = [NATIVE, *"abcdefgh"]
    verdict, calls = run_trial([2.0, 1.0, *range(5, 12)], names, unit=1.0)
    assert verdict == Verdict("a", 2.0, 1.0, "a")
    assert len(calls) == len(names) + 2 * LONG_CALLS[1].fewest + 2 * LONG_CALLS[2].fewest


def test_a_steady_gain_is_found_among_long_calls_that_vary():
    """Messages that wait for each other take a tenth more or less, cut ones do not: luck must not win."""
    names = [NATIVE, *"abcdefgh", "steady"]
    found = 0
    for seed in range(100):
        generator = np.random.default_rng(seed)

        def seconds(name, number, generator=generator):
            return 0.5 / 1.15 if name == "steady" else 0.5 * np.exp(0.1 * generator.normal())

        found += conducted(trial_of(*names), seconds)[0].algorithm == "steady"
    assert found >= 70


def test_a_call_without_a_time_loses():
    verdict, _ = run_trial([1.0, inf], [NATIVE, "a"])
    assert verdict.algorithm == NATIVE
    lost = judge([NATIVE, "a"], np.array([[inf] * 8, [inf] * 8]))
    assert lost.algorithm == NATIVE


def test_a_trial_ends_early_where_nothing_rivals_native():
    verdict, calls = run_trial([1.0, 2.1, 3.0], [NATIVE, "a", "b"])
    assert (verdict.algorithm, verdict.rival, len(calls)) == (NATIVE, "a", 3 * (2 + SEARCH[0].rounds))
    verdict, calls = run_trial([1.0, 1.9, 3.0], [NATIVE, "a", "b"])
    assert (verdict.algorithm, verdict.rival, len(calls)) == (
        NATIVE,
        "a",
        3 * (2 + SEARCH[0].rounds) + 2 * (SEARCH[1].rounds + 2),
    )
    verdict, calls = run_trial([1.0, 1.0], [NATIVE, "a"])
    assert (verdict.algorithm, len(calls)) == (NATIVE, 2 * (1 + 3 + 5 + 8))  # no last stage without a clear gain


def test_survivors_are_native_and_the_fastest_that_are_not_hopeless():
    def after(*times):
        """The candidates of the second stage that counts, after a first one with these times."""
        names = (NATIVE, *"abcdefgh"[: len(times) - 1])
        contest, history = Contest(names), []
        for seconds in (np.ones(len(times)), np.array(times)):
            calls = proceed(contest, history)
            history.append((calls, seconds[np.where(calls.order < 0, -1 - calls.order, calls.order)] / 1000))
        what = proceed(contest, history)
        return what.candidates if isinstance(what, CallOrder) else what.algorithm

    assert after(5.0, 9.9, 1.0, 2.0, 3.0, 4.0, 10.1) == (NATIVE, *"bcde")
    assert after(5.0, 9.9, 10.1) == (NATIVE, "a")
    assert after(5.0, 10.1) == NATIVE


def test_a_candidate_that_fails_in_the_last_calls_loses():
    """Although the median of its times is the best, and although it was found the fastest before."""

    def seconds(name, number):
        return 0.001 if name == NATIVE else inf if number == 60 else 0.0005

    assert conducted(trial_of(NATIVE, "a"), seconds)[0].algorithm == NATIVE
    assert conducted(trial_of(NATIVE, "a", again=True), seconds)[0].algorithm == NATIVE


def test_one_lucky_round_is_no_steady_gain():
    native, rival = np.full(8, 1.0), np.full(8, 0.9)
    assert judge([NATIVE, "a"], np.array([native, rival])).algorithm == "a"
    rival[0] = 2
    assert judge([NATIVE, "a"], np.array([native, rival])).algorithm == "a"
    rival[1] = 2
    assert judge([NATIVE, "a"], np.array([native, rival])).algorithm == NATIVE


@pytest.mark.parametrize(("slow_turns", "winner"), [((), "a"), ((1,), "a"), ((1, 4), NATIVE)])
def test_calls_of_a_turn_share_what_they_met_so_that_turns_tell_too(slow_turns, winner):
    """By calls 36 of 54 and 45 of 54 are faster."""
    native, rival = np.full((6, 9), 1.0), np.full((6, 9), 0.8)
    rival[list(slow_turns)] = 1.1
    times = np.array([native.ravel(), rival.ravel()])
    assert judge([NATIVE, "a"], times).algorithm == "a"
    assert judge([NATIVE, "a"], times, turn=9).algorithm == winner


def test_a_trial_counts_turns_in_its_last_stages():
    def seconds(name, number):
        slow_turn = (number - 2) // (1 + CONFIRM.rounds // TURNS) in (1, 4)
        return (1.0 if name == NATIVE else 1.1 if slow_turn else 0.8) / 1000

    verdict, _ = conducted(trial_of(NATIVE, "a", again=True), seconds)
    assert (verdict.algorithm, verdict.ratio) == (NATIVE, pytest.approx(1.25))


def test_the_interval_of_a_median_is_that_of_the_tables():
    # Order statistics for 95 %, as tabulated: 6 to 15 of 20, 1 to 6 of 6.
    assert interval(np.arange(1.0, 21)) == (6, 15)
    assert interval(np.arange(1.0, 7)) == (1, 6)
    assert interval(np.array([3.0, 1, 2])) == (1, 3)


def test_a_trial_begins_with_native():
    with pytest.raises(ValueError, match="native first"):
        Contest(("shift",))


@pytest.mark.parametrize(("looks", "edge"), [(1, 1.262), (2, 1.179), (4, 1.1236), (10, 1.0765)])
def test_a_gain_is_sure_where_the_documentation_says(looks, edge):
    assert Verdict("a", edge + 0.001, 1.0, "a", 1 + looks).sure
    assert not Verdict("a", edge - 0.001, 1.0, "a", 1 + looks).sure
    assert Verdict(NATIVE, edge, 1.0, "a", 1).sure


@given(st.lists(st.floats(1.05, 3), min_size=1, max_size=40))
def test_the_less_a_rival_gains_the_more_jobs_must_tell(gains):
    """Chances by simulation: of jobs that differ as measured, without a gain, one in a hundred has such a mean."""
    found = Verdict("a", gains[0], 1.0, "a")
    for gain in gains[1:]:
        found = found.and_then(Verdict("a", gain, 1.0, "a"))
    assert found.trials == len(gains)
    assert len(gains) > 1 or not found.sure
    later = gains[1:] or gains
    assert found.ratio == pytest.approx(np.exp(np.log(later).mean()))
    by_chance = np.random.default_rng(0).normal(0, JOBS_DIFFER, (4000, len(later))).mean(axis=1)
    rare = (np.exp(by_chance) >= found.ratio).mean()
    if found.sure:
        assert rare <= 0.02
    elif len(gains) > 1:
        assert rare >= 0.004


def test_a_rival_that_failed_is_described():
    assert Verdict("native", 0.0, 1e-6, "ring").describe() == "measured: ring failed in a call"
