"""Probing under mpirun: the file it writes, and the leaves of emulated networks."""

import json
import os
from types import SimpleNamespace

import pytest

from benchmarks.probe import probed, random_shape
from tests.emulation import needs_root, private_state  # noqa: F401 - a fixture
from tests.support import command_line, mpirun, run_mpi
from topompi.mpi.probe import ProbeError
from topompi.topology import load

NAPPING = {
    "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
    "OMPI_MCA_threads_pthreads_nanosleep_time": "1000",
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
}


def test_a_rank_is_kept_awake_for_as_long_as_asked_and_then_as_it_was():
    from topompi.mpi.probe.polling import _setter, awake

    yields = _setter()
    assert yields is not None
    before = yields(True)
    for was in (True, False):
        yields(was)
        with awake():
            assert yields(False) is False
        assert yields(before) is was


@pytest.mark.parametrize("woken", [True, False])
@pytest.mark.long
def test_ranks_that_would_sleep_are_kept_awake_or_make_the_tree_doubtful(woken):
    """Not kept awake, two ranks of libraries told to sleep do so; the probe counts it."""
    keep = "" if woken else "from contextlib import nullcontext; measuring.awake = nullcontext\n"
    code = (
        "from topompi.mpi.probe import measuring\n"
        f"{keep}import sys\n"
        "sys.argv = ['topompi', 'probe', '--hosts', 'a,b', '--json', '--seconds', '3']\n"
        "from topompi.cli import main; main()\n"
    )
    done = run_mpi(2, "-c", code, env=NAPPING)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["yielded"] != woken
    assert not (said["yielded"] and said["settled"])


# --- with MPI ---


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([], "expecting at least 2 hosts to probe, got 1: run it under mpirun, on several"),
        (["--hosts", "a,b,c"], "--hosts: expecting as many hosts as ranks, 1, got 3"),
    ],
)
def test_what_cannot_be_probed_is_one_line(words, wanted):
    done = command_line("probe", *words)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"topompi: {wanted}\n")


def test_the_ranks_of_a_pair_run_on_two_processors_where_there_are_two():
    from topompi.mpi.probe.measuring import own_processor

    allowed = os.sched_getaffinity(0)
    for number in range(2 * len(allowed)):
        ran_on = []
        for leads in (True, False):
            with own_processor(number, leads):
                ran_on += os.sched_getaffinity(0)
            assert os.sched_getaffinity(0) == allowed
        assert len(ran_on) == 2
        assert len(set(ran_on)) == min(2, len(allowed))
        assert allowed.issuperset(ran_on)


def test_two_hosts_of_one_name_are_refused():
    from topompi.mpi.probe.running import _names

    with pytest.raises(ProbeError, match="expecting hosts of different names, got 'n2' twice"):
        _names(SimpleNamespace(allgather=lambda name: ["n1", "n2", "n2"]), None)


def test_a_job_is_probed_and_its_fabric_written(tmp_path):
    path = tmp_path / "fabric.json"
    words = ("-m", "topompi", "probe", "--hosts", "a,b,c", "--seconds", "10", "--json", "-o", path)
    done = run_mpi(3, *words)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["hosts"] == 3
    fabric = load(path).fabric
    assert fabric.hosts == ("a", "b", "c")
    assert (fabric.link_rate > 0).all()


def test_a_file_that_cannot_be_written_is_said_once():
    done = run_mpi(2, "-m", "topompi", "probe", "--hosts", "a,b", "--seconds", "10", "-o", "/nowhere/f")
    assert done.returncode != 0
    assert done.stderr.count("topompi: /nowhere/f: cannot be written") == 1
    assert "Traceback" not in done.stderr


@needs_root
@pytest.mark.parametrize(
    "seed",
    [pytest.param(8, marks=pytest.mark.long), *(pytest.param(one, marks=pytest.mark.exhaustive) for one in range(4))],
)
def test_the_leaves_of_emulated_networks_are_found_where_the_probe_is_sure(private_state, seed):  # noqa: F811
    if "--oversubscribe" not in mpirun():
        pytest.skip("ranks that poll are Open MPI's here")
    found = probed(random_shape(seed), seconds=60)
    assert "error" not in found, found
    if not found["settled"]:
        pytest.skip("the processors are too busy for a probe that is sure")
    assert found["right"], found


@needs_root
@pytest.mark.long
@pytest.mark.parametrize("spec", ["7,2,4", "2x3x2", "3,5,3"])
def test_where_ranks_sleep_by_default_the_leaves_are_found_or_the_probe_is_not_sure(private_state, spec):  # noqa: F811
    found = probed(spec, seconds=30, mpi=None)
    assert "error" not in found, found
    assert not found["yielded"], "the ranks were not kept awake"
    assert found["right"] or not found["settled"], found
