"""`topompi jobs simulate` and `compare` with jobs on half nodes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.support import command_line, shared_data
from topompi.cli.app import app
from topompi.machine.jobs.workload import write_batsim
from topompi.machine.jobs.workload.workload import Workload

LOG = """; MaxNodes: 4
1 0  -1 600 2 -1 -1 2 900 -1 1 1 -1 -1 -1 -1 -1 -1
2 10 -1 300 2 -1 -1 2 600 -1 1 2 -1 -1 -1 -1 -1 -1
3 20 -1 200 4 -1 -1 4 -1 -1 1 1 -1 -1 -1 -1 -1 -1
"""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "log.swf").write_text(LOG)
    (tmp_path / "heat.csv").write_text("beside,lu,mg\nlu,1.2,1.1\nmg,1.3,0.8\n")
    return [str(tmp_path / "log.swf"), "--topology", "leaves=2", "--speedups", str(tmp_path / "heat.csv")]


@pytest.mark.parametrize("more", [["-p", "halves"], ["-p", "matched"], ["-p", "halves", "--queue", "filler"]])
def test_a_log_runs_on_half_nodes(files: list[str], more: list[str]) -> None:
    answer = CliRunner().invoke(app, ["jobs", "simulate", *files, *more])
    assert answer.exit_code == 0, answer.output
    assert "4 nodes, 8 slots" in answer.output


def test_policies_on_half_nodes_stand_beside_those_on_whole_nodes(files: list[str]) -> None:
    answer = CliRunner().invoke(app, ["jobs", "simulate", *files, "-p", "first,halves,matched"])
    assert answer.exit_code == 0, answer.output
    assert [line.split()[0] for line in answer.output.splitlines()[3:]] == ["first", "halves", "matched"]


def test_errors_of_the_file_are_one_line(files: list[str], tmp_path: Path) -> None:
    (tmp_path / "heat.csv").write_text("beside,lu,mg\nlu,1.2,x\nmg,1.3,0.8\n")
    answer = CliRunner().invoke(app, ["jobs", "simulate", *files, "-p", "matched"])
    assert "heat.csv: line 2: mg: expecting a positive number, got 'x'" in str(answer.exception)
    answer = CliRunner().invoke(app, ["jobs", "simulate", *files, "-p", "halves", "--slots", "3"])
    assert "--slots 2" in str(answer.exception)


# --- ``topompi jobs worth``: prices over a workload log.


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
