"""``topompi doctor`` on a machine with an MPI library."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.cli.test_doctor import FABRIC, run
from topompi.cli.setup import doctor as module


def test_the_whole_doctor_finds_this_library_and_no_fault():
    # Another library may have a launcher on the path.
    beside = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = run("doctor", "--json", "--topology", FABRIC, "--hosts", "h[0000-0003]", PATH=beside)
    said = json.loads(done.stdout)
    found = {one["what"]: one for one in said["findings"]}
    assert (done.returncode, said["faults"]) == (0, 0), done.stdout + done.stderr
    assert found["MPI"]["state"] == "ok"
    assert "4 of 4 (--hosts)" in found["hosts"]["says"]


@pytest.mark.parametrize(
    ("library", "says", "state"),
    [
        ("Open MPI v5.0", "mpirun (Open MPI) 5.0", "ok"),
        ("Open MPI v5.0", "HYDRA build", "fault"),
        ("MPICH Version: 5", "HYDRA build", "ok"),
    ],
)
def test_a_launcher_of_another_library_is_a_fault(tmp_path, monkeypatch, library, says, state):
    launcher = tmp_path / "mpirun"
    launcher.write_text(f"#!/bin/sh\necho '{says}'\n")
    launcher.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert module._launcher(library).state == state


def test_a_task_of_srun_without_partners_is_a_fault():
    done = run("doctor", "--json", SLURM_STEP_ID="0", SLURM_STEP_NUM_TASKS="4", SLURM_PROCID="0")
    (fault,) = [one for one in json.loads(done.stdout)["findings"] if (one["what"], one["state"]) == ("MPI", "fault")]
    assert done.returncode == 1
    assert fault["says"].startswith("srun started 4 tasks, and each is an MPI program of one rank")
