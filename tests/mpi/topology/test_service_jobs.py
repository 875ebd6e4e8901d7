"""Jobs whose topology is a service: rank 0 queries it; a missing service does not delay a job."""

import re
import socket
import time

from tests.services import read, reversed_spines, running
from tests.support import ROOT, run_mpi
from topompi.machine.daemon.watch import Watch
from topompi.topology import TopologyInterface
from topompi.topology.service.store import RouteStore

PROGRAM = """
from mpi4py import MPI
import topompi
comm = topompi.Intracomm(MPI.COMM_WORLD)
found = topompi.interface(comm)
facts = found.hop_matrix.tolist(), [level.cluster.tolist() for level in found.levels]
print(facts, found.describe() if comm.rank == 0 else "", flush=True)
"""
BEFORE = """
import time
import numpy as np
from mpi4py import MPI
import topompi
from topompi.mpi.communicator.state import working
"""
CHANGES = """
comm = topompi.Intracomm(MPI.COMM_WORLD)
same = up_to_date(comm) is comm
if comm.rank == 0:
    open(MARKER, "w").close()
    while topompi.interface(comm).served.is_current():
        time.sleep(0.05)
comm.Barrier()
data, total = np.ones(1 << 16), np.empty(1 << 16)
working(comm).executor.shared["", "order"] = np.array([2, 0, 1])  # as if a ring had run
new = up_to_date(comm)
former = working(new).executor.former_order
new.Allreduce(data, total)
comm.Allreduce(data, total)
kept = former.tolist() == [2, 0, 1] and type(new) is type(comm) and (total == 3).all()
views = topompi.interface(comm), topompi.interface(new)
hops, paths = ([make(view).tolist() for view in views] for make in (
    lambda view: view.hop_matrix, lambda view: view.get_network_path_matrix()))
print(same, new is not comm, hops[0] == hops[1], paths[0] == paths[1], new.allreduce(1), kept, flush=True)
new.free()
comm.Barrier()
"""
HOSTS = ("h0000", "h0001", "h0040")


def test_a_job_that_names_a_service_sees_the_fabric_of_the_service(tmp_path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    routes = read()
    with running(RouteStore(lambda: routes)) as (service, address):
        env = {"TOPOMPI_TOPOLOGY": str(address), "TOPOMPI_HOSTS": ",".join(HOSTS)}
        done = run_mpi(3, script, env=env, timeout=60)
        assert done.returncode == 0, done.stderr
        assert (service.counters.connections, service.counters.requests) == (1, 1)
    view = TopologyInterface.place(HOSTS, routes)
    facts = view.hop_matrix.tolist(), [level.cluster.tolist() for level in view.levels]
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert all(line.startswith(str(facts)) for line in lines)
    assert f"topology from {address}" in done.stdout


def test_a_running_job_goes_on_with_new_routes_as_the_page_shows(tmp_path) -> None:
    page = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
    block = re.search(r"```python\n(.*?def up_to_date.*?)```", page, re.DOTALL)
    assert block is not None
    marker, script = tmp_path / "changed", tmp_path / "program.py"
    script.write_text(f"{BEFORE}{block[1]}MARKER = {str(marker)!r}\n{CHANGES}")
    made = read("xgft:4,4;1,4", None)
    store = RouteStore(lambda: reversed_spines(made) if marker.exists() else made)
    hosts = ",".join(made.fabric.hosts[i] for i in (0, 5, 9))
    with running(store, watch=Watch([marker])) as (_, address):
        env = {"TOPOMPI_TOPOLOGY": str(address), "TOPOMPI_HOSTS": hosts}
        done = run_mpi(3, script, env=env, timeout=60)
    assert done.stdout.split("\n")[:3] == ["True True True False 3 True"] * 3, done.stdout + done.stderr


def test_a_service_that_is_not_there_is_one_flat_level_or_an_error_as_the_user_wants(tmp_path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    with socket.socket() as placeholder:
        placeholder.bind(("127.0.0.1", 0))
        source = f"tcp://127.0.0.1:{placeholder.getsockname()[1]}"
        env = {"TOPOMPI_TOPOLOGY": source, "TOPOMPI_HOSTS": ",".join(HOSTS)}
        began = time.monotonic()
        flat = run_mpi(3, script, env={**env, "TOPOMPI_FALLBACK": "print"}, timeout=60)
        assert time.monotonic() - began < 30
        assert flat.returncode == 0, flat.stderr
        assert f"hosts only: {source}: expecting a topology service, got: Connection refused" in flat.stdout
        refused = run_mpi(3, script, env={**env, "TOPOMPI_FALLBACK": ""}, timeout=60)
        assert refused.returncode != 0
        assert f"{source}: expecting a topology service, got: Connection refused" in refused.stderr


def test_a_job_of_slurm_asks_slurm_where_nobody_says_more(tmp_path) -> None:
    """The variables are set inside: Open MPI would take them for a real allocation."""
    script, scontrol = tmp_path / "program.py", tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\necho SwitchName=leaf Level=0 LinkSpeed=1 Nodes=$(hostname)\n")
    scontrol.chmod(0o755)
    inside = f'import os\nos.environ |= {{"SLURM_JOB_ID": "1", "PATH": "{tmp_path}:" + os.environ["PATH"]}}\n'
    script.write_text(inside + PROGRAM)
    done = run_mpi(2, script, env={"TOPOMPI_TOPOLOGY": "", "TOPOMPI_HOSTS": "", "TOPOMPI_SERVER": ""}, timeout=60)
    words = "topology from auto: scontrol show topology, no rates, parallel cables or routes are known"
    assert words in done.stdout, done.stdout + done.stderr


def test_a_job_that_is_told_of_a_server_alone_asks_it_and_goes_on_flat_without_it(tmp_path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    routes = read()
    with running(RouteStore(lambda: routes)) as (_, address):
        env = {"TOPOMPI_TOPOLOGY": "", "TOPOMPI_SERVER": str(address), "TOPOMPI_HOSTS": ",".join(HOSTS)}
        asked = run_mpi(3, script, env=env, timeout=60)
    assert f"topology from auto: {address}\n" in asked.stdout, asked.stderr
    alone = run_mpi(3, script, env=env, timeout=60)
    assert f"hosts only: auto: {address}: expecting a topology service" in alone.stdout, alone.stderr
