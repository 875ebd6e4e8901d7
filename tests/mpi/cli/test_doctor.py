"""``topompi doctor`` on a machine with an MPI library."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_doctor import FABRIC, run
from tests.cli.test_export import EVEN, forced, placed
from tests.support import mpirun, run_mpi
from tests.tuning.test_tune import FAST, SLOW, measured
from topompi.cli.setup import doctor as module
from topompi.mpi.tuning.ompi_rules import of_records, write_classic
from topompi.views.coordinates import write_coordinates


def test_the_whole_doctor_finds_this_library_and_no_fault():
    # Another library may have a launcher on the path.
    beside = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = run("doctor", "--json", "--topology", FABRIC, "--hosts", "h[0000-0003]", PATH=beside)
    said = json.loads(done.stdout)
    found = {one["what"]: one for one in said["findings"]}
    assert (done.returncode, said["faults"]) == (0, 0), done.stdout + done.stderr
    assert found["MPI"]["state"] == "ok"
    assert "4 of 4 (--hosts)" in found["hosts"]["says"]


@pytest.mark.parametrize(
    ("library", "says", "state"),
    [
        ("Open MPI v5.0", "mpirun (Open MPI) 5.0", "ok"),
        ("Open MPI v5.0", "HYDRA build", "fault"),
        ("MPICH Version: 5", "HYDRA build", "ok"),
    ],
)
def test_a_launcher_of_another_library_is_a_fault(tmp_path, monkeypatch, library, says, state):
    launcher = tmp_path / "mpirun"
    launcher.write_text(f"#!/bin/sh\necho '{says}'\n")
    launcher.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert module._launcher(library).state == state


def test_a_task_of_srun_without_partners_is_a_fault():
    done = run("doctor", "--json", SLURM_STEP_ID="0", SLURM_STEP_NUM_TASKS="4", SLURM_PROCID="0")
    (fault,) = [one for one in json.loads(done.stdout)["findings"] if (one["what"], one["state"]) == ("MPI", "fault")]
    assert done.returncode == 1
    assert fault["says"].startswith("srun started 4 tasks, and each is an MPI program of one rank")


# --- ``topompi export``: the MPI libraries themselves take what is written.


def test_mpich_takes_the_coordinates(tmp_path):
    if "--allow-run-as-root" in mpirun():
        pytest.skip("this Python runs with Open MPI")
    text = write_coordinates(placed("xgft:2,2;1,1", 1, "block"))
    (tmp_path / "wanted").write_text(text)
    code = f"import os; os.chdir({str(tmp_path)!r}); from mpi4py import MPI"
    env = {"MPIR_CVAR_COORDINATES_FILE": str(tmp_path / "wanted"), "MPIR_CVAR_COORDINATES_DUMP": "1"}
    done = run_mpi(4, "-c", code, env=env)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "coords").read_text().splitlines() == text.splitlines()[1:]


# Which sizes of two collectives their algorithms refuse, in communicators of 3, 4 and 5 ranks.
REFUSED = """
import json, numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
def refused(comm, method, count):
    sent = np.zeros(count * (comm.size if method == "Alltoall" else 1), "u1")
    try:
        getattr(comm, method)(sent, np.empty(count * comm.size, "u1"))
    except MPI.Exception:
        return True
    return False
found = {}
for size in (3, 4, 5):
    comm = world.Split(0 if world.rank < size else MPI.UNDEFINED)
    if comm != MPI.COMM_NULL:
        found[size] = {m: [n for n in (512, 1023, 1024, 2047, 2048, 4095, 4096) if refused(comm, m, n)]
                       for m in ("Alltoall", "Allgather")}
if world.rank == 0:
    print(json.dumps(found))
"""
OTHER = "/usr/bin/mpirun", "/usr/bin/python3"  # of the operating system


@pytest.mark.parametrize("where", ["here", "the operating system's"])
def test_open_mpi_takes_the_rules(where, tmp_path):
    """The algorithms for two ranks (5 of alltoall, 6 of allgather) refuse more: so one sees where a rule applies."""
    fixed = [measured(method, nbytes, native=EVEN) for method in ("Alltoall", "Allgather") for nbytes in (1024, 2048)]
    fast_then_slow = (measured("Allgather", 1024, native=FAST), measured("Allgather", 2048, native=SLOW))
    records = [
        forced(0, *fixed),
        forced(5, measured("Alltoall", 1024, native=SLOW), measured("Alltoall", 2048, native=FAST)),
        forced(6, *fast_then_slow, method="allgather"),
    ]
    (tmp_path / "rules.conf").write_text(write_classic(of_records(records), []))
    env = {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": str(tmp_path / "rules.conf"),
    }
    done = of_this_python(env) if where == "here" else of_the_system(env)
    assert done.returncode == 0, done.stderr
    nothing = {"Alltoall": [], "Allgather": []}
    assert json.loads(done.stdout) == {
        "3": nothing,
        "4": {"Alltoall": [2048, 4095], "Allgather": [1024, 2047]},
        "5": nothing,
    }


def of_this_python(env):
    if "--allow-run-as-root" not in mpirun():
        pytest.skip("this Python runs with MPICH")
    return run_mpi(5, "-c", REFUSED, env=env)


def of_the_system(env):
    """Debian 12 has Open MPI 4.1, Ubuntu 24.04 too."""
    launcher, python = OTHER
    foreign = ("OMPI_", "OPAL_", "PRTE_", "PMIX_", "PYTHON")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    told = [[launcher, "--version"], [python, "-c", "import mpi4py.MPI, numpy"]]
    try:
        version, imported = (subprocess.run(one, capture_output=True, text=True, timeout=60, env=clean) for one in told)
    except OSError:
        pytest.skip("no second MPI here")
    if imported.returncode or "Open MPI" not in version.stdout:
        pytest.skip("the operating system's Python has no mpi4py on Open MPI")
    line = [launcher, "--allow-run-as-root", "--oversubscribe", "-n", "5", python, "-c", REFUSED]
    return subprocess.run(line, capture_output=True, text=True, timeout=60, env={**clean, **env})
