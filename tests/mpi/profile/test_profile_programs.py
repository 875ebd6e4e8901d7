"""Profiles of whole programs: one in C, a stencil on the hosts of the reference's example, two placements compared."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mpi4py import MPI
from typer.testing import CliRunner

from tests.support import ROOT, mpirun
from topompi.cli.app import app
from topompi.mpi.profile import read_profile


def test_a_program_in_c_is_recorded_to_the_byte(tmp_path):
    if "Open MPI" not in MPI.Get_library_version():
        pytest.skip("Open MPI's monitoring needs Open MPI")
    beside = Path(sys.executable).parent / "mpicc"
    compiler = str(beside) if beside.exists() else shutil.which("mpicc")
    if compiler is None or shutil.which("gcc") is None:
        pytest.skip("no mpicc with a C compiler is here")
    program = tmp_path / "ring"
    built = subprocess.run(
        [compiler, ROOT / "tests" / "programs" / "ring.c", "-o", program], capture_output=True, text=True, timeout=60
    )
    if built.returncode:
        pytest.skip(f"mpicc builds nothing here: {built.stderr[-200:]}")
    path = tmp_path / "run.topoprof"
    done = CliRunner().invoke(app, ["profile", "-o", str(path), "--", *mpirun(), "-n", "4", str(program)])
    assert done.exit_code == 0, done.output
    found = read_profile(path)
    assert pairs(found.graph("E")) == {(one, (one + 1) % 4): (3, 120) for one in range(4)}
    assert pairs(found.graph("I")) == {(a, b): (1, 800) for a in range(4) for b in range(4) if a != b}


def pairs(graph):
    rows = (graph.sources, graph.targets, graph.messages, graph.volume)
    return {(a, b): (m, v) for a, b, m, v in zip(*(row.tolist() for row in rows), strict=True)}
