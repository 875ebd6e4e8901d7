"""The bridge beside a real Slurm that is disturbed while 200 jobs run."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime

import numpy as np
import pytest

from osu_like_bench.emulate import Emulated
from osu_like_bench.emulate.slurm import EmulatedSlurm, SlurmOptions
from tests.slurm import skip_without_slurm
from tests.support import ROOT
from topompi.inputs.hostlist import expand
from topompi.machine.jobs.isolation import check
from topompi.machine.slurm.setup import guard, partition_lines
from topompi.machine.slurm.view import BridgeRules
from topompi.topology.sources import load_routes
from topompi.views.cluster import cluster_of

pytestmark = pytest.mark.long
JOBS = 200
SCALE = 240  # seconds within which all jobs must have ended


class Bridged(EmulatedSlurm):
    """A cluster with the partitions of the bridge, and the bridge as a process that can be killed."""

    bridge: subprocess.Popen[bytes] | None = None

    def begin(self, *options: str) -> None:
        """Start the bridge."""
        words = ["--every", "0.25", "--set", "timeout=1", "--set", "failures=6", *options]
        line = [sys.executable, "-m", "topompi", "slurm", "bridge", *words]
        with open(self.folder / "bridge.log", "a", encoding="utf-8") as log:
            self.bridge = subprocess.Popen(self.command(self.hosts[0], line), stderr=log, cwd=ROOT)

    def end(self, number: int) -> None:
        """Send a signal to the bridge and wait until it has ended."""
        assert self.bridge is not None
        self.bridge.send_signal(number)
        self.bridge.wait(30)

    def told(self, *command: str) -> str:
        """The output of a command that must succeed."""
        done = self.run(command)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def submit(self, *words: str, seconds: float = 1.0) -> str:
        """The number of a new job that sleeps."""
        return self.told("sbatch", "--parsable", "--output=/dev/null", *words, f"--wrap=sleep {seconds}").strip()

    def door(self) -> str:
        """Whether the door is up or down."""
        return self.told("sinfo", "--noheader", "--partition=door", "--format=%a").split()[0]

    def completed(self) -> list[dict[str, str]]:
        """The fields of all jobs that have ended."""
        lines = (self.folder / "completed").read_text().splitlines()
        return [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]

    def events(self) -> list[dict[str, object]]:
        """The events of the bridge's log."""
        lines = (self.folder / "bridge.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def wait_until(self, happened, seconds: float = SCALE) -> None:
        """Wait until a function returns a true value; fail after ``seconds``."""
        until = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < until, self.run(["squeue", "--all"]).stdout + str(self.events()[-5:])
            time.sleep(0.2)


@pytest.fixture(scope="module")
def bridged():
    skip_without_slurm()
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(dir="/run") as folder:
        patch.setenv("TOPOMPI_EMULATE_STATE", folder)
        patch.setenv("PYTHONPATH", str(ROOT))
        with Emulated("4x4") as network:
            own = partition_lines(BridgeRules(), {"MaxTime": "5"}).replace("Default=YES", "").splitlines()
            log = f"JobCompLoc={network.state.path}/slurm/completed"
            lines = (
                *own,
                "JobCompType=jobcomp/filetxt",
                log,
                "JobSubmitPlugins=lua",
                "SchedulerParameters=bf_interval=1",
            )
            options = SlurmOptions(lines=lines, scheduler="sched/backfill", minutes=5)
            cluster = Bridged(network, options)
            configure = cluster._configure
            patch.setattr(cluster, "_configure", lambda: (configure(), _guard(cluster)))
            with cluster:
                yield cluster


def _guard(cluster):
    (cluster.folder / "job_submit.lua").write_text(guard(BridgeRules()))


def test_two_hundred_jobs_run_apart_while_everything_around_them_fails(bridged):
    rng, fabric = random.Random(7), str(bridged._network.path)
    bridged.begin("--policy", "disjoint", "--topology", fabric)
    bridged.wait_until(lambda: bridged.door() == "down", 30)
    ids = []
    for number in range(JOBS - 20):
        size = rng.choice([1, 1, 2, 2, 3, 4, 5, 6, 9])
        ids.append(bridged.submit("-p", "door", f"-N{size}", "-t1", seconds=rng.uniform(0.2, 2)))
        if number == 20:
            bridged.submit("-p", "door", "-N2", "-t1", "--array=1-12%2")
            ids.append(bridged.submit("-p", "door", "-N1", "-t1", f"--dependency=afterok:{ids[-1]}"))
            ids.append(bridged.submit("-p", "door", "-N1", "-t1", "--begin=now+20"))
            ids.append(bridged.submit("-p", "door", "-N2", "-t1", "--nodelist=h0001,h0002"))
            held = bridged.submit("-p", "door", "-N1", "-t1", "--hold")
            requeued = bridged.submit("-p", "door", "-N1", "-t1", "--requeue", "--job-name=again", seconds=3)
            bridged.submit("-p", "all", "-N6", "-t1", "--job-name=foreign", seconds=8)
            together = ["-p", "door", "-N1", "-t1", ":", "-p", "door", "-N1", "-t1"]
            bridged.submit(*together)
    for turn in range(10):
        time.sleep(rng.uniform(1.5, 3))
        bridged.end(signal.SIGKILL)
        if turn in (3, 7):
            bridged.restart_controller()
        bridged.begin("--policy", "disjoint", "--topology", fabric)
        if turn in (1, 5):
            time.sleep(1)
            bridged.pause_controller(3)
        if turn == 4:
            bridged.told("scontrol", "update", "NodeName=h0006", "State=DRAIN", "Reason=test")
        if turn == 6:
            bridged.told("scontrol", "update", "NodeName=h0006", "State=RESUME")
            bridged.told("scontrol", "release", held)
        if turn == 8 and f"{requeued} " in bridged.told("squeue", "-h", "-t", "R", "-o", "%i "):
            bridged.told("scontrol", "requeue", requeued)
    bridged.wait_until(lambda: not bridged.told("squeue", "--all", "--noheader").strip())
    jobs = bridged.completed()
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}
    assert len(jobs) == JOBS - 20 + 12 + 8  # of the list, the array, and the others
    ours = [job for job in jobs if job["Partition"] == "run"]
    print(f"{len(jobs)} jobs, {len(ours)} placed; {len(bridged.events())} events")
    # A controller that is started again opens the partition until the bridge has seen it: on a busy machine, for long.
    assert len(ours) >= JOBS // 2
    assert sharing_pairs(ours, bridged.hosts, fabric) == []
    assert most_at_once([job for job in jobs if job.get("ArrayJobId")]) <= 2
    bridged.end(signal.SIGTERM)
    assert bridged.door() == "up"


def seconds_of(job):
    return [int(datetime.fromisoformat(job[name]).timestamp()) for name in ("StartTime", "EndTime")]


def sharing_pairs(jobs, hosts, fabric):
    """Pairs of jobs that ran at the same time, and could use the same link."""
    cluster, place = cluster_of(load_routes(fabric)), {host: number for number, host in enumerate(hosts)}
    nodes = [np.array([place[host] for host in expand(job["NodeList"])]) for job in jobs]
    times, found = [seconds_of(job) for job in jobs], set()
    for moment in sorted({begin for begin, _ in times}):
        live = {at: nodes[at] for at, (begin, end) in enumerate(times) if begin <= moment < end}
        found |= {(jobs[a]["JobId"], jobs[b]["JobId"]) for a, b in check(live, cluster.links).pairs}
    return sorted(found)


def test_the_check_of_this_test_finds_jobs_that_share_links_at_the_same_time():
    hosts = [f"h{host:04}" for host in range(16)]
    spread = [("1", "h[0000,0004]", 0, 9), ("2", "h[0001,0005]", 5, 12), ("3", "h[0002,0006]", 12, 14)]
    time_of = "2026-01-01T00:00:{:02}".format
    names = "JobId", "NodeList", "StartTime", "EndTime"
    jobs = [dict(zip(names, (job, nodes, time_of(a), time_of(b)), strict=True)) for job, nodes, a, b in spread]
    assert sharing_pairs(jobs, hosts, "xgft:4,4;1,1") == [("1", "2")]


def most_at_once(jobs):
    times = [seconds_of(job) for job in jobs]
    return max((sum(a <= moment < b for a, b in times) for moment, _ in times), default=0)


def test_after_a_kill_the_units_last_command_gives_all_jobs_to_slurm(bridged):
    bridged.begin("--policy", "isolated")
    bridged.wait_until(lambda: bridged.door() == "down", 30)
    ids = [bridged.submit("-p", "door", "-N7", "-t1", seconds=1) for _ in range(3)]
    bridged.end(signal.SIGKILL)
    time.sleep(1)
    assert bridged.told("squeue", "--noheader", "--all").strip()
    bridged.told("scontrol", "update", "PartitionName=door", "State=UP")
    bridged.wait_until(lambda: not bridged.told("squeue", "--all", "--noheader").strip(), 60)
    ended = {job["JobId"]: job["JobState"] for job in bridged.completed()}
    assert [ended[number] for number in ids] == ["COMPLETED"] * 3


def test_only_root_puts_jobs_into_the_bridges_partition(bridged):
    for path in (bridged.folder / "munge.socket", *[*bridged.folder.parents][:-1]):
        os.chmod(path, 0o777 if path.name == "munge.socket" else path.stat().st_mode | 0o011)
    (bridged.folder / "slurm.conf").chmod(0o644)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    submit = ["sbatch", "--parsable", "--output=/dev/null", "--chdir=/", "-N1", "-t1", "--wrap=sleep 1"]
    refused = bridged.run([*nobody, *submit, "-p", "run"])
    assert refused.returncode != 0
    assert "expecting jobs from the bridge only" in refused.stderr
    taken = bridged.run([*nobody, *submit, "-p", "door", "--hold"])
    assert taken.returncode == 0, taken.stderr
    moved = bridged.run([*nobody, "scontrol", "update", f"JobId={taken.stdout.strip()}", "Partition=run"])
    assert moved.returncode != 0
    bridged.told("scontrol", "update", f"JobId={taken.stdout.strip()}", "Partition=run")
    bridged.told("scancel", taken.stdout.strip())
