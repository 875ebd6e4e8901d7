"""Misuse and missing files under mpirun, checked by tests/programs/faults.py."""

import pytest

from tests.support import ROOT, pytest_on_ranks, run_mpi

FAULTS = ROOT / "tests" / "programs" / "faults.py"


def test_faults_are_errors_on_all_ranks():
    assert "errors on" in pytest_on_ranks(5, FAULTS)


def test_without_checks_nothing_is_compared():
    """What is not asked for costs nothing: a wrong operation goes to the MPI library, which does not mind."""
    code = (
        "from mpi4py import MPI; import numpy as np; import topompi\n"
        "from topompi.mpi.communicator.handle import lineage_of\n"
        "comm = topompi.Intracomm(MPI.COMM_WORLD)\n"
        "one, other = np.zeros(1), np.zeros(1)\n"
        "comm.Allreduce(one, other, MPI.SUM if comm.rank else MPI.MAX)\n"
        "print('nobody compared', lineage_of(comm).checks)"
    )
    done = run_mpi(2, "-c", code, env={"TOPOMPI_CHECK": "0"})
    assert done.stdout.count("nobody compared 0") == 2, done.stderr[-2000:]


COUNTS = """
import os
rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK"))
if rank == 0:
    os.environ["TOPOMPI_VERBOSE"] = "1"
import numpy as np
from mpi4py import MPI
import topompi
hosts = [f"h000{rank % 2 * 3}" for rank in range(MPI.COMM_WORLD.size)]
place = {place}
comm = topompi.Intracomm(MPI.COMM_WORLD, **place)
for size in [4, 400, 40000, 4] + [70] * 60:
    data, total = np.full(size, 3.0 if rank == 0 else 0.0), np.empty(size)
    comm.Bcast(data)
    comm.Allreduce(np.ones(size), total)
    request = comm.Bcast_init(data)
    request.Start()
    request.Wait()
    request.Free()
    counts = np.full(comm.size, 1)
    every = np.empty(comm.size)
    comm.Allgatherv(np.array([1.0]), [every, counts])
    assert (data == 3).all() and (total == comm.size).all() and (every == 1).all()
print("right", flush=True)
"""


@pytest.mark.parametrize(("place", "tune"), [("{}", ""), ("dict(topology='xgft:2,2,2;1,1,1', hosts=hosts)", "measure")])
def test_calls_that_one_rank_alone_counts_are_chosen_alike(place, tune, tmp_path):
    """Launchers do not always pass variables on to other hosts."""
    env = {"TOPOMPI_TUNE": tune, "TOPOMPI_TOPOLOGY": "", "XDG_CACHE_HOME": str(tmp_path)}
    done = run_mpi(3, "-m", "mpi4py", "-c", COUNTS.replace("{place}", place), env=env, timeout=60)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert done.stdout.count("right") == 3
    assert "operation" in done.stdout + done.stderr


LATE = """
import sys, time
import numpy as np
from mpi4py import MPI
comm, data = MPI.COMM_WORLD, np.zeros(2)
comm.Barrier()
late = comm.rank == comm.size - 1
def wait():
    comm.Barrier()
    if late:
        time.sleep(3.5)
wait()
comm.Bcast(data, root=1)
wait()
comm.allreduce(3)
wait()
comm.Split(0)
wait()
comm.Ialltoall(np.zeros(comm.size), np.zeros(comm.size)).Wait()
comm.Barrier()
if late:
    print("done", flush=True)
"""


def test_ranks_that_wait_for_another_say_where_and_in_which_call(tmp_path):
    """Those that wait say so once a second or two; the one that they wait for says nothing."""
    program = tmp_path / "late.py"
    program.write_text(LATE)
    done = run_mpi(3, "-m", "topompi", "--check=2", program)
    assert done.stdout.count("done") == 1, done.stderr[-2000:]
    lines = [line for line in done.stderr.splitlines() if line.startswith("topompi:")]
    calls = {"Bcast": "Bcast, root 1, bytes 16", "allreduce": "allreduce, operation SUM", "Split": "Split"}
    expected = [
        f"topompi: rank {r} waits in {said} on MPI_COMM_WORLD, rank {r} of 3, at late.py:{number}, for 2 s"
        for name, said in {**calls, "Ialltoall": "Ialltoall"}.items()
        for number, line in enumerate(LATE.splitlines(), 1)
        for r in (0, 1)
        if line.startswith(f"comm.{name}(")
    ]
    assert sorted(lines) == sorted(expected), done.stderr


def test_seconds_of_the_checks_are_checked():
    done = run_mpi(2, "-m", "topompi", "--check=soon", "-c", "from mpi4py import MPI")
    assert "TOPOMPI_CHECK: expecting 0, 1, or seconds up to 1000000, got 'soon'" in done.stderr
