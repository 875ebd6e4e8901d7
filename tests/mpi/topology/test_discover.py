"""Discovery by the ranks of a job of Slurm."""

from __future__ import annotations

from pathlib import Path

from tests.support import run_mpi
from tests.topology.test_discover import manifest_of
from topompi.topology import load

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
