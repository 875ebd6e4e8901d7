"""Real launchers put every rank where our files say."""

import ast
import os
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests.mapping.test_rankfiles import written
from tests.support import ROOT, mpirun
from topompi.mapping.mapping import Mapping
from topompi.mapping.rankfiles import write_mapping

# The launchers themselves. A host is a UTS namespace of this one, which a stand-in for ssh makes: the launcher starts
# its daemon in it, as it would over ssh, and a rank asks its own kernel for the name of its host.

AGENT = """#!/bin/bash
while [[ $1 == -* ]]; do shift; done  # ssh's options, which go before the host
host=$1; shift
exec unshare --uts bash -c 'hostname '"$host"'; exec bash -c "$*"' _ "$@"
"""
WHERE = """
import os, socket
rank = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK"))
line = " ".join(map(str, [rank, socket.gethostname(), *os.sched_getaffinity(0)]))
os.write(1, f"{line}\\n".encode())  # at once, or the lines of two ranks mix
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("maps")


@pytest.fixture(scope="module")
def agent(folder):
    """A program that runs a command on a pretended host."""
    allowed = shutil.which("unshare") and subprocess.run(["unshare", "--uts", "true"], timeout=10).returncode == 0
    if not allowed:
        pytest.skip("pretended hosts need root's right to make UTS namespaces")
    path = folder / "agent"
    path.write_text(AGENT)
    path.chmod(0o755)
    return path


def landed(command):
    """Host and CPUs of each rank of a run."""
    done = subprocess.run(
        [*command, sys.executable, "-c", WHERE], capture_output=True, text=True, timeout=60, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = {int(rank): (host, cpus) for rank, host, *cpus in map(str.split, done.stdout.splitlines())}
    return [found[rank] for rank in range(len(found))]


def scattered(slots, seed):
    """A random mapping that leaves a slot empty, on unequal hosts."""
    hosts = [f"pretended{at}" for at in range(len(slots))]
    order = np.random.default_rng(seed).permutation(sum(slots))[:-1]
    return Mapping.of(order, hosts, np.array(slots))


@pytest.mark.parametrize(
    ("form", "option"), [("rankfile5", "--map-by rankfile:file={}"), ("rankfile", "--rankfile {}")]
)
def test_open_mpi_puts_every_rank_on_its_host_and_core(folder, agent, form, option):
    command = mpirun()
    if "--oversubscribe" not in command:
        pytest.skip("this is MPICH's mpirun")
    cores = min(2, os.cpu_count() or 1)
    mapping = scattered([cores, 1, cores, 1, cores], seed=3)
    path = written(folder, write_mapping(mapping, form))
    hosts = ",".join(f"{host}:{count}" for host, count in zip(mapping.hosts, mapping.slots.tolist(), strict=True))
    ssh = ["--prtemca", "plm_ssh_agent", str(agent)]
    said = landed([*command[:2], *ssh, "--host", hosts, *option.format(path).split(), "-n", str(mapping.size)])
    assert [host for host, _ in said] == [mapping.hosts[at] for at in mapping.host_of_rank]
    first = np.r_[0, np.cumsum(mapping.slots)]
    local = mapping.slot_of_rank - first[mapping.host_of_rank]
    assert all(len(cpus) == 1 for _, cpus in said)
    of_slot = {int(slot): cpus for slot, (_, cpus) in zip(local, said, strict=True)}
    assert [cpus for _, cpus in said] == [of_slot[int(slot)] for slot in local]  # a slot is the same core everywhere


TOGETHER = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
host = comm.Split_type(MPI.COMM_TYPE_SHARED)
said = comm.gather((MPI.Get_processor_name(), host.allgather(comm.rank)))
if comm.rank == 0:
    print(said)
"""


def test_hydra_puts_every_rank_on_its_host_which_stays_one(folder, agent):
    """Ranks of one host share memory, even where they are not neighbours in rank."""
    command = mpirun()
    if "--oversubscribe" in command:
        pytest.skip("this is Open MPI's mpirun")
    mapping = scattered([3, 1, 2, 4], seed=5)
    path = written(folder, write_mapping(mapping, "hydra"))
    (launch,) = (line for line in path.read_text().splitlines() if line.startswith("# launch: "))
    line = launch.removeprefix("# launch: mpiexec ").replace("THIS_FILE", str(path))
    ssh = f"-launcher ssh -launcher-exec {agent}"
    # As the file says, by a shell.
    shell = f"{shlex.join(command)} {ssh} {line} {sys.executable} -c {shlex.quote(TOGETHER)}"
    done = subprocess.run(shell, shell=True, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    said = ast.literal_eval(done.stdout)
    assert [host for host, _ in said] == [mapping.hosts[at] for at in mapping.host_of_rank]
    host = mapping.host_of_rank
    assert [ranks for _, ranks in said] == [np.flatnonzero(host == at).tolist() for at in host]
