"""Part ``throughput``: a list of jobs that communicate, by Slurm alone, the bridge, and users who choose nodes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from osu_like_bench.emulate.monitor import Monitor
from osu_like_bench.emulate.spec import parse_rate
from topompi.errors import BenchmarkError
from topompi.inputs.hostlist import compress, expand

from .analysis import completed, output, sharing_pairs
from .bench import LAUNCH, ROOT, Bench, bench, ended
from .jobs import Job, drawn, kinds_of, script
from .plan import Plan, Results

__all__ = ["POLICIES", "measure"]

POLICIES = ("slurm", "isolated", "disjoint", "select")
DOOR = {"isolated", "disjoint"}  # policies of the bridge
LONGEST = 360.0  # maximum seconds of a run after the last submission
ALONE = 60.0  # maximum seconds of a job on the empty cluster
SUBMIT = Path(__file__).with_name("submit.sh")


def jobs_of(plan: Plan) -> list[Job]:
    """Return the list of jobs of a plan."""
    rate, uplink = (8 * parse_rate(text, "--rates") for text in (plan.rate, plan.uplinks))
    return drawn(plan.seed, plan.seconds, plan.gap, plan.per_leaf, rate, uplink, plan.jobs)


def measure(plan: Plan, results: Results) -> None:
    """Measure the jobs alone, and then the list by each policy in turn; cells that are there are skipped."""
    jobs = jobs_of(plan)
    results.cell("alone", lambda: _alone(plan, kinds_of(jobs)))
    for repetition in range(plan.repetitions):
        # Each repetition begins with another policy, so that a slow change of the machine favours none.
        turn = repetition % len(POLICIES)
        for policy in (*POLICIES[turn:], *POLICIES[:turn]):
            if policy in plan.policies:
                results.cell(f"throughput/{policy}/{repetition}", partial(_run, plan, jobs, policy))


def _alone(plan: Plan, kinds: Sequence[Job]) -> dict[str, Any]:
    """Measure each kind and size on successive hosts of the empty cluster, from the first host of a leaf switch on."""
    found = {}
    with bench(plan.spec, plan.rate, plan.uplinks) as cluster:
        for job in kinds:
            nodes = compress(cluster.hosts[: job.nodes])
            with Monitor(cluster.network.fabric, cluster.network.state) as monitor:
                text = script(job, str(cluster.program), LAUNCH)
                cluster.submit(text, f"alone{job.number}", f"--nodelist={nodes}")
                cluster.wait_until_empty(ALONE)
            said = output((cluster.work / f"alone{job.number}.out").read_text())
            if "seconds" not in said:
                raise BenchmarkError(f"studies slurm: expecting the seconds of {job.kind} {job.nodes}, got {said}")
            usage = monitor.usage
            found[f"{job.kind} {job.nodes}"] = {
                "seconds": float(said["seconds"]),
                "predicted": job.seconds,
                "whole": float(said["end"]) - float(said["start"]),
                "idle": usage.idle,
                "busiest": usage.busiest,
            }
            print(f"  {job.kind} {job.nodes}: {said['seconds']} s, by the rates {job.seconds} s; {usage}", flush=True)
    return found


def _run(plan: Plan, jobs: Sequence[Job], policy: str) -> dict[str, Any]:
    """Run the list of jobs by a policy; return the record of the run."""
    with bench(plan.spec, plan.rate, plan.uplinks) as cluster:
        if policy in DOOR:
            cluster.begin_bridge(policy)
        with Monitor(cluster.network.fabric, cluster.network.state) as monitor:
            submitted, ways = _submitted(cluster, jobs, policy)
            cluster.wait_until_empty(LONGEST)
        cluster.end_bridge()
        records = [_record(cluster, job, *submitted[job.number]) for job in jobs]
        finished = completed((cluster.folder / "completed").read_text())
        pairs = sharing_pairs(finished, cluster.cluster)
        usage = monitor.usage
    begin, end = min(one["submit"] for one in records), max(one["end"] for one in records)
    print(f"  {policy}: {end - begin:.1f} s, {len(pairs)} pairs shared links; {usage}", flush=True)
    return {
        "policy": policy,
        "jobs": records,
        "pairs": pairs,
        "ways": ways,
        "idle": usage.idle,
        "busiest": usage.busiest,
        "nbytes": usage.nbytes,
    }


def _submitted(cluster: Bench, jobs: Sequence[Job], policy: str) -> tuple[dict[int, tuple[str, float]], dict[str, int]]:
    """Submit the jobs at their times; return number in Slurm and time of submission of each, and counts of the ways."""
    begin, found, users = time.time(), {}, {}
    try:
        for job in jobs:
            time.sleep(max(0.0, begin + job.arrival - time.time()))
            text, now = script(job, str(cluster.program), LAUNCH), time.time()
            if policy == "select":
                users[job.number] = now, _user(cluster, job, text)
                continue
            partition = "door" if policy in DOOR else "all"
            found[job.number] = cluster.submit(text, f"job{job.number}", f"--partition={partition}"), now
        ways: Counter[str] = Counter()
        for number, (now, user) in users.items():
            said, _ = user.communicate(timeout=120)
            if user.returncode or len(said.split()) != 2:
                raise BenchmarkError(f"{SUBMIT.name}: expecting a job's number, got {said!r}")
            name, way = said.split()
            found[number] = name, now
            ways[way] += 1
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"{SUBMIT.name}: expecting an end within 120 s, got none") from None
    finally:
        ended([user for _, user in users.values()])
    return found, dict(ways)


def _user(cluster: Bench, job: Job, text: str) -> subprocess.Popen[str]:
    """Start a user's script that chooses idle nodes and submits a job."""
    path = cluster.script(text, f"job{job.number}")
    words = [str(SUBMIT), str(job.nodes), str(cluster.network.path), str(path), f"--output={path}.out"]
    line = cluster.command(cluster.hosts[0], ["sh", *words])
    own = {"LOCK": str(cluster.work / "lock"), "TOPOMPI": f"{shlex.quote(sys.executable)} -m topompi"}
    return subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, **own}
    )


def _record(cluster: Bench, job: Job, name: str, submit: float) -> dict[str, Any]:
    path = cluster.work / f"job{job.number}.out"
    said = output(path.read_text()) if path.exists() else {}
    if "end" not in said or "failed" in said or (job.rounds and int(said.get("ranks", 0)) != job.nodes):
        raise BenchmarkError(f"studies slurm: expecting job {job.number} ({job.kind} {job.nodes}) to end, got {said}")
    return {
        "id": name,
        "number": job.number,
        "kind": job.kind,
        "size": job.nodes,
        "rounds": job.rounds,
        "submit": submit,
        "start": float(said["start"]),
        "end": float(said["end"]),
        "seconds": float(said.get("seconds", job.seconds)),
        "hosts": sorted(expand(said["hosts_list"])),
    }
