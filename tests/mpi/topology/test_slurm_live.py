"""The source ``auto`` in jobs of a real Slurm: the source that it takes, and its message about it."""

import json
import subprocess
import sys

import pytest

from tests.services import wait_until
from tests.support import ROOT, mpirun
from topompi.topology import TopologyInterface, load
from topompi.topology.client import Address, ask
from topompi.topology.sources import automatic, slurm_addresses

pytestmark = pytest.mark.long
HOPS = [[0, 1, 3, 3], [1, 0, 3, 3], [3, 3, 0, 1], [3, 3, 1, 0]]

TASK = """
import json, os
from topompi.inputs.slurm import environment
from topompi.topology.sources import automatic
told = [os.environ.get(name) for name in (environment.ADDRESS, environment.PATTERN)]
print(json.dumps([os.environ["SLURMD_NODENAME"], told, automatic.find(None, {}, os.environ).words]))
"""
RANK = """
from mpi4py import MPI
import topompi
comm = topompi.Intracomm(MPI.COMM_WORLD)
if comm.rank == 0:
    print(topompi.interface(comm).describe(), topompi.interface(comm).hop_matrix.tolist())
"""


@pytest.fixture(scope="module")
def told(slurm):
    """What each task of a job learns: (address, pattern) by host, and the source that ``auto`` finds there."""
    lines = [json.loads(line) for line in slurm.job(["srun", "--ntasks-per-node=1", sys.executable, "-c", TASK])]
    return {host: tuple(address) for host, address, _ in lines}, {words for *_, words in lines}


def test_a_task_asks_slurm_where_there_is_no_service(told) -> None:
    assert told[1] == {f"auto: scontrol show topology, {automatic.LACKS}"}


def test_what_slurm_tells_all_tasks_is_the_tree_of_its_configuration(slurm, told) -> None:
    found = automatic.find(slurm.hosts, told[0], {})
    assert found.words == f"auto: {slurm_addresses.NAME}, {automatic.LACKS}"
    assert found.discovery is not None
    assert TopologyInterface.place(slurm.hosts, found.discovery.routes).hop_matrix.tolist() == HOPS


def test_a_service_comes_first_and_one_that_is_away_is_named(slurm, tmp_path) -> None:
    source = tmp_path / "topology.conf"
    source.write_text(f"SwitchName=all Nodes={','.join(slurm.hosts)}\n")
    address = f"unix:{tmp_path / 'socket'}"
    task = ["srun", "--nodes=1", "--ntasks=1", sys.executable, "-c", TASK]
    serve = [
        sys.executable,
        "-m",
        "topompi",
        "topology",
        "serve",
        "--topology",
        str(source),
        "--listen",
        f"unix:{tmp_path / 'socket'}",
    ]
    with subprocess.Popen(serve, stderr=subprocess.DEVNULL, cwd=ROOT) as process:
        try:
            wait_until((tmp_path / "socket").exists, 30)
            assert ask(Address.parse(address), {"request": "generation"})["generation"] == 1
            (line,) = slurm.job(task, {automatic.SERVER: address})
            assert json.loads(line)[2] == f"auto: {address}"
        finally:
            process.kill()
    (line,) = slurm.job(task, {automatic.SERVER: address})
    assert json.loads(line)[2].startswith(f"auto: scontrol show topology, {automatic.LACKS} (not {address}: expecting")


def test_ranks_of_a_job_see_the_tree(slurm):
    start = mpirun()
    if "--allow-run-as-root" not in start:
        pytest.skip("the options are Open MPI's")
    (line,) = slurm.job([*start[:2], "--map-by", "ppr:1:node", sys.executable, "-c", RANK])
    words = f"4 ranks on 4 hosts, topology from auto: scontrol show topology, {automatic.LACKS}"
    assert line == f"{words} {HOPS}"


def test_our_topology_conf_is_accepted_and_shown_as_the_emulated_tree(slurm):
    shown = slurm.run(["scontrol", "show", "topology"]).stdout
    found = {words["SwitchName"]: words for words in map(fields, shown.splitlines())}
    assert {name: words["Nodes"] for name, words in found.items() if words["Level"] == "0"} == {
        "L1/0": "h[0000-0001]",
        "L1/1": "h[0002-0003]",
    }
    assert [words["Switches"] for words in found.values() if words["Level"] == "1"] == ["L1/[0-1]"]
    (slurm.folder / "shown").write_text(shown)
    again = load(str(slurm.folder / "shown")).routes
    assert TopologyInterface.place(slurm.hosts, again).hop_matrix.tolist() == HOPS


def fields(line):
    return dict(word.split("=", 1) for word in line.split())


def test_select_asks_slurm_for_idle_nodes_and_its_list_is_taken(slurm):
    choose = [sys.executable, "-m", "topompi", "slurm", "select", "-N"]
    two = slurm.run([*choose, "2"])
    assert (two.returncode, two.stdout) == (0, "h[0000-0001]\n"), two.stderr
    hold = ["salloc", "--quiet", "--nodelist=h0001", "--exclusive", *choose, "2"]  # one node of the first leaf is busy
    assert slurm.run(hold).stdout == "h[0002-0003]\n"
    assert slurm.run([*hold[:-1], "4"]).returncode == 1
    task = "echo $SLURM_JOB_NODELIST"
    nodes = slurm.run([*hold[:-1], "2"]).stdout.strip()
    assert slurm.run(["salloc", "--quiet", f"--nodelist={nodes}", "sh", "-c", task]).stdout == "h[0002-0003]\n"


def test_allocate_and_check_ask_slurm_for_jobs_and_closed_nodes(slurm):
    jobs = [sys.executable, "-m", "topompi", "jobs"]
    tree = ["--topology", str(slurm.folder / "topology.conf"), "--slurm"]
    free = slurm.run([*jobs, "allocate", "4", *tree])
    assert (free.returncode, free.stdout.splitlines()[0]) == (0, "h[0000-0003]"), free.stderr
    hold = ["salloc", "--quiet", "--nodelist=h[0001-0002]", "--exclusive"]
    beside = slurm.run([*hold, *jobs, "allocate", "2", "--policy", "first", *tree])
    assert beside.stdout.splitlines()[0] == "h[0000,0003]"
    assert slurm.run([*hold, *jobs, "allocate", "3", *tree]).returncode == 1
    told = json.loads(slurm.run([*hold, *jobs, "check", *tree, "--json"]).stdout)
    assert (told["jobs"], told["rows"][0]["hosts"]) == (1, 2)
