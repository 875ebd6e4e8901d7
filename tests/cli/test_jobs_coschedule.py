"""`topompi jobs simulate` and `compare` with jobs on half nodes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from topompi.cli.app import app

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
