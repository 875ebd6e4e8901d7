"""Profiles of whole programs: one in C, a stencil on the hosts of the reference's example, two placements compared."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI
from typer.testing import CliRunner

from tests.support import ROOT, mpirun, run_mpi, shared_data
from topompi.cli.app import app
from topompi.mapping import CommunicationGraph
from topompi.mpi.profile import read_profile
from topompi.mpi.profile.analysis import by_hops
from topompi.topology import TopologyInterface, load

SOURCE = "XGFT(2; 4,4; 1,2)"
STENCIL = """
import numpy as np
from mpi4py import MPI
cart = MPI.COMM_WORLD.Create_cart((2, 4, 4))
message, back = np.zeros(4), np.zeros(4)
for axis in range(3):
    for step in (-1, 1):
        source, target = cart.Shift(axis, step)
        cart.Sendrecv(message, target, recvbuf=back, source=source)
"""


def test_a_program_in_c_is_recorded_to_the_byte(tmp_path):
    if "Open MPI" not in MPI.Get_library_version():
        pytest.skip("Open MPI's monitoring needs Open MPI")
    beside = Path(sys.executable).parent / "mpicc"
    compiler = str(beside) if beside.exists() else shutil.which("mpicc")
    if compiler is None or shutil.which("gcc") is None:
        pytest.skip("no mpicc with a C compiler is here")
    program = tmp_path / "ring"
    built = subprocess.run(
        [compiler, ROOT / "tests" / "programs" / "ring.c", "-o", program], capture_output=True, text=True, timeout=60
    )
    if built.returncode:
        pytest.skip(f"mpicc builds nothing here: {built.stderr[-200:]}")
    path = tmp_path / "run.topoprof"
    done = CliRunner().invoke(app, ["profile", "-o", str(path), "--", *mpirun(), "-n", "4", str(program)])
    assert done.exit_code == 0, done.output
    found = read_profile(path)
    assert pairs(found.graph("E")) == {(one, (one + 1) % 4): (3, 120) for one in range(4)}
    assert pairs(found.graph("I")) == {(a, b): (1, 800) for a in range(4) for b in range(4) if a != b}


def pairs(graph):
    rows = (graph.sources, graph.targets, graph.messages, graph.volume)
    return {(a, b): (m, v) for a, b, m, v in zip(*(row.tolist() for row in rows), strict=True)}


@pytest.mark.long
def test_a_stencil_that_ran_has_the_classes_of_the_references_example(tmp_path):
    """2 x 4 x 4 in blocks of 8 on four hosts, the first and the last on one leaf switch: 80 / 0 / 48 messages."""
    h = load(SOURCE).routes.fabric.hosts
    path = tmp_path / "run.topoprof"
    hosts = ",".join((h[0], h[4], h[8], h[1]))
    env = {"TOPOMPI_PROFILE": str(path), "TOPOMPI_TOPOLOGY": SOURCE, "TOPOMPI_HOSTS": hosts}
    done = run_mpi(32, "-m", "topompi", "-c", STENCIL, env=env, timeout=150)
    assert done.returncode == 0, done.stderr
    profile = read_profile(path)
    assert profile.virtual
    interface = TopologyInterface.place(list(profile.hosts), load(SOURCE).routes)
    found = {one.hops: one.messages for one in by_hops(profile.graph("E"), interface)}
    assert (found[0], found.get(1, 0), found[3]) == (80, 0, 48)
    assert profile.graph("E").volume.sum() == 128 * 32
    assert pairs(profile.graph("E")).keys() == pairs(CommunicationGraph.cartesian((2, 4, 4))).keys()


@pytest.mark.long
def test_two_placements_of_one_alltoall_on_a_real_fabric_stand_in_one_picture(tmp_path):
    pytest.importorskip("matplotlib")
    fabric = shared_data("fabrics/janus-2014.ibnetdiscover.xz")
    routes = load(str(fabric)).routes
    whole = routes.fabric.hosts
    hops = TopologyInterface.place(list(whole), routes).hop_matrix[0]
    near, far = ([whole[0], *(whole[at] for at in np.flatnonzero(hops == one)[:7])] for one in (1, hops.max()))
    program = "import numpy as np\nfrom mpi4py import MPI\nMPI.COMM_WORLD.Alltoall(np.zeros(800), np.zeros(800))"
    found = {}
    for name, hosts in (("near", near), ("far", far)):
        path = tmp_path / f"{name}.topoprof"
        env = {"TOPOMPI_PROFILE": str(path), "TOPOMPI_TOPOLOGY": str(fabric), "TOPOMPI_HOSTS": ",".join(hosts)}
        done = run_mpi(8, "-m", "topompi", "-c", program, env=env, timeout=100)
        assert done.returncode == 0, done.stderr
        profile = read_profile(path)
        found[name] = by_hops(profile.graph(), TopologyInterface.place(list(profile.hosts), routes))
    assert [sum(one.volume for one in classes) for classes in found.values()] == [56 * 800] * 2
    assert [one.hops for one in found["near"] if one.volume] == [1]
    assert sum(one.volume for one in found["far"] if one.hops == hops.max()) >= 14 * 800  # to and from the first host
    options = ["--topology", str(fabric), "-o", str(tmp_path / "pictures")]
    files = [str(tmp_path / f"{name}.topoprof") for name in found]
    done = CliRunner().invoke(app, ["profile", "export", *files, *options])
    assert done.exit_code == 0, done.output
    picture = (tmp_path / "pictures" / "comparison.svg").read_text()
    assert picture.count("<!-- near -->") == picture.count("<!-- far -->") == 1
    assert "<!-- 1 hop -->" in picture
