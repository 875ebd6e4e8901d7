"""The plan of a measurement of pairs: which runs come next, when they suffice, and what follows from them."""

import math
import random
import statistics
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.measuring.estimating import forecast, speedups_of, spreads_of
from topompi.machine.colocation.measuring.plan import (
    MeasuredRun,
    Segment,
    StoppingRules,
    missing_of,
    next_segment,
    pairs_of,
    programs_of,
)

NAMES = ("a", "b", "c")


def _runs_of(segment: Segment, seconds) -> list[MeasuredRun]:
    """The runs that a segment yields, by a function from program and neighbour to seconds."""
    if len(segment.programs) == 1:
        (name,) = segment.programs
        return [MeasuredRun(segment.pair, segment.block, name, None, seconds(name, None))]
    one, other = segment.programs
    ends = [(one, other), (other, one)]
    return [MeasuredRun(segment.pair, segment.block, name, beside, seconds(name, beside)) for name, beside in ends]


def _measured(pairs, rules, seconds, runs=()) -> list[MeasuredRun]:
    """Follow the plan to its end."""
    made = list(runs)
    while (segment := next_segment(pairs, made, spreads_of(made), rules)) is not None:
        made += _runs_of(segment, seconds)
        assert len(made) < 1000
    return made


@examples(30)
@given(st.integers(1, 4), st.integers(0, 3), st.floats(0, 0.2), st.integers(0, 99))
def test_the_plan_ends_with_every_pair_between_the_least_and_the_largest_number_of_blocks(least, more, noise, seed):
    rng, pairs = random.Random(seed), pairs_of(NAMES)
    runs = _measured(pairs, StoppingRules(least, least + more), lambda *_: rng.lognormvariate(0, noise))
    for pair in pairs:
        assert least <= missing_of(pair, runs)[0].block <= least + more
    assert forecast(pairs, runs, spreads_of(runs), StoppingRules(least, least + more)) == (
        type(forecast(pairs, runs, {}, StoppingRules(least, least + more)))(0, 0.0)
    )


@examples(30)
@given(st.integers(0, 60), st.integers(0, 99))
def test_a_measurement_cut_short_anywhere_goes_on_where_it_was(cut, seed):
    pairs, rules = pairs_of(NAMES[:2]), StoppingRules(2, 2)
    rng = random.Random(seed)
    whole = _measured(pairs, rules, lambda *_: rng.uniform(1, 2))
    kept = whole[: cut % (len(whole) + 1)]
    again = _measured(pairs, rules, lambda *_: 1.0, kept)
    assert again[: len(kept)] == kept
    assert {run[:4] for run in again} == {run[:4] for run in whole}
    assert len(again) <= len(whole) + 1  # the shared segment of which one program had ended runs again


def test_shared_segments_stand_between_solo_segments_of_both_programs_in_turning_order():
    runs, order = list[MeasuredRun](), list[tuple[str, ...]]()
    for _ in range(6):
        segment = next_segment([("a", "b")], runs, {}, StoppingRules(2, 2))
        order.append(segment.programs)
        runs += _runs_of(segment, lambda *_: 1.0)
    assert order == [("a",), ("a", "b"), ("b",), ("b",), ("a", "b"), ("a",)]


def test_the_pair_with_the_widest_interval_is_visited_after_all_have_their_least_number_of_blocks():
    pairs = [("a", "a"), ("a", "b"), ("b", "b")]
    runs = _measured(pairs, StoppingRules(2, 2), lambda *_: 1.0)
    spread = {("a", "a"): 0.05, ("a", "b"): 0.2, ("b", "b"): 0.01}
    assert next_segment(pairs, runs, spread, StoppingRules(2, 9)).pair == ("a", "b")
    assert next_segment(pairs, runs, dict.fromkeys(pairs, 0.01), StoppingRules(2, 9)) is None


@examples(20)
@given(st.floats(0.5, 2), st.integers(0, 99))
def test_speed_ups_are_exact_however_the_machine_drifts_between_blocks(drift, seed):
    """Times are solo time x slow-down x a factor of the block; the factor cancels."""
    rng = np.random.default_rng(seed)
    solo = dict(zip(NAMES, rng.uniform(1, 9, 3), strict=True))
    slow = {(one, other): rng.uniform(1, 2) for one in NAMES for other in NAMES}
    made, pairs, rules = list[MeasuredRun](), pairs_of(NAMES), StoppingRules(3, 3)
    while (segment := next_segment(pairs, made, {}, rules)) is not None:
        factor = 1 + drift * segment.block
        made += _runs_of(
            segment, lambda name, beside, factor=factor: solo[name] * slow.get((name, beside), 1.0) * factor
        )
    found = speedups_of(NAMES, made)
    wanted = [[slow[one, one] / slow[one, other] for other in NAMES] for one in NAMES]
    assert found.ratio == pytest.approx(np.array(wanted))
    assert found.low == pytest.approx(np.array(wanted) + np.diag([math.nan] * 3), nan_ok=True)
    assert found.alone == pytest.approx([slow[one, one] for one in NAMES])


def test_intervals_hold_the_true_speed_up_in_most_measurements():
    held = 0
    for seed in range(40):
        rng, runs = random.Random(seed), list[MeasuredRun]()
        for pair, block in product([("a", "a"), ("a", "b")], range(9)):
            for name in dict.fromkeys(pair):
                segments = [Segment(pair, block, (name,)), Segment(pair, block, pair)]
                runs += [
                    run for one in segments for run in _runs_of(one, lambda *_, rng=rng: rng.lognormvariate(0, 0.03))
                ]
        found = speedups_of("ab", runs)
        held += found.low[0, 1] <= 1 <= found.high[0, 1]
    assert held >= 34


def test_a_smaller_within_and_more_blocks_lead_to_the_wanted_and_to_narrower_intervals():
    pairs, widths = pairs_of(NAMES[:2]), {0.2: list[float](), 0.02: list[float]()}
    for seed in range(6):
        rng, runs = random.Random(seed), list[MeasuredRun]()
        for rules in (
            StoppingRules(3, 5, 0.2),
            StoppingRules(3, 20, 0.02),
        ):  # the second goes on with the runs of the first
            runs = _measured(pairs, rules, lambda *_, rng=rng: rng.lognormvariate(0, 0.03), runs)
            spread = spreads_of(runs)
            assert all(spread[pair] <= rules.within or missing_of(pair, runs)[0].block == rules.most for pair in pairs)
            found = speedups_of(NAMES[:2], runs)
            widths[rules.within].append(float(np.nanmean(found.high - found.low)))
    assert np.mean(widths[0.02]) < 0.8 * np.mean(widths[0.2])


def test_the_forecast_counts_cells_and_seconds():
    rules, pairs = StoppingRules(2, 2), pairs_of(("a", "b"))
    before = forecast(pairs, [], {}, rules)
    assert before.cells == 4
    assert math.isnan(before.seconds)
    times = {"a": 3.0, "b": 5.0}
    runs = [run for part in missing_of(("a", "b"), []) for run in _runs_of(part, lambda name, _: times[name])]
    after = forecast(pairs, runs, spreads_of(runs), rules)
    assert (after.cells, after.seconds) == (4, 2 * (3 + 3) + (3 + 5 + 5) + 2 * (5 + 5))
    assert statistics.median(times.values()) == 4


def test_a_chosen_pair_brings_its_programs_beside_themselves():
    assert pairs_of(NAMES, ["c/a"]) == [("a", "a"), ("a", "c"), ("c", "c")]
    assert len(pairs_of(NAMES)) == 6
    with pytest.raises(ColocationError, match="--only: expecting PROGRAM/PROGRAM with two of a, b, c, got 'a/x'"):
        pairs_of(NAMES, ["a/x"])


def test_programs_are_command_lines_with_or_without_names():
    made = programs_of(["mine=./run 'a b'", "/usr/bin/env X=1 true"])
    assert [tuple(one) for one in made] == [("mine", ("./run", "a b")), ("env", ("/usr/bin/env", "X=1", "true"))]
    for words, message in ((["a=x", "a=y"], "each name once, got 'a' twice"), (["a="], "a command line, got 'a='")):
        with pytest.raises(ColocationError, match=message):
            programs_of(words)
    with pytest.raises(ColocationError, match='expecting a command line, got "a=\'"'):
        programs_of(["a='"])
