"""The note of a program that srun started as several worlds of one rank."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support import ROOT, run_mpi

PROGRAM = """
from mpi4py import MPI
import topompi
for comm in (MPI.COMM_WORLD, MPI.COMM_SELF, MPI.COMM_WORLD.Dup()):
    topompi.Intracomm(comm)
"""
TASK = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0"}
NOTE = "topompi: srun started 4 tasks, and each is an MPI program of one rank"


def alone(*words: str, **variables: str) -> list[str]:
    """The notes of a program that no launcher starts, and that several communicators are made in."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "TOPOMPI_"))}
    environment = {**inherited, "PYTHONPATH": str(ROOT), **TASK, **variables}
    command = [sys.executable, *(words or ("-c", PROGRAM))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if "srun" in line]


def test_the_first_communicator_says_it_once():
    (line,) = alone()
    assert line.startswith(NOTE)


def test_the_launcher_says_it_too(tmp_path):
    (tmp_path / "app.py").write_text(PROGRAM)
    (line,) = alone("-m", "topompi", str(tmp_path / "app.py"))
    assert line.startswith(NOTE)


@pytest.mark.parametrize("variables", [{"TOPOMPI_FALLBACK": "silent"}, {"SLURM_PROCID": "1"}])
def test_it_can_be_switched_off_and_other_tasks_do_not_say_it(variables):
    assert alone(**variables) == []


@pytest.mark.parametrize("size", [1, 2])
def test_ranks_of_mpirun_under_its_own_daemons_are_not_warned(tmp_path, size):
    """The daemons are tasks of srun, and their ranks have their variables."""
    (tmp_path / "app.py").write_text(PROGRAM)
    done = run_mpi(size, tmp_path / "app.py", env=TASK)
    assert done.returncode == 0, done.stderr
    assert "srun" not in done.stderr
