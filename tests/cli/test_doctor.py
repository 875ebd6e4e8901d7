"""``topompi doctor`` and ``topompi doctor --variables``: their findings and exit codes."""

import json
import os
import subprocess
import sys

import pytest

from tests.support import ROOT, command_line
from topompi.cli.setup import doctor as module
from topompi.cli.setup.doctor import examine
from topompi.cli.setup.env import OURS
from topompi.inputs.settings import VARIABLES

FABRIC = "XGFT(2; 4,4; 1,2)"


def run(*words, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TOPOMPI_", "SLURM_"))}
    command = [sys.executable, "-m", "topompi", *words]
    environment |= {"PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, env=environment)


def states(environment, topology=None, hosts=None):
    return {one.what: (one.state, one.says) for one in examine(environment, topology, hosts)}


@pytest.fixture(autouse=True)
def no_tools_are_started(request, monkeypatch):
    if "whole" not in request.node.name:
        monkeypatch.setattr(module, "_mpi", lambda environment: iter(()))
        monkeypatch.setattr(module, "_slurm", lambda environment, routes: iter(()))
        monkeypatch.setattr(module, "_emulation", lambda: module.Finding("emulation", "absent", ""))


def test_the_whole_doctor_says_what_to_do_where_there_is_no_mpi_library(tmp_path):
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").write_text("")
    (tmp_path / "mpi4py" / "MPI.py").write_text('raise RuntimeError("cannot load MPI library")\n')
    done = run("doctor", PYTHONPATH=os.pathsep.join((str(tmp_path), str(ROOT))))
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("fault")]
    assert "cannot load MPI library" in line
    assert "MPI4PY_MPIABI" in line


def test_hosts_that_the_topology_does_not_have_are_a_fault():
    known = states({"SLURM_JOB_NODELIST": "h[0000-0002]"}, FABRIC)
    assert known["hosts"] == ("ok", "3 of 3 (SLURM_JOB_NODELIST) are in it")
    absent = states({"SLURM_JOB_NODELIST": "h0000,x[1-4]"}, FABRIC)["hosts"]
    assert absent[0] == "fault"
    assert absent[1].startswith("4 of 5 (SLURM_JOB_NODELIST) are not in it: x1, x2, x3, ...")
    assert states({}, FABRIC)["hosts"][0] == "absent"  # outside a job this host need not be in it
    assert states({}, "/nowhere")["topology"][0] == "fault"
    assert states({})["topology"][0] == "absent"


def test_wrong_and_unknown_variables_are_faults():
    assert states({"TOPOMPI_TUNE": "off"})["variables"] == ("ok", "TOPOMPI_TUNE=off")
    assert states({"TOPOMPI_TUNE": "sometimes"})["variables"][0] == "fault"
    assert states({"TOPOMPI_ZZZ": "1"})["variables"] == ("fault", "TOPOMPI_ZZZ: topompi has no such variable")


def test_env_lists_every_variable_with_its_value_and_origin():
    done = command_line("doctor", "--variables", "--json", TOPOMPI_TUNE="measure", TOPOMPI_OTHER="x")
    rows = {row["name"]: (row["value"], row["origin"]) for row in json.loads(done.stdout)["variables"]}
    assert set(OURS) == set(VARIABLES) < set(rows)
    assert rows["TOPOMPI_TUNE"] == ("measure", "environment")
    assert rows["TOPOMPI_FALLBACK"] == ("error", "default")
    assert rows["TOPOMPI_OTHER"] == ("x", "unknown")
    wrong = command_line("doctor", "--variables", TOPOMPI_FALLBACK="never")
    assert wrong.returncode == 1
    assert "wrong: TOPOMPI_FALLBACK" in wrong.stdout
