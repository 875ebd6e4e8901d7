"""The inside of hosts in jobs: levels of bound ranks, and ranks placed by their adapters."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ibreports import default_report, pair
from tests.support import ROOT, mpirun, run_mpi
from tests.topology.test_discover import manifest_of
from tests.topology.test_inside import VERSION_2
from topompi.topology import load
from topompi.topology.inside import ProcessPlace

# --- a job ---------------------------------------------------------------------------------------------------------

BOUND = """
import os
from mpi4py import MPI
import topompi
from topompi.topology.inside import own_place
comm = topompi.Intracomm(MPI.COMM_WORLD)
levels = [(level.name, level.cluster.tolist()) for level in topompi.interface(comm).levels]
cpus = comm.gather(sorted(os.sched_getaffinity(0)))
real = comm.gather(own_place(environment={}).domains)
total = comm.allreduce(comm.rank)
if comm.rank == 0:
    print(repr((levels, cpus, real, total)))
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")
def test_bound_ranks_of_a_job_have_levels_inside_their_host(tmp_path: Path) -> None:
    """On a host of two packages, as hwloc's file says; the system itself says which package and cache each core has."""
    from mpi4py import MPI

    if MPI.get_vendor()[0] == "MPICH":
        pytest.skip("its launcher has other options")
    (tmp_path / "two.xml").write_text(VERSION_2)
    (tmp_path / "bound.py").write_text(BOUND)
    words = [
        *mpirun(),
        "-n",
        "4",
        "--map-by",
        "core:OVERSUBSCRIBE",
        "--bind-to",
        "core:overload-allowed",
        sys.executable,
    ]
    hwloc = {"HWLOC_XMLFILE": str(tmp_path / "two.xml"), "HWLOC_THISSYSTEM": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*words, "bound.py"], cwd=tmp_path, env={**os.environ, **hwloc}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    levels, cpus, real, total = eval(done.stdout)
    assert cpus == [[0], [0], [1], [1]]
    assert levels == [("package", [0, 0, 2, 2])]
    assert [{"package", "NUMA node"} <= set(one) and min(one.values()) >= -1 for one in real] == [True] * 4
    assert total == 6


def test_ranks_are_placed_by_the_guids_of_their_adapters_and_else_by_name(tmp_path: Path) -> None:
    from mpi4py import MPI

    from topompi.mpi.communicator.discovery import RankFacts, _place

    assert MPI.COMM_SELF.size == 1
    (tmp_path / "fabric").write_text(default_report(pair()))
    fabric = load(tmp_path / "fabric").fabric
    left = fabric.adapter_ids[fabric.host_adapters[fabric.host_index["left"]][0]]
    here = ProcessPlace({"package": 0}, (left,)), ProcessPlace({"package": 1, "L3": 4}, (left,)), ProcessPlace({}, ())
    facts = [RankFacts(name, rank, here[rank], None) for rank, name in enumerate(("strange", "strange", "right"))]
    view = _place(facts, str(tmp_path / "fabric"), None)
    assert [view.hosts[host] for host in view.rank_host] == ["left", "left", "right"]
    assert {name: numbers.tolist() for name, numbers in view.domains} == {"package": [0, 1, -1], "L3": [-1, 4, -1]}


# --- Discovery by the ranks of a job of Slurm.


# --- in a job of Slurm ---------------------------------------------------------------------------------------------

RANK = """
import os, sys
from pathlib import Path
import typer
from mpi4py import MPI
from topompi.cli.topology.discover import discover
rank = MPI.COMM_WORLD.rank
name = ("n1", "n2", "n7")[rank]
MPI.Get_processor_name = lambda: name
os.environ["SLURM_TOPOLOGY_ADDR"] = f"core.{'leaf2' if rank == 2 else 'leaf1'}.{name}"
os.environ["SLURM_TOPOLOGY_ADDR_PATTERN"] = "switch.switch.node"
told = os.environ.pop("SLURM_TOPOLOGY_ADDR")
if rank != 1:
    os.environ["SLURM_TOPOLOGY_ADDR"] = told
archive = Path(sys.argv[1])
try:
    discover(archive)
except typer.Exit as end:
    assert end.exit_code == 1 and not archive.exists()
    os.environ["SLURM_TOPOLOGY_ADDR"] = told
    discover(archive)
"""


def test_the_ranks_of_a_job_of_slurm_say_where_they_are(tmp_path: Path) -> None:
    """First one host is silent, which all ranks are told; then each gives its own address."""
    (tmp_path / "rank.py").write_text(RANK)
    done = run_mpi(3, tmp_path / "rank.py", tmp_path / "slurm.tar.xz")
    assert done.returncode == 0, done.stderr
    assert "srun topompi" not in done.stderr  # that is what is being tried
    assert done.stderr.count("expecting SLURM_TOPOLOGY_ADDR on all hosts, got none on n2") == 1
    fabric = load(tmp_path / "slurm.tar.xz").fabric
    assert sorted(fabric.hosts) == ["n1", "n2", "n7"]
    assert sorted(fabric.switch_names) == ["core", "leaf1", "leaf2"]
    assert manifest_of(tmp_path / "slurm.tar.xz")["counts"]["hosts"] == 3
