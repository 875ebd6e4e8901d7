"""Collective calls counted in shared memory, for the shutter."""

from tests.support import run_mpi

PROGRAM = """
import os
import numpy
import topompi
from mpi4py import MPI
from topompi.machine.shutter.holds import Process
from topompi.machine.shutter.sources import SOURCES, UnavailableError

comm = topompi.Intracomm(MPI.COMM_WORLD)
one, all_ = numpy.ones(1), numpy.zeros(1)
for _ in range(3):
    comm.Bcast(one, root=0)
comm.Allreduce(one, all_)
comm.Allreduce(one, recvbuf=all_)
assert all_[0] == comm.size
process = Process.open(os.getpid())
try:
    reader = SOURCES["calls"].open(process)
    print(*reader.read(), topompi.Intracomm.Bcast.__name__)
except UnavailableError as why:
    print(why)
"""


def test_collective_calls_are_counted_and_do_what_they_did(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run_mpi(2, tmp_path / "program.py", env={"TOPOMPI_SHUTTER": "1", "TOPOMPI_TOPOLOGY": ""})
    assert done.stdout.splitlines() == ["5 None Bcast"] * 2, done.stderr


def test_nothing_is_counted_without_the_variable(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run_mpi(2, tmp_path / "program.py", env={"TOPOMPI_TOPOLOGY": ""})
    assert done.stdout.splitlines() == ["the process publishes no counter"] * 2, done.stderr


def test_another_word_is_refused(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run_mpi(1, tmp_path / "program.py", env={"TOPOMPI_SHUTTER": "yes", "TOPOMPI_TOPOLOGY": ""})
    assert "TOPOMPI_SHUTTER: expecting one of 0, 1, got 'yes'" in done.stderr
