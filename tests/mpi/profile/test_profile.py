"""Open MPI's records of real programs."""

import sys

import pytest
from mpi4py import MPI
from typer.testing import CliRunner

from tests.profile.test_profile import edges
from tests.support import mpirun
from topompi.cli.app import app
from topompi.mpi.profile import read_profile
from topompi.mpi.profile.recording import ProfileView

pytestmark = pytest.mark.skipif(
    "Open MPI" not in MPI.Get_library_version(), reason="Open MPI's monitoring needs Open MPI"
)

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
    done, path = recorded(tmp_path, RING)
    assert done.exit_code == 0, done.output
    found = read_profile(path)
    ring = {(rank, (rank + 1) % 4): (2400, 3) for rank in range(4)}
    assert edges(found.graph("E")) == ring
    everyone = {(one, other): (8000, 1) for one in range(4) for other in range(4) if one != other}
    assert edges(found.graph("I")) == everyone
    assert (found.missing, found.coverage, found.view) == ((), 1.0, ProfileView("switch", "messages"))


def test_a_program_that_fails_gives_its_exit_code(tmp_path):
    done, path = recorded(tmp_path, "import mpi4py.MPI, sys; mpi4py.MPI.Finalize(); sys.exit(3)", 1)
    assert done.exit_code == 3
    assert path.exists()
