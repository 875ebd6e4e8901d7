"""The communicator under mpirun, at many sizes: the programs in tests/programs do the checking."""

import pytest

from tests.support import ROOT, SIZES, run_mpi

PROGRAMS = ROOT / "tests" / "programs"
pytestmark = pytest.mark.mpi


def run_program(size, name, *args, timeout=120):
    # -m mpi4py: an exception on one rank ends all of them.
    done = run_mpi(size, "-m", "mpi4py", PROGRAMS / name, *args, timeout=timeout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("size", (*SIZES, 6, 7))
def test_every_spec_root_and_placement_equals_native(size):
    assert ", 0 failures" in run_program(size, "collectives.py", timeout=240)


def test_some_roots_at_sixteen_ranks_equal_native():
    assert ", 0 failures" in run_program(16, "collectives.py", "0", "5", "15", timeout=240)


@pytest.mark.parametrize("size", SIZES)
def test_lifecycle(size):
    assert "checks passed" in run_program(size, "lifecycle.py")
