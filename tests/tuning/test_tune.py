"""``topompi tune``: rows and rules from times."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.mpi.execution.specs import NATIVE
from topompi.mpi.selection.judging import CLEAR
from topompi.mpi.selection.rules import Rules
from topompi.mpi.tuning.comparison import compare, floor, is_undecided, rounds_needed, rules_of, winner
from topompi.mpi.tuning.record import Measured, RecordError, TuneRecord

FAST, EVEN, SLOW = (1.0,) * 10, (2.0,) * 10, (3.0,) * 10


def record(results, **changes):
    facts = {
        "name": "a.json",
        "library": "Open MPI 5.0.11",
        "ranks": 8,
        "hosts": 4,
        "ranks_per_host": (2, 2),
        "nodes": ("n1",) * 8,
        "description": "8 ranks on 4 hosts",
        "topology": "0123456789abcdef",
        "forced": {},
        "date": "2026-01-01T00:00:00+00:00",
    }
    return TuneRecord(**{**facts, **changes}, results=tuple(results))


def measured(method, nbytes, **times):
    return [Measured(method, nbytes, algorithm, tuple(samples)) for algorithm, samples in times.items()]


def test_native_comes_first_and_the_fastest_next():
    rows = compare(measured("Alltoall", 8, colouring=SLOW, native=EVEN, tacs1=FAST))
    assert [row.algorithm for row in rows] == [NATIVE, "tacs1", "colouring"]
    assert [row.verdict for row in rows] == ["", "2.00x faster", "1.50x slower"]
    assert winner(rows).algorithm == "tacs1"


def test_the_ratio_is_that_of_times_of_one_round():
    drift = np.linspace(1, 50, 20)  # the machine gets slower: both sides alike
    row = compare(measured("Alltoall", 8, native=1.2 * drift, colouring=drift))[1]
    assert (row.ratio, row.low, row.high) == pytest.approx((1.2, 1.2, 1.2))


def test_an_algorithm_that_was_left_out_early_is_compared_by_its_own_rounds():
    row = compare(measured("Alltoall", 8, native=EVEN, bruck=(40.0, 20.0, 10.0)))[1]
    assert row.ratio == 0.1


@given(st.lists(st.tuples(st.floats(0.5, 2), st.floats(0.5, 2)), min_size=6, max_size=30))
def test_native_keeps_what_is_not_clearly_beaten(pairs):
    native, other = zip(*pairs, strict=True)
    rows = compare(measured("Alltoall", 8, native=native, colouring=other))
    won = winner(rows).algorithm != NATIVE
    assert won == (rows[1].ratio >= CLEAR and rows[1].low > 1)  # of one rival, its interval says all
    assert not won or sum(a > b for a, b in pairs) > len(pairs) / 2


@pytest.mark.long
def test_one_of_many_equal_rivals_is_seldom_taken_for_faster():
    generator, won = np.random.default_rng(1), 0
    for _ in range(100):
        times = {f"a{rival}": 1 + generator.random(20) for rival in range(12)}
        won += winner(compare(measured("Alltoall", 8, native=1 + generator.random(20), **times))).wins
    assert won <= 6


@given(st.integers(1, 1000))
def test_a_rival_that_wins_all_of_the_rounds_needed_wins_and_no_fewer_rounds_can(rivals):
    rounds = rounds_needed(rivals)
    assert [floor(np.full(count, 2.0), 0.025 / rivals) for count in (rounds, rounds - 1)] == [2, 0]


def test_a_gain_that_too_few_rounds_cannot_prove_is_named_and_gets_no_rule():
    others = {f"a{rival}": (4.0,) for rival in range(16)}
    assert rounds_needed(17) == 10
    for rounds, verdict, algorithms in ((9, "4.00x faster, too few rounds", []), (10, "4.00x faster", ["chain"])):
        times = {name: column * rounds for name, column in {"native": (4.0,), "chain": (1.0,), **others}.items()}
        rows = compare(measured("Bcast", 8, **times))
        assert (rows[1].verdict, is_undecided(rows)) == (verdict, not algorithms)
        assert [rule.algorithm for rule in rules_of(record(measured("Bcast", 8, **times))).rules] == algorithms


@examples(40)
@given(
    st.integers(6, 14).flatmap(
        lambda rounds: st.lists(
            st.tuples(
                st.sampled_from((0.5, 0.9, 0.97, 1.0)), st.lists(st.floats(1, 1.3), min_size=rounds, max_size=rounds)
            ),
            min_size=2,
            max_size=20,
        )
    )
)
def test_a_row_that_says_faster_and_no_more_has_a_rule_that_names_one(columns):
    times = {f"a{number}": [scale * one for one in column] for number, (scale, column) in enumerate(columns)}
    results = measured("Bcast", 8, native=times.pop("a0"), **times)
    rows, rules = compare(results), rules_of(record(results)).rules
    assert [rule.algorithm for rule in rules] == ([] if is_undecided(rows) else [winner(rows).algorithm])
    sure = [row.algorithm for row in rows if row.verdict.endswith("faster")]
    assert all(row.doubt for row in rows if " faster, " in row.verdict)
    assert winner(rows).algorithm == (sure or [NATIVE])[0]


def test_rules_cover_the_classes_that_were_measured_and_no_others():
    results = [
        *measured("Alltoall", 1024, native=FAST, colouring=EVEN),
        *measured("Alltoall", 2048, native=EVEN, colouring=FAST),
        *measured("Alltoall", 4096, native=SLOW, colouring=FAST),
        *measured("Alltoall", 16384, native=EVEN, colouring=FAST),
        *measured("Bcast", 64, native=EVEN, chain=EVEN),
    ]
    rules = rules_of(record(results))
    assert [(sorted(rule.methods), rule.nbytes, rule.algorithm) for rule in rules.rules] == [
        (["Alltoall"], (1024, 2047), NATIVE),
        (["Alltoall"], (2048, 8191), "colouring"),
        (["Alltoall"], (16384, 32767), "colouring"),
        (["Bcast"], (64, 127), NATIVE),
    ]
    assert {(rule.ranks, rule.hosts, rule.ranks_per_host) for rule in rules.rules} == {((8, 8), (4, 4), (2, 2))}
    assert {rule.topology for rule in rules.rules} == {"0123456789abcdef"}
    assert rules.rules[1].note == "measured 2.00x to 3.00x faster than native"
    assert Rules.parse(rules.to_json()).rules == rules.rules


def test_a_record_survives_its_file():
    one = record(measured("Alltoall", 8, native=(0.1, 1 / 3), colouring=EVEN), forced={"alltoall": "2"}, name="record")
    assert TuneRecord.parse(one.to_json()) == one


@pytest.mark.parametrize("text", ["", "[]", '{"format": "topompi tune record", "version": 1}', "{}"])
def test_what_is_no_record_is_refused(text):
    with pytest.raises(RecordError, match=r"^f(:1)?: expecting "):
        TuneRecord.parse(text, "f")
