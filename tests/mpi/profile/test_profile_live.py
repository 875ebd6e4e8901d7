"""Profiles that mpi4py programs record of themselves."""

import json
import signal
import tracemalloc

import numpy as np
import pytest
from mpi4py import MPI

from tests.support import ROOT, mpi_job, run_mpi
from topompi.mapping import read_graph
from topompi.mpi.profile import read_profile
from topompi.mpi.profile.counting import TrafficCounters
from topompi.mpi.profile.file import part_of, rank_line
from topompi.mpi.profile.monitored import read_monitored
from topompi.schedules.registry import make
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of

PROGRAM = ROOT / "tests" / "programs" / "profiled.py"
LAUNCHED = """
import os, signal, time
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
message = np.zeros(10)
comm.Sendrecv(message, after, recvbuf=np.zeros(10), source=before)
os.kill(os.getpid(), signal.SIGUSR2)
comm.Bcast(message)
os.kill(os.getpid(), signal.SIGUSR1)
comm.Barrier()
window = MPI.Win.Allocate(80, 8, comm=comm)
window.Fence()
window.Put(message, after)
window.Fence()
window.Free()
requests = [comm.Send_init(message, after), comm.Recv_init(np.zeros(10), before)]
MPI.Prequest.Startall(requests)
MPI.Request.Waitall(requests)
"""
EACH_ONCE = ("Allgather", "Allgatherv", "Bcast")
RULES = [
    {"methods": ["Allreduce", "Allgather", "Allgatherv"], "algorithm": "ring"},
    {"methods": "Bcast", "algorithm": "binomial"},
]
RING = {(0, 1): (3, 240), (1, 0): (3, 240)}


def graph_of(profile):
    graph = profile.graph()
    rows = (graph.sources, graph.targets, graph.messages, graph.volume)
    return {(a, b): (m, v) for a, b, m, v in zip(*(row.tolist() for row in rows), strict=True)}


def test_every_form_of_call_is_counted_to_the_byte(tmp_path):
    done = run_mpi(4, PROGRAM, tmp_path / "a.topoprof", env={"TOPOMPI_HOSTS": "a,b"}, timeout=120)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split("\n")) == {"same", ""}
    assert [one.name for one in tmp_path.iterdir()] == ["a.topoprof"]


def test_the_launcher_records_and_signals_leave_a_part_out(tmp_path):
    path = tmp_path / "run.topoprof"
    done = run_mpi(2, "-m", "topompi", "-c", LAUNCHED, env={"TOPOMPI_PROFILE": str(path)})
    assert done.returncode == 0, done.stderr
    found = read_profile(path)
    assert found.granularity == "process"
    assert graph_of(found) == RING
    assert read_graph(path).volume.sum() == 480
    assert [call.name for call in found.of_rank[0].calls] == ["Barrier"]
    assert list(tmp_path.iterdir()) == [path]


def test_the_launcher_records_by_host_and_without_it_that_is_refused(tmp_path):
    path = tmp_path / "run.topoprof"
    wanted = {"TOPOMPI_PROFILE": str(path), "TOPOMPI_PROFILE_GRANULARITY": "host", "TOPOMPI_HOSTS": "a,b"}
    program = "from mpi4py import MPI; MPI.COMM_WORLD.bcast(1, 3)"
    done = run_mpi(4, "-m", "topompi", "-c", program, env=wanted)
    assert done.returncode == 0, done.stderr
    found = read_profile(path)
    assert (found.granularity, list(graph_of(found))) == ("host", [(3, 0), (3, 2)])  # hosts by their lowest ranks
    done = run_mpi(1, "-c", "import topompi; topompi.Intracomm", env=wanted)
    assert "for a profile by host" in done.stderr


PLANNED = """
import sys
import numpy as np, topompi
from mpi4py import MPI
comm = topompi.Intracomm(MPI.COMM_WORLD, topology="XGFT(2; 2,2; 1,2)", hosts="h[0000-0003]")
one, all_of_them = np.zeros(100), np.zeros(100 * comm.size)
def calls(comm):
    comm.Allreduce(one, one.copy())
    comm.Allgather(one, all_of_them)
    comm.Allgatherv(one, all_of_them)
    comm.Bcast(one, root=1)
    request = comm.Allreduce_init(one, one.copy())
    request.Start()
    request.Wait()
    request.Free()
calls(comm)
with topompi.profile(comm, sys.argv[1]) as comm:
    calls(comm)
for _ in range(int(sys.argv[2])):
    calls(comm)
"""


def test_a_plan_counts_as_the_messages_that_it_sends(tmp_path):
    """Two runs under Open MPI's monitoring differ by the calls of which one is recorded."""
    if "Open MPI" not in MPI.Get_library_version():
        pytest.skip("Open MPI's monitoring needs Open MPI")
    path, rules = tmp_path / "run.topoprof", tmp_path / "rules.json"
    rules.write_text(json.dumps({"format": "topompi rules", "version": 1, "rules": RULES}))
    environment = {"TOPOMPI_RULES": str(rules), "TOPOMPI_TUNE": "off"}
    seen = []
    for more in (0, 10):
        folder = tmp_path / str(more)
        folder.mkdir()
        monitor = {"enable": "2", "enable_output": "3", "filename": str(folder / "run")}
        variables = {f"OMPI_MCA_pml_monitoring_{key}": value for key, value in monitor.items()}
        done = run_mpi(4, "-c", PLANNED, path, more, env={**environment, **variables}, timeout=90)
        assert done.returncode == 0, done.stderr
        seen.append(pair_table(read_monitored(folder).graph("E")))
    found = read_profile(path)
    assert (seen[1] - seen[0] == 10 * pair_table(found.graph())).all()
    assert pair_table(found.graph("C")).sum() == 0
    assert found.coverage == 1
    schedules = [
        *[("allreduce", "ring", None, 200)] * 2,
        ("allgather", "ring", None, 800),
        ("allgather", "ring", None, 800),
        ("bcast", "binomial", 1, 800),
    ]
    wanted = sum(transfers(*one) for one in schedules)
    assert (pair_table(found.graph())[1] == wanted).all()
    assert {call.name: call.times for call in found.of_rank[0].calls} == {**dict.fromkeys(EACH_ONCE, 1), "Allreduce": 2}


def pair_table(graph):
    """Messages and bytes of all pairs, shape (2, p, p)."""
    table = np.zeros((2, graph.size, graph.size), dtype=np.int64)
    table[:, graph.sources, graph.targets] = graph.messages, graph.volume
    return table


def transfers(collective, name, root, block):
    """Bytes of a schedule's transfers between all pairs of four ranks, shape (4, 4)."""
    routes = load("XGFT(2; 2,2; 1,2)").routes
    network = network_of(TopologyInterface.place(routes.fabric.hosts, routes))
    schedule, table = make(collective, name, network, root), np.zeros((4, 4), dtype=np.int64)
    np.add.at(table, (schedule.source, schedule.destination), schedule.count * block)
    np.fill_diagonal(table, 0)
    return table


def test_without_the_launcher_each_rank_leaves_its_part(tmp_path):
    path = tmp_path / "run.topoprof"
    program = "import topompi\nfrom mpi4py import MPI\ncomm = topompi.Intracomm(MPI.COMM_WORLD)\ncomm.bcast(1)"
    done = run_mpi(2, "-c", program, env={"TOPOMPI_PROFILE": str(path)})
    assert done.returncode == 0, done.stderr
    assert {one.name for one in tmp_path.iterdir()} == {part_of(path, 0).name, part_of(path, 1).name}
    found = read_profile(path)
    assert (found.size, found.missing) == (2, ())
    assert list(graph_of(found)) == [(0, 1)]


def test_a_killed_program_leaves_what_its_ranks_flushed(tmp_path):
    path = tmp_path / "run.topoprof"
    program = f"""
import os, numpy, topompi
from mpi4py import MPI
with topompi.profile(MPI.COMM_WORLD, {str(path)!r}) as comm:
    comm.Bcast(numpy.zeros(5))
    comm.Barrier()
    if comm.rank == 0:
        topompi.mpi.profile.live.running().flush()
        os.kill(os.getpid(), {int(signal.SIGKILL)})
    comm.Barrier()
"""
    done = mpi_job(2, "-c", program, timeout=60)
    assert done.returncode != 0
    found = read_profile(path)
    assert (found.size, found.missing) == (2, (1,))
    assert graph_of(found) == {(0, 1): (1, 40)}


def held(ranks: int, ranks_a_host: int) -> int:
    """Bytes of rank 0's counters and of another rank's line, if all send each other messages and make an alltoall."""
    tracemalloc.start()
    peers = np.arange(0, ranks, ranks_a_host)
    counters = TrafficCounters(len(peers), peers)
    group = counters.group(0, (np.arange(ranks) // ranks_a_host).astype(np.int32))
    counters.add("E", group[np.arange(1, ranks)], np.full(ranks - 1, 1000))
    group.called("Alltoall", 0, 8 * ranks)
    line = rank_line(counters.rows(0, "host"))
    found = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert line
    return found


@pytest.mark.parametrize(("ranks", "most"), [(64, 0.04e6), (1024, 8.61e6)])
def test_rank_0_holds_far_less_than_a_matrix_of_all_pairs(ranks, most):
    """A matrix of 8 bytes a pair takes 0.03 or 8.4 MB; by host a tenth of that is the limit."""
    assert held(ranks, 1) < most
    assert held(ranks, 16) < most / 10


def test_a_recorded_program_leaves_no_secret_in_its_profile(tmp_path):
    path = tmp_path / "a.topoprof"
    words = ("-m", "topompi", "-c", LAUNCHED, "--password=hunter2")
    done = run_mpi(2, *words, env={"TOPOMPI_PROFILE": str(path)})
    assert done.returncode == 0, done.stderr
    assert "--password=***" in read_profile(path).command
    assert "hunter2" not in read_profile(path).command
    assert path.stat().st_mode & 0o777 == 0o600
