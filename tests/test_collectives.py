"""The communicator under mpirun, at many sizes: the programs in tests/programs do the checking."""

import pytest

from tests.support import ROOT, SIZES, pytest_on_ranks, run_mpi

PROGRAMS = ROOT / "tests" / "programs"


def compare_with_native(size, *roots, timeout=240):
    # -m mpi4py: an exception on one rank ends all of them.
    done = run_mpi(size, "-m", "mpi4py", PROGRAMS / "collectives.py", *roots, timeout=timeout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert ", 0 failures" in done.stdout


@pytest.mark.parametrize("size", [*SIZES, 6, 7])
def test_every_spec_root_and_placement_equals_native(size):
    compare_with_native(size)


def test_some_roots_at_sixteen_ranks_equal_native():
    compare_with_native(16, "0", "5", "15")


@pytest.mark.long
def test_every_root_at_sixteen_ranks_equals_native():
    compare_with_native(16, timeout=600)


@pytest.mark.parametrize("size", SIZES)
def test_lifecycle(size):
    assert "20 passed" in pytest_on_ranks(size, PROGRAMS / "lifecycle.py", timeout=120)
