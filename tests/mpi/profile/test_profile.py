"""Open MPI's records of real programs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mpi4py import MPI
from typer.testing import CliRunner

from tests.profile.test_profile import edges
from tests.support import ROOT, mpirun
from topompi.cli.app import app
from topompi.mpi.profile import read_profile
from topompi.mpi.profile.recording import View

RING = """
from mpi4py import MPI
import numpy as np
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
out, back = np.zeros(100), np.zeros(100)
for _ in range(3):
    comm.Sendrecv(out, (rank + 1) % size, recvbuf=back, source=(rank - 1) % size)
comm.Alltoall(np.zeros(1000 * size), np.zeros(1000 * size))
"""


def recorded(tmp_path, program, ranks=4):
    """Run a program under the command; its profile."""
    (tmp_path / "program.py").write_text(program)
    command = [*mpirun(), "-n", str(ranks), sys.executable, str(tmp_path / "program.py")]
    options = ["--by", "switch,messages", "-o", str(tmp_path / "run.topoprof")]
    done = CliRunner().invoke(app, ["profile", *options, "--", *command])
    return done, tmp_path / "run.topoprof"


def test_open_mpi_records_a_ring_and_an_alltoall_to_the_byte(tmp_path):
    if "Open MPI" not in library_version():
        pytest.skip("Open MPI's monitoring needs Open MPI")
    done, path = recorded(tmp_path, RING)
    assert done.exit_code == 0, done.output
    found = read_profile(path)
    ring = {(rank, (rank + 1) % 4): (2400, 3) for rank in range(4)}
    assert edges(found.graph("E")) == ring
    everyone = {(one, other): (8000, 1) for one in range(4) for other in range(4) if one != other}
    assert edges(found.graph("I")) == everyone
    assert (found.missing, found.coverage, found.view) == ((), 1.0, View("switch", "messages"))


def test_a_program_that_fails_gives_its_exit_code(tmp_path):
    if "Open MPI" not in library_version():
        pytest.skip("Open MPI's monitoring needs Open MPI")
    done, path = recorded(tmp_path, "import mpi4py.MPI, sys; mpi4py.MPI.Finalize(); sys.exit(3)", 1)
    assert done.exit_code == 3
    assert path.exists()


def library_version():
    from mpi4py import MPI

    return MPI.Get_library_version()


# --- Profiles of whole programs: one in C, a stencil on the hosts of the reference's example, two placements compar


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
