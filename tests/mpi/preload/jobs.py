"""Compiled programs of the tests, and jobs that run them natively and through topompi."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import mpi_job
from topompi.mpi.preload import launching

PROGRAMS = Path(__file__).parent / "programs"
# Four hosts of three different distances, of a machine whose links' rates are known.
PLACED = ("--topology", "stampede", "--hosts", "h[0000-0001,0020,0180]")
NATIVE = ("-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])")
OURS = ("-m", "topompi", "run")


def compiled(folder: Path, name: str, *options: str) -> Path:
    """Compile a program of ``programs/`` for the MPI library of this Python; skip the test if that cannot be done."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc")
    if not launching._library():
        pytest.skip("topompi was installed without a C compiler")
    prefix = Path(sys.prefix)
    if not (prefix / "include/mpi.h").exists() or not (prefix / "lib/libmpi.so").exists():
        pytest.skip(f"no mpi.h and libmpi.so under {prefix}")
    made = folder / Path(name).stem.replace(" ", "_")
    places = [f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lmpi"]
    command = [compiler, "-O1", "-w", str(PROGRAMS / name), "-o", str(made), *options, *places]
    subprocess.run(command, check=True, timeout=60)
    return made


def job(size: int, *words: object, timeout: float = 90, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a job of compiled programs; skip nothing, and fail if it does not end in time.

    :param words: ``NATIVE`` or ``OURS`` with options, then the program and its arguments.
    """
    done = mpi_job(size, *map(str, words), timeout=timeout, env={"OMP_NUM_THREADS": "1", **variables})
    if done.returncode == -signal.SIGKILL:
        pytest.fail(f"no end within {timeout} s: {words}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done
