"""The comparison of outcomes of other projects' packages; `make test-strangers` runs the packages themselves."""

import json
from dataclasses import replace

import pytest

from tests.strangers import report
from tests.strangers.outcomes import reason, recorded
from tests.strangers.packages import Package, Suite
from tests.support import ROOT

PAGE = ROOT / "docs" / "strangers.md"
PROGRAMS = ROOT / "tests" / "strangers" / "programs"
PACKAGE = Package("some", ("openmpi",), (Suite("tests", ("tests",)), Suite("run.py", ("run.py",), takes=("Bcast",))))


def results(mode, ours, schedules=(), program=("status", "printed")):
    """Results of PACKAGE natively and in a mode, where its test had these outcomes on three ranks."""
    lines = {"status": ["0"], "printed": ["1 x"]}
    run = {"schedules": {one: ["ring"] for one in schedules}, "seconds": 1.0, "said": ""}
    native = {
        "tests, 3 ranks": {"outcomes": {"t": ["passed"] * 3}, **run},
        "run.py, 3 ranks": {"outcomes": lines, **run},
    }
    now = {
        "tests, 3 ranks": {"outcomes": {"t": list(ours)}, **run},
        "run.py, 3 ranks": {"outcomes": {one: lines[one] for one in program}, **run},
    }
    return {"version": "1.2", "mpi": "Open MPI 5.0.11", "mpi4py": "4.1.2", "modes": {"native": native, mode: now}}


def test_a_rank_that_did_not_come_to_a_test_is_absent_and_one_that_hangs_in_it_has_begun(tmp_path):
    lines = [["a", "begun", ""], ["a", "passed", ""], ["b", "begun", ""]]
    (tmp_path / "0").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "2").write_text(json.dumps(lines[0]) + "\n" + json.dumps(["a", "failed", "why"]) + "\n")
    assert recorded(tmp_path, 3) == {"a": ["passed", "absent", "failed"], "b": ["begun", "absent", "absent"]}


def test_a_forced_schedule_has_to_run():
    forced = replace(
        PACKAGE, suites=(PACKAGE.suites[0], replace(PACKAGE.suites[1], takes=(), forced={"Bcast": "ring"}))
    )
    given = results("schedules", ["passed"] * 3, schedules=("Bcast",))
    assert report.verdicts(given, forced, {}) == (2, [])
    for ran, said in (
        ({"Bcast": ["chain", "leaders"]}, "Bcast ran chain, leaders, not ring"),
        ({}, "Bcast ran no schedule"),
    ):
        given["modes"]["schedules"]["run.py, 3 ranks"]["schedules"] = ran
        assert said in report.verdicts(given, forced, {})[1][0]


PRINTED = """\
noise
topompi: 4 ranks on 1 host, topology from hosts only; rank 0's collective calls, median times (calls between two ...)
operation  bytes each  calls  bytes  algorithm        predicted  measured  why
Allgather  8-15        1      8      -                -          -         no rule for it
Allreduce  8-15        1      8      ring             -          4.1 us    a rule  names it
Allreduce  8-15        2      16     native           9.5 us     4.0 us    a rule names it
Allreduce  512-1023    3      2,700  tree/2K          -          -         a rule names it
Bcast      8-15        1      8      native: refused  -          4.1 us    the buffer is not contiguous
Scatter    8-15        1      8      native           -          4.1 us    a rule names it
noise
"""


@pytest.mark.parametrize(
    ("given", "good", "said"),
    [
        (results("virtual", ["passed"] * 3), 2, ""),
        (
            results("virtual", ["passed", "failed", "passed"]),
            1,
            "t: natively passed passed passed, now passed failed passed",
        ),
        (results("virtual", ["passed"] * 3, program=("status",)), 1, "printed: natively 1 x, now absent"),
        (results("schedules", ["passed"] * 3), 1, "Bcast ran no schedule"),
        (results("schedules", ["passed"] * 3, schedules=("Bcast",)), 2, ""),
    ],
)
def test_what_differs_from_native_without_a_reason_is_told(given, good, said):
    passed, told = report.verdicts(given, PACKAGE, {})
    assert passed == good
    assert said in "".join(told)
    assert len(told) == 2 - good


def test_a_named_difference_is_not_told_and_only_in_its_own_package():
    given = results("virtual", ["failed"] * 3)
    assert report.verdicts(given, PACKAGE, {"some: t": "why"}) == (2, [])
    assert report.verdicts(given, PACKAGE, {"other: t": "why", "some: ": "why"})[0] == 1
    assert reason({"some: .*": "why"}, "some", "t") == "why"


def test_a_suite_in_which_nothing_passes_natively_is_none_to_compare_with():
    given = results("virtual", ["failed"] * 3)
    given["modes"]["native"] = given["modes"]["virtual"]
    assert "native, tests, 3 ranks: expecting some to pass" in report.verdicts(given, PACKAGE, {})[1][0]
