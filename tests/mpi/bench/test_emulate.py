"""Emulated networks: they match their spec, run jobs, and leave nothing behind."""

import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from osu_like_bench.emulate import Emulated, LaunchOptions, LinkRates, take_down
from osu_like_bench.emulate.agent import enter
from osu_like_bench.emulate.launch import rank_hosts
from osu_like_bench.emulate.network import DATA, address, ports, processes
from osu_like_bench.emulate.records import states
from osu_like_bench.emulate.verify import measure_rates, measure_round_trip
from tests.bench.test_emulate import M
from tests.emulation import needs_root, private_state  # noqa: F401 - a fixture
from tests.support import ROOT, heed_interrupts, mpirun
from topompi.errors import BenchmarkError
from topompi.topology import load

pytestmark = pytest.mark.usefixtures("private_state")


# --- on this machine, as root ---


def ip(*words, text=True):
    return subprocess.run(["ip", *words], capture_output=True, text=text, timeout=30, check=True).stdout


def left_behind(state):
    """The remains of a network: its namespaces and files."""
    return [name for name in state.namespaces if Path("/run/netns", name).exists()]


def alive(pid):
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def interfaces():
    return re.findall(r"^\d+: ([^:]+):", ip("-o", "link"), re.MULTILINE)


@needs_root
@pytest.mark.parametrize("spec", ["2x2", "1,3;2"])
def test_up_makes_the_links_of_the_spec_and_down_leaves_nothing(spec):
    before = interfaces()
    network = Emulated(spec, LinkRates.parse("50M", "20M,30M", "h1=10M"), name="updown")
    state = network.up()
    assert interfaces() == before  # nothing of ours is among the machine's
    found = {}
    for namespace in state.namespaces:
        said = subprocess.run(["tc", "-n", namespace, "-j", "qdisc"], capture_output=True, text=True, timeout=30).stdout
        for row in json.loads(said):
            if row["kind"] == "tbf":
                found[namespace, row["dev"]] = row["options"]["rate"]
    assert len(found) == network.fabric.num_links
    assert sorted(found.values()) == sorted(network.fabric.link_rate.tolist())
    assert found[state.namespace("h0001"), "eth0"] == 10 * M
    assert load(network.path).fabric.hosts == network.fabric.hosts
    assert take_down() == ["updown"]
    assert left_behind(state) == []
    assert not state.path.exists()
    assert interfaces() == before


@needs_root
def test_switches_in_a_ring_forward_by_the_tables_and_flood_nothing():
    with Emulated("torus:5", LinkRates.parse("50M", "50M")) as network:
        fabric, last = network.fabric, network.fabric.num_hosts - 1
        assert measure_round_trip(fabric, network.state, 0.1) > 0
        said = subprocess.run(
            ["ip", "-n", network.state.switches, "-s", "-j", "link"], capture_output=True, text=True, timeout=30
        ).stdout
        carried = {
            (one["ifname"], way): one["stats64"][way]["bytes"] for one in json.loads(said) for way in ("rx", "tx")
        }
        busy = {number for number, (port, way, _) in enumerate(ports(fabric)) if carried[port, way]}
        paths = network.routes.tables.paths(np.array([0, last]), np.array([last, 0]))
        assert busy == set(paths[paths >= 0].tolist())


@needs_root
def test_down_leaves_alone_what_others_made_and_what_is_in_use():
    mine = Emulated("1x2", name="mine")
    with mine:
        other = Emulated("1x2", name="other").up()
        foreign = "topompi-" + other.token  # the prefix alone makes nothing ours
        ip("netns", "add", foreign)
        ip("-n", foreign, "link", "add", "s0-h0", "type", "bridge")
        try:
            assert take_down() == ["other"]
            assert left_behind(other) == []
            assert "s0-h0" in ip("-n", foreign, "link")
            assert left_behind(mine.state) == list(mine.state.namespaces)
        finally:
            ip("netns", "delete", foreign)
        state = mine.state
    assert left_behind(state) == []


@needs_root
def test_a_network_half_made_is_taken_down_at_once(monkeypatch):
    from osu_like_bench.emulate import network as module

    monkeypatch.setattr(module, "_shape", lambda device, rate: [f"qdisc add dev {device} root nosuch"])
    made = Emulated("1x2", name="half")
    with pytest.raises(BenchmarkError, match="tc"):
        made.up()
    assert left_behind(made.state) == []
    assert not list(states())


@needs_root
def test_an_up_killed_half_way_is_taken_down(tmp_path):
    command = [sys.executable, "-m", "osu_like_bench", "emulate", "up", "4x4"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        until = time.monotonic() + 60
        while not (found := list(states())) and time.monotonic() < until:
            time.sleep(0.005)
        time.sleep(0.05)
        process.kill()
    (state,) = found
    assert take_down() == [state.name]
    assert left_behind(state) == []


@needs_root
@pytest.mark.skipif(shutil.which("slurmctld") is None, reason="no Slurm here: slurmctld not found")
def test_a_command_runs_beside_a_slurm_of_the_run_or_of_the_network_and_nothing_is_left(monkeypatch, request):
    folder = tempfile.mkdtemp(dir="/run")  # short, because sockets are in it
    request.addfinalizer(lambda: shutil.rmtree(folder))
    monkeypatch.setenv("TOPOMPI_EMULATE_STATE", folder)

    def emulate(*words):
        command = [sys.executable, "-m", "osu_like_bench", "emulate", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)

    tasks = ["run", "2x1", "--slurm", "--", "srun", "-N2", "--ntasks-per-node=1", "printenv", "SLURMD_NODENAME"]
    done = emulate(*tasks)
    assert (done.returncode, sorted(done.stdout.split())) == (0, ["h0000", "h0001"]), done.stderr
    assert emulate("up", "2x1", "--slurm", "--name", "kept", "--cores", "3").returncode == 0
    (state,) = states()
    shown = emulate("run", "kept", "--slurm", "--", "sinfo", "--noheader", "--format=%D %c %T")
    assert (shown.returncode, shown.stdout.split()) == (0, ["2", "3", "idle"]), shown.stderr
    assert emulate("run", "kept", "--slurm", "--", "false").returncode == 1
    assert emulate("down", "kept").returncode == 0
    monkeypatch.setenv("TOPOMPI_EMULATE_STATE", f"{folder}/{'long' * 20}")
    assert "expecting a state folder shorter by" in emulate("run", "2x1", "--slurm", "--", "true").stderr
    assert left_behind(state) == []


def _sleepers(tmp_path, number):
    """A run under way, whose ranks sleep once all have said so."""
    ready = tmp_path / f"ready{number}"
    code = (
        "import time, pathlib; from mpi4py import MPI; MPI.COMM_WORLD.Barrier(); "
        f"pathlib.Path('{ready}').touch(); time.sleep(300)"
    )
    command = [sys.executable, "-m", "osu_like_bench", "emulate", "run", "1x2", "--", "-c", code]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=heed_interrupts,
    )
    until = time.monotonic() + 60
    while not ready.exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    if not ready.exists():
        process.kill()
        pytest.fail(f"the run did not start: {process.communicate()[0]}")
    return process


@needs_root
def test_a_killed_run_leaves_nothing_after_down(tmp_path):
    mpirun()  # skips where there is none
    process = _sleepers(tmp_path, 0)
    (state,) = states()
    assert take_down() == []  # it lives
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    orphans = processes(state.namespaces)
    assert len(orphans) >= 3  # mpirun and the ranks go on
    assert take_down() == [state.name]
    assert not any(map(alive, orphans))
    assert left_behind(state) == []
    assert take_down() == []


@needs_root
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_run_cleans_up_itself(tmp_path, number):
    mpirun()
    process = _sleepers(tmp_path, int(number))
    (state,) = states()
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert left_behind(state) == []
    assert not list(states())


WHERE = (
    "from mpi4py import MPI; import os; c = MPI.COMM_WORLD; "
    "found = c.gather(MPI.Get_processor_name()); "
    "c.rank == 0 and print(' '.join(found), os.environ['TOPOMPI_TOPOLOGY'])"
)


@needs_root
def test_ranks_land_on_the_hosts_that_the_order_says():
    mpirun()
    with Emulated("2,1;3", uplinks="200M") as network:
        for order, ppn in (("leaf-cyclic", 1), ("random:7", 2)):
            options = LaunchOptions(ppn=ppn, order=order, timeout=60)
            done = network.run(["-c", WHERE], options)
            assert done.returncode == 0, done.stderr
            assert done.stdout.split() == [*rank_hosts(network.fabric, None, ppn, order), str(network.path)]
            assert "setpgid" not in done.stderr
        wanted = ["h0002", "h0000", "h0005", "h0000"]
        done = network.run(["-c", WHERE], LaunchOptions(hosts=wanted, timeout=60))
        assert done.stdout.split()[:-1] == wanted


@needs_root
def test_a_rank_file_places_ranks(tmp_path):
    if "Open MPI" not in subprocess.run([*mpirun()[:1], "--version"], capture_output=True, text=True).stdout:
        pytest.skip("rank files are Open MPI's")
    wanted = ["h0002", "h0000", "h0003", "h0001"]
    path = tmp_path / "ranks"
    path.write_text("".join(f"rank {rank}={host} slot=0\n" for rank, host in enumerate(wanted)))
    with Emulated("2x2") as network:
        placement = ["--map-by", f"rankfile:file={path}"]
        done = network.run(["-c", WHERE], LaunchOptions(placement=placement, timeout=60))
    assert done.stdout.split()[:-1] == wanted, done.stderr


@needs_root
def test_data_crosses_the_links_and_a_second_job_loads_them():
    mpirun()
    code = (
        "from mpi4py import MPI; import numpy as np, time; c = MPI.COMM_WORLD; a = np.zeros((c.size, 250_000), 'b');"
        "b = a.copy(); c.Barrier(); t = time.perf_counter(); c.Alltoall(a, b); c.Barrier();"
        "c.rank == 0 and print(time.perf_counter() - t)"
    )
    with Emulated("2x2", LinkRates.parse("20M", "20M")) as network:
        alone = network.run(["-c", code], LaunchOptions(timeout=60))
        loaded = network.run(["-c", code], LaunchOptions(timeout=60, background=10_000))
    assert alone.returncode == loaded.returncode == 0, alone.stderr + loaded.stderr
    bound = 4 * 250_000 / (20 * M)  # each leaf's uplink carries two hosts' blocks to two hosts
    assert float(alone.stdout) > 0.8 * bound
    assert float(loaded.stdout) > 0.8 * bound
    assert alone.usage.nbytes > 12 * 250_000
    assert alone.background == ""
    assert "alltoalls" in loaded.background, loaded.background
    rounds = int(re.search(r"background: (\d+) alltoalls of 10000 bytes\n", loaded.background)[1])
    assert rounds >= 1
    assert loaded.usage.nbytes > 12 * (250_000 + 10_000)


@needs_root
def test_a_job_beyond_its_time_is_ended():
    mpirun()
    with Emulated("1x2") as network:
        with pytest.raises(BenchmarkError, match="within 1 s"):
            network.run(["-c", "import time; time.sleep(200)"], LaunchOptions(timeout=1))
        assert processes(network.state.namespaces) == []


@needs_root
def test_no_link_is_faster_than_its_rate():
    with Emulated("2x2", LinkRates.parse("40M", "20M")) as network:
        measured = list(measure_rates(network.fabric, network.state, seconds=0.4))
    assert [link.nominal for link in measured] == [40e6, 20e6]
    for link in measured:
        assert min(link.shares) > 0.0
        assert max(link.shares) < 1.25


FLOOD = """
import socket, sys, threading
here, there, back, flows = sys.argv[1], sys.argv[2], 4 << 20, 16
def read(one, size):
    while size > 0:
        size -= len(one.recv(1 << 16)) or size
if here == there:
    server = socket.create_server((here, 20001), backlog=flows)
    print("ready", flush=True)
    ends = [server.accept()[0] for _ in range(flows)]
    threading.Thread(target=ends[0].sendall, args=(bytes(back),)).start()
else:
    ends = [socket.create_connection((there, 20001)) for _ in range(flows)]
    parts = [threading.Thread(target=one.sendall, args=(bytes(1 << 18),)) for one in ends[::-1]]
    parts.append(threading.Thread(target=read, args=(ends[0], back)))
    [one.start() for one in parts], [one.join() for one in parts]
if here == there:
    [read(one, 1 << 18) for one in ends]
print(dict(zip(*(line.split() for line in open("/proc/net/snmp") if line.startswith("Tcp:"))))["RetransSegs"])
"""


@needs_root
def test_nothing_is_sent_again_where_acknowledgements_overtake_data_by_far():
    with Emulated("1x2", host="100M") as network:
        hosts, ends = network.fabric.hosts, []
        for number in (1, 0):
            words = [sys.executable, "-c", FLOOD, address(number, DATA), address(1, DATA)]
            ends.append(subprocess.Popen(enter(network.state, hosts[number], words), stdout=subprocess.PIPE, text=True))
            assert number == 0 or ends[0].stdout.readline() == "ready\n"
        assert [int(one.communicate(timeout=60)[0]) for one in ends] == [0, 0]
