"""Selection in jobs: the same answer on ranks with different files."""

import json

import pytest

from tests.selection.test_selection import rules_text
from tests.support import run_mpi
from topompi.mpi.execution.specs import NATIVE

PROGRAM = "tests/programs/selection.py"


# --- all ranks -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """The choices of each rank of one job, and the folder of their caches."""
    folder = tmp_path_factory.mktemp("ranks")
    rules = [
        '{"methods": "Alltoall", "bytes": [16384, null], "algorithm": "colouring"}',
        '{"methods": "Bcast", "bytes": [16384, null], "algorithm": "leaders"}',
        '{"collective": "allgather", "algorithm": "ring"}',
    ]
    (folder / "rules.json").write_text(rules_text(*rules))
    done = run_mpi(4, PROGRAM, folder / "rules.json", folder, timeout=90)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), folder


@pytest.mark.parametrize("case", ["rules", "trial", "remembered", "once more", "missing"])
def test_ranks_that_disagree_on_everything_choose_alike(case, ranks):
    rows, _ = ranks
    assert [row[case] for row in rows] == [rows[0][case]] * 4
    assert case == "missing" or rows[0][case]["right"]


def test_rank_0_s_rules_hold_for_all(ranks):
    found = ranks[0][3]["rules"]
    assert found["final"] == {
        "Alltoall 16": "colouring",
        "Bcast 16": "leaders",
        "Alltoall 7": NATIVE,
        "Bcast 7": NATIVE,
    }
    assert found["seen"].count("ring") == 3


def test_a_trial_is_decided_and_remembered_by_rank_0(ranks):
    rows, folder = ranks
    found = rows[3]["trial"]
    assert len(found["final"]) == 4
    assert all(reason.startswith("measured: ") for reason in found["reasons"])
    (kept,) = (folder / "cache0" / "topompi").iterdir()
    decisions = json.loads(kept.read_text())["decisions"]
    once_more = rows[3]["once more"]["final"]
    for name, algorithm in found["final"].items():
        trials = 1 if algorithm == NATIVE else 2
        assert (decisions[name]["trials"], decisions[name]["algorithm"] in (NATIVE, algorithm)) == (trials, True)
        assert once_more[name] in (NATIVE, algorithm)
    assert not any((folder / f"cache{rank}" / "topompi").is_dir() for rank in (1, 2, 3))
    assert rows[3]["remembered"]["final"] == found["final"]
    assert all(reason.endswith("in an earlier trial") for reason in rows[3]["remembered"]["reasons"])


def test_a_rules_file_missing_at_rank_0_is_an_error_on_all_ranks(ranks):
    rows, folder = ranks
    assert rows[2]["missing"] == {"error": f"{folder}/missing: cannot be read: No such file or directory"}


TIMED = """
import os, sys
from mpi4py import MPI
import numpy as np
import topompi, topompi.mpi.execution.timing as timing, topompi.mpi.execution.planning as planparts
events, made, clock = [], planparts._made, timing.perf_counter
planparts._made = lambda *arguments: (events.append("plan"), made(*arguments))[1]
timing.perf_counter = lambda: (events.append("clock"), clock())[1]
comm = topompi.Intracomm(MPI.COMM_WORLD, topology="xgft:2,2,2;1,1,1", hosts=["h0000", "h0004"])
sent, got = np.zeros((2, 4000), "B"), np.zeros((2, 4000), "B")
for _ in range(60):
    comm.Alltoall(sent, got)
inside = [event for number, event in enumerate(events) if event == "plan" and events[:number].count("clock") % 2]
if comm.rank == 0:
    print(events.count("plan"), inside, events.count("clock") > 20)
"""


def test_a_trial_times_calls_and_not_the_making_of_plans(tmp_path):
    done = run_mpi(2, "-c", TIMED, env={"TOPOMPI_TUNE": "measure", "XDG_CACHE_HOME": str(tmp_path)})
    plans, rest = done.stdout.split(" ", 1)
    assert int(plans) > 2, done.stderr
    assert rest == "[] True\n"
