"""The files that Open MPI's ranks record of a program are read."""

import subprocess
import sys

import pytest

from tests.mapping.test_readers import edges_of, written
from tests.support import ROOT, mpirun
from topompi.mapping.readers import (
    read_graph,
)

RECORDED = """
from mpi4py import MPI
import numpy
comm = MPI.COMM_WORLD
for ahead, nbytes in ((1, 1000), (2, 10)):
    there, back = (comm.rank + ahead) % comm.size, (comm.rank - ahead) % comm.size
    for _ in range(3):
        comm.Sendrecv(numpy.ones(nbytes, 'b'), there, 0, numpy.empty(nbytes, 'b'), back, 0)
"""


def test_a_program_recorded_by_open_mpi_is_read_from_the_files_of_its_ranks(tmp_path):
    command = mpirun()
    if "--oversubscribe" not in command:
        pytest.skip("Open MPI's monitoring needs Open MPI")
    script = written(tmp_path, RECORDED, "ring.py")
    options = ["pml_monitoring_enable 2", "pml_monitoring_enable_output 3", f"pml_monitoring_filename {tmp_path}/run"]
    settings_of = [word for option in options for word in ("--mca", *option.split(" ", 1))]
    done = subprocess.run(
        [*command, *settings_of, "-n", "5", sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    if not (tmp_path / "run.0.prof").exists():
        pytest.skip("this Open MPI was built without its monitoring component")
    graph = read_graph(tmp_path / "run.3.prof")
    sent = {(rank, (rank + ahead) % 5): 3 * size for rank in range(5) for ahead, size in ((1, 1000), (2, 10))}
    found = edges_of(graph)
    assert graph.size == 5
    # The library's own messages (start-up and finish) come on top of the program's.
    assert all(volume <= found[pair] < volume + 500 for pair, volume in sent.items())
    assert edges_of(read_graph(tmp_path / "run.0.prof")) == found
    (tmp_path / "ring.py").unlink()
    assert edges_of(read_graph(tmp_path)) == found
