"""``topompi tune`` as a user runs it."""

import json
import os
import re

import pytest

from tests.schedules.test_registry import functions_folder  # noqa: F401 - a fixture
from tests.support import ROOT, run_mpi
from topompi.mpi.execution.specs import NATIVE
from topompi.mpi.selection.classes import class_bytes, size_class
from topompi.mpi.selection.rules import Rules
from topompi.mpi.tuning.comparison import compare, is_undecided
from topompi.mpi.tuning.measuring import METHODS
from topompi.mpi.tuning.record import TuneRecord


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    placement = ("--topology", "xgft:2,2;1,1", "--hosts", "h[0000-0003]")
    what = ("alltoall", "bcast", "-m", "1K:2K", "-a", "colouring,leaders", "-i", "6")
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
    assert {one.algorithm for one in record.results if one.method == "Bcast"} == {NATIVE, "leaders"}


@pytest.mark.long
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
    assert re.match("topompi: expecting --algorithm of .*, got 'bruck'", said[2])
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


# --- Users' functions are tuned against the algorithms of the registry.


def tune(folder, *arguments):
    where = ("--topology", "xgft:2,2;1,1", "--hosts", "h[0000-0003]")
    path = os.pathsep.join((str(ROOT), str(folder)))
    arguments = ("-m", "topompi", "tune", *arguments, *where, "-m", "1K", "-i", "6")
    return run_mpi(4, *arguments, timeout=90, env={"PYTHONPATH": path})


@pytest.mark.long
def test_a_function_is_tuned_against_the_others(folder):
    done = tune(folder, "bcast", "-a", "mine:spread,binomial", "--json")
    assert done.returncode == 0, done.stderr
    names = {result["algorithm"] for result in json.loads(done.stdout)["results"]}
    assert names == {"native", "mine:spread", "binomial"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param(
            "mine:short", "mine:short: end: output block 0 of rank 3 is never written", marks=pytest.mark.long
        ),
        pytest.param(
            "mine:nothing", "mine:nothing: expecting a function 'nothing' in mine, got none", marks=pytest.mark.long
        ),
        pytest.param("a.json", "or a module:function, got 'a.json'", marks=pytest.mark.long),
    ],
)
def test_what_is_wrong_is_not_tuned(folder, name, message):
    done = tune(folder, "bcast", "-a", name)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
