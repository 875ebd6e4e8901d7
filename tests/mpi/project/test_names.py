"""An application's own modules keep the names that topompi's folders have."""

from tests.support import run_mpi

SCRIPT = """
import mapping, network, schedules
assert (mapping.MINE, network.MINE, schedules.MINE) == (1, 1, 1)
import numpy as np
from mpi4py import MPI
import topompi
from topompi.mapping import CommunicationGraph
from topompi.schedules import check, make
comm = topompi.Intracomm(MPI.COMM_WORLD, topology="xgft:2,2,2;1,1,1", hosts=["h0000", "h0004"])
comm.Alltoall(np.ones(2), np.empty(2))
made = topompi.remap(comm, CommunicationGraph.from_matrix(np.ones((2, 2))))
print("fine", made.Get_size())
"""


def test_an_application_may_have_modules_of_our_folders_names(tmp_path):
    for name in ("schedules", "mapping", "network"):
        (tmp_path / f"{name}.py").write_text("MINE = 1\n")
    script = tmp_path / "application.py"
    script.write_text(SCRIPT)
    for command in ([script], ["-m", "topompi", script]):
        done = run_mpi(2, *command, env={"TOPOMPI_RULES": "", "PYTHONPATH": ""}, timeout=90)
        assert done.stdout.count("fine 2") == 2, done.stdout + done.stderr[-2000:]
