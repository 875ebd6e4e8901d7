"""Misuse and missing files under mpirun: tests/programs/faults.py does the checking."""

import pytest

from tests.support import ROOT, run_mpi

FAULTS = ROOT / "tests" / "programs" / "faults.py"


@pytest.mark.parametrize("size", [2, 5])
def test_faults_are_errors_on_all_ranks(size):
    done = run_mpi(size, "-m", "pytest", "--with-mpi", "-q", FAULTS, timeout=90)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "errors on" in done.stdout


def test_without_checks_nothing_is_compared():
    """What is not asked for costs nothing: a wrong operation goes to the MPI library, which does not mind."""
    code = (
        "from mpi4py import MPI; import numpy as np; import topompi\n"
        "comm = topompi.Intracomm(MPI.COMM_WORLD)\n"
        "one, other = np.zeros(1), np.zeros(1)\n"
        "comm.Allreduce(one, other, MPI.SUM if comm.rank else MPI.MAX)\n"
        "print('nobody compared', comm._checks)"
    )
    done = run_mpi(2, "-c", code, env={"TOPOMPI_CHECK": "0"})
    assert done.stdout.count("nobody compared False") == 2, done.stderr[-2000:]
