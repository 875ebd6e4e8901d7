"""The inside of hosts in jobs: levels of bound ranks, and ranks placed by their adapters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ibreports import default_report, pair
from tests.support import ROOT, mpirun
from tests.topology.test_inside import VERSION_2
from topompi.topology import load
from topompi.topology.inside import Place

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

    from topompi.mpi.communicator.discovery import Facts, _place

    assert MPI.COMM_SELF.size == 1
    (tmp_path / "fabric").write_text(default_report(pair()))
    fabric = load(tmp_path / "fabric").fabric
    left = fabric.adapter_ids[fabric.host_adapters[fabric.host_index["left"]][0]]
    here = Place({"package": 0}, (left,)), Place({"package": 1, "L3": 4}, (left,)), Place({}, ())
    facts = [Facts(name, rank, here[rank], None) for rank, name in enumerate(("strange", "strange", "right"))]
    view = _place(facts, str(tmp_path / "fabric"), None)
    assert [view.hosts[host] for host in view.rank_host] == ["left", "left", "right"]
    assert {name: numbers.tolist() for name, numbers in view.domains} == {"package": [0, 1, -1], "L3": [-1, 4, -1]}
