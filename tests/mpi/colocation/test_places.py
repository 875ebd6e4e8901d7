"""Real launchers put two jobs that share a node on its two halves, as our files say."""

import platform
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT, mpirun
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.modes.cores import node_of, place
from topompi.machine.colocation.modes.files import write_places
from topompi.topology.inside.finding import find_inside

WHERE = """
import os
rank = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK"))
os.write(1, f"{rank} {sorted(os.sched_getaffinity(0))}\\n".encode())
"""


@pytest.mark.long
def test_the_launcher_of_this_library_puts_two_jobs_on_the_halves_of_this_node(tmp_path: Path):
    node, command = node_of(find_inside()), mpirun()
    open_mpi = "--oversubscribe" in command
    taken: list[str] = []
    for second in (False, True):
        try:
            places = place(node, "striped", 1, second)
        except ColocationError:
            pytest.skip("a node of one core")
        path = tmp_path / f"places{second}"
        path.write_text(write_places(places, [platform.node()], "openmpi" if open_mpi else "mpich"))
        options = path.read_text().splitlines()[0].replace("THIS_FILE", str(path)).split()[2:-1]
        words = [*command[: 2 if open_mpi else 1], *options, sys.executable, "-c", WHERE]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
        assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}{done.stderr}"
        assert done.stdout.startswith(f"0 [{places.cores[0].cpu}"), done.stdout
        taken.append(done.stdout)
    assert taken[0] != taken[1]
