"""Drop-in communicators under mpirun, at many sizes, checked by the programs in tests/programs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import ROOT, pytest_on_ranks, run_mpi
from topompi.topology import TopologyInterface, load
from topompi.views.part import restricted

PROGRAMS = ROOT / "tests" / "programs"


LIGHT = """
import numpy as np, sys, topompi
from mpi4py import MPI
comm = topompi.Intracomm(MPI.COMM_WORLD)
comm.Bcast(np.zeros(4))
comm.Allreduce(np.zeros(4), np.zeros(4))
plans = {"mapping", "schedules.registry", "execution.plan", "communicator.remap.order"}
readers = {"topology.fabric", "inputs.files"}
others = {"bz2", "hashlib", "json", "lzma", "socket", "tarfile", "tempfile", "zipfile"}
print("heavy:", {*others, *(f"topompi.{one}" for one in plans | readers)} & set(sys.modules))
"""


def test_on_one_host_a_program_imports_no_schedules_no_mapping_and_no_readers():
    """All ranks of a job import at once, often from one file system."""
    done = run_mpi(
        2, "-m", "mpi4py", "-c", LIGHT, env={"TOPOMPI_TOPOLOGY": "", "TOPOMPI_HOSTS": "", "TOPOMPI_TUNE": ""}
    )
    assert done.stdout.count("heavy: set()") == 2, done.stdout + done.stderr[-2000:]


@pytest.mark.parametrize("size", [5])
def test_derived_communicators(size):
    assert "passed" in pytest_on_ranks(size, PROGRAMS / "derived.py", timeout=150)


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
def test_derived_communicators_at_more_sizes(size):
    assert "passed" in pytest_on_ranks(size, PROGRAMS / "derived.py", timeout=150)


def leaks_nothing(size, cycles, timeout):
    done = run_mpi(size, "-m", "mpi4py", PROGRAMS / "leak.py", cycles, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert ", 0 handles more" in done.stdout


def test_create_use_free_leaks_nothing():
    leaks_nothing(2, 500, timeout=150)


@pytest.mark.long
def test_ten_thousand_cycles_leak_nothing():
    leaks_nothing(2, 10_000, timeout=1800)


ROUTES = load("xgft:2,2,2;1,1,1").routes


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_part_of_a_topology_is_that_of_its_ranks_alone(data):
    """What is restricted equals what is placed anew: hosts, distances, levels, and levels inside hosts."""
    size = data.draw(st.integers(1, 12))
    hosts = data.draw(st.lists(st.sampled_from(ROUTES.fabric.hosts), min_size=size, max_size=size))
    ranks = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=size, unique=True))
    packages = data.draw(st.lists(st.integers(-1, 1), min_size=size, max_size=size))
    whole = TopologyInterface.place(hosts, ROUTES, source="s", virtual=True).with_domains([("package", packages)])
    part = restricted(whole, np.array(ranks))
    alone = TopologyInterface.place([hosts[rank] for rank in ranks], ROUTES, source="s", virtual=True)
    alone = alone.with_domains([("package", [packages[rank] for rank in ranks])])
    assert part.hosts == alone.hosts
    assert part.describe() == alone.describe()
    assert part.rank_host.tolist() == alone.rank_host.tolist()
    assert part.hop_matrix.tolist() == alone.hop_matrix.tolist()
    assert part.get_hosts_sharing_links() == alone.get_hosts_sharing_links()
    assert [(one.name, one.cluster.tolist()) for one in part.levels] == [
        (one.name, one.cluster.tolist()) for one in alone.levels
    ]


def test_the_whole_is_no_copy():
    whole = TopologyInterface.place(["a", "b", "a"])
    assert restricted(whole, np.arange(3)) is whole
    assert restricted(whole, np.array([2, 0])).hosts == ("a",)
