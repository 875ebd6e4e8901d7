"""``topompi tune``: rows and rules from times, without MPI; then the command, as a user runs it."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import run_mpi
from topompi.execution.specs import NATIVE
from topompi.selection.classes import class_bytes, size_class
from topompi.selection.judging import CLEAR
from topompi.selection.rules import Rules
from topompi.tuning.comparison import compare, floor, is_undecided, rounds_needed, rules_of, winner
from topompi.tuning.measuring import METHODS
from topompi.tuning.record import Measured, RecordError, TuneRecord

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


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    placement = ("--topology", "xgft:2,2;1,1", "--hosts", "h[0000-0003]")
    what = ("alltoall", "bcast", "-m", "1K:2K", "-a", "colouring,levels", "-i", "6")
    files = ("-o", folder / "rules.json", "--record", folder / "record.json")
    return run_mpi(4, "-m", "topompi", "tune", *what, *placement, *files, timeout=120), folder


def test_tune_prints_a_table_and_writes_rules_that_programs_can_read(tuned):
    done, folder = tuned
    assert done.returncode == 0, done.stderr
    assert "virtual placement, 4 ranks on 4 hosts" in done.stdout
    lines = done.stdout.splitlines()
    for method in ("Alltoall", "Bcast"):
        assert any(line.startswith(f"{method} 2,048 bytes") for line in lines)
    assert re.search(r"^ +colouring +[0-9.]+ +[0-9.]+ +\[[0-9.]+, [0-9.]+\]", done.stdout, re.MULTILINE)
    assert re.search(r"^native is not clearly beaten at [0-4] of 4 sizes$", done.stdout, re.MULTILINE)
    rules = Rules.read(folder / "rules.json").rules
    assert {method for rule in rules for method in rule.methods} == {"Alltoall", "Bcast"}
    assert {size_class(int(rule.nbytes[0])) for rule in rules} <= {11, 12}
    assert max(rule.nbytes[1] for rule in rules) == class_bytes(12)[1]


def test_tune_keeps_all_samples(tuned):
    _, folder = tuned
    record = TuneRecord.read(folder / "record.json")
    assert (record.ranks, record.hosts, record.ranks_per_host, record.forced) == (4, 4, (1, 1), {})
    native = [one for one in record.results if one.algorithm == NATIVE]
    assert [(one.method, one.nbytes) for one in native] == [
        (method, nbytes) for method in ("Alltoall", "Bcast") for nbytes in (1024, 2048)
    ]
    assert all(len(one.samples) == 6 and min(one.samples) > 0 for one in native)
    assert {one.algorithm for one in record.results if one.method == "Bcast"} == {NATIVE, "levels"}


def test_cut_names_are_measured_alone_and_too_few_rounds_are_said_before(tmp_path):
    what = ("bcast", "-m", "64K", "-a", "chain/8K,binomial", "-i", "6", "--json", "-o", tmp_path / "rules.json")
    done = run_mpi(2, "-m", "topompi", "tune", *what)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "topompi: 6 rounds are too few to be sure that one of 2 rivals is faster: take -i 7\n"
    found = TuneRecord.parse(done.stdout)
    assert [one.algorithm for one in found.results] == [NATIVE, "binomial", "chain/8K"]
    rules = Rules.read(tmp_path / "rules.json").rules
    assert len(rules) == (not is_undecided(compare(list(found.results))))


def test_what_cannot_be_tuned_is_said_once():
    code = (
        "from topompi.cli.run.tune import tune; import sys\n"
        "for sizes, names, algorithms in ((['alltoal'], '1K', 'all'), (['bcast'], '2K:1K', 'all'), "
        "(['bcast'], '1K', 'bruck'), (['bcast'], '0', 'all'), (['bcast'], '1K', 'binomial/8K')):\n"
        "    try: tune(sizes, names, 6, algorithms)\n"
        "    except Exception as error: assert error.exit_code == 1, error\n"
    )
    done = run_mpi(2, "-c", code)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("topompi: ")]
    assert len(said) == 5
    assert re.match("topompi: expecting collectives of bcast, .* got 'alltoal'", said[0])
    assert said[1] == "topompi: -m: expecting MIN <= MAX, got '2K:1K'"
    assert re.match("topompi: expecting --algorithms of .*, got 'bruck'", said[2])
    assert said[3] == "topompi: -m: expecting a number of bytes such as 64, 8K or 1M, got '0'"
    assert said[4].endswith("got 'binomial/8K': its messages cannot be cut")


def test_every_method_can_be_tuned_and_a_forced_algorithm_is_part_of_the_record():
    forced = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1", "OMPI_MCA_coll_tuned_alltoall_algorithm": "2"}
    options = ("-m", "10", "-a", "native,binomial,ring,chain,node_aware", "-i", "6", "--json")
    done = run_mpi(2, "-m", "topompi", "tune", *(name.lower() for name in METHODS), *options, env=forced)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["forced"] == {"alltoall": "2"}
    sizes = {one["method"]: one["nbytes"] for one in found["results"] if one["algorithm"] == NATIVE}
    whole = {"Reduce": 12, "Allreduce": 12, "Scan": 12, "Exscan": 12, "Reduce_scatter": 16, "Reduce_scatter_block": 16}
    assert sizes == {method: whole.get(method, 10) for method in METHODS}
    ran = {one["method"] for one in found["results"] if one["algorithm"] != NATIVE}
    assert ran == set(METHODS)
