"""``topompi jobs worth``: prices over a workload log."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support import command_line, shared_data
from topompi.machine.jobs.workload import write_batsim
from topompi.machine.jobs.workload.workload import Workload

CSV = "application,calm,loud\ncalm,1.0,0.5\nloud,1.0,0.8\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two jobs of two programs on four nodes, and their speed-ups."""
    found = tmp_path_factory.mktemp("worth")
    jobs = Workload.of(
        "two", submit=[0, 0], run=[100, 100], nodes=[2, 2], columns={"program": np.array(["calm", "loud"], object)}
    )
    write_batsim(jobs, found / "log.json", 4)
    (found / "heat.csv").write_text(CSV)
    return found


def test_the_table_and_the_json_have_the_prices_of_a_victim_and_its_aggressor(folder: Path):
    words = ("jobs", "worth", "log.json", "--speedups", "heat.csv", "--cores", 1, "--program", "program")
    told = json.loads(command_line(*words, "--set", "error=0", "--rate", 36, "--json", folder=folder).stdout)
    calm, loud = told["jobs"]
    assert (calm["program"], calm["seconds"], calm["solo_seconds"]) == ("calm", 150, 100)
    assert (calm["as-usual"], calm["poppa"], loud["as-usual"]) == pytest.approx((3, 4 / 3, 2))
    assert told["rules"][1]["factor_as_usual"] == pytest.approx(5 / (4 / 3 + 2))
    done = command_line(*words, "--draw", "out.svg", folder=folder, COLUMNS="160")
    assert [line.split()[0] for line in done.stdout.splitlines()[2:7]] == [
        "rule",
        "as-usual",
        "poppa",
        "oracle",
        "program",
    ]
    assert done.stdout.splitlines()[-1].split()[-1] == "aggressor"
    assert "aggressors" in (folder / "out.svg").read_text()


def test_a_published_log_and_matrix_give_prices_in_order():
    log, heat = shared_data("workloads/SDSC-SP2-1998-4.2-cln.swf.gz"), shared_data("colocation/marconi-speedups.csv")
    done = command_line("jobs", "worth", log, "--speedups", heat, "--first", 500, "--json")
    usual, poppa, oracle = json.loads(done.stdout)["rules"]
    assert usual["mean"] > 1 > poppa["mean"]
    assert poppa["mean"] == pytest.approx(oracle["mean"], abs=0.005)
    assert usual["sum"] > oracle["sum"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--speedups", "drawn:x"), "--speedups: expecting drawn:PROGRAMS:SEED"),
        (("--speedups", "heat.csv", "--program", "wrong"), "expecting a column"),
        (("--speedups", "heat.csv", "--nodes", 1), "nodes: expecting at most the machine's 1, got 2"),
        (("--speedups", "heat.csv", "--draw", "a.pdf"), "--draw: expecting"),
    ],
)
def test_errors_have_one_line(folder: Path, words, error):
    done = command_line("jobs", "worth", "log.json", *words, folder=folder)
    assert done.returncode == 1
    assert error in done.stderr
    assert len(done.stderr.splitlines()) == 1
