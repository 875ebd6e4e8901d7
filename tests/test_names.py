"""The names that topompi installs on a user's machine: its own, and no others."""

import subprocess
import sys
import zipfile

import pytest

from tests.support import ROOT, run_mpi

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
made = comm.remap(CommunicationGraph.from_matrix(np.ones((2, 2))))
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


def test_a_wheel_installs_two_names(tmp_path):
    """``topompi/schedules`` and ``topompi/mapping`` are links in the repository and folders in the wheel."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip(f"no wheel can be built here: {done.stderr[-200:]}")
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"topompi", "osu_like_bench"}
    assert {"topompi/schedules/registry.py", "topompi/mapping/graph.py", "topompi/py.typed"} <= set(names)
