"""Drop-in communicators under mpirun, at many sizes, checked by the programs in tests/programs."""

import pytest

from tests.support import ROOT, pytest_on_ranks, run_mpi

PROGRAMS = ROOT / "tests" / "programs"


LIGHT = """
import numpy as np, sys, topompi
from mpi4py import MPI
comm = topompi.Intracomm(MPI.COMM_WORLD)
comm.Bcast(np.zeros(4))
comm.Allreduce(np.zeros(4), np.zeros(4))
plans = {"mapping", "schedules.registry", "mpi.execution.plan", "mpi.communicator.remap.order"}
readers = {"topology.fabric", "inputs.files"}
others = {"bz2", "hashlib", "json", "lzma", "socket", "tarfile", "tempfile", "zipfile"}
print("heavy:", {*others, *(f"topompi.{one}" for one in plans | readers)} & set(sys.modules))
"""


def test_on_one_host_a_program_imports_no_schedules_no_mapping_and_no_readers():
    """All ranks of a job import at once, often from one file system."""
    done = run_mpi(
        2, "-m", "mpi4py", "-c", LIGHT, env={"TOPOMPI_TOPOLOGY": "", "TOPOMPI_HOSTS": "", "TOPOMPI_TUNE": ""}
    )
    assert done.stdout.count("heavy: set()") == 2, done.stdout + done.stderr[-2000:]


@pytest.mark.parametrize("size", [1, 5])
def test_derived_communicators(size):
    assert "passed" in pytest_on_ranks(size, PROGRAMS / "derived.py", timeout=150)


def leaks_nothing(size, cycles, timeout):
    done = run_mpi(size, "-m", "mpi4py", PROGRAMS / "leak.py", cycles, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert ", 0 handles more" in done.stdout


def test_create_use_free_leaks_nothing():
    leaks_nothing(2, 150, timeout=150)


@pytest.mark.exhaustive
def test_ten_thousand_cycles_leak_nothing():
    """The same at length."""
    leaks_nothing(2, 10_000, timeout=1800)
