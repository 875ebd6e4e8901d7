"""Time and memory of a pass of the bridge on the recorded text of a large Slurm: ``python -m benchmarks.slurm_bridge``.

The cluster is full of jobs that the policy itself placed; 5,000 further jobs wait. Each pass follows one event: a job
has ended, and a new one has arrived. The times are those of reading the text, of the decision of a bridge that has just
started, and of decisions with the state that it keeps.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from topompi.inputs.hostlist import compress, expand
from topompi.jobs import Cluster
from topompi.jobs.now import node_names
from topompi.slurm.bridge import Planner, Policy
from topompi.slurm.controller import Move
from topompi.slurm.snapshot import SlurmJob, Snapshot, read_snapshot
from topompi.topology.sources import load_routes
from topompi.views.cluster import cluster_of

NOW = 1_790_000_000


def main() -> None:
    """Run the measurement and print a row per policy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cluster", default="xgft:20,20,16;1,20,20", help="topology source (6,400 hosts)")
    parser.add_argument("--waiting", type=int, default=5_000, help="waiting jobs")
    parser.add_argument("--passes", type=int, default=100, help="passes that are timed")
    parser.add_argument("--policies", nargs="+", default=["isolated", "disjoint"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cluster = cluster_of(load_routes(options.cluster))
    rows = [_measure(cluster, policy, options.waiting, options.passes) for policy in options.policies]
    for row in rows:
        print(json.dumps(row) if options.json else "  ".join(f"{name} {value}" for name, value in row.items()))


def _measure(cluster: Cluster, policy: str, waiting: int, passes: int) -> dict[str, object]:
    rng = np.random.default_rng(1)
    begin = time.perf_counter()
    planner, snapshot = Planner(cluster, Policy(allocator=policy)), Snapshot(NOW)
    tables = time.perf_counter() - begin
    names = node_names(cluster)
    states = dict.fromkeys(names, frozenset({"idle"}))
    snapshot = Snapshot(NOW, (), states, {"door": False, "run": True, "all": True}, {"run": frozenset(names)})
    jobs = {str(number): _job(number, rng) for number in range(1, waiting + len(names) // 8)}
    jobs = _carried_out(jobs, planner, replace(snapshot, jobs=tuple(jobs.values())))
    text = _text(jobs)
    reading = _median(lambda: read_snapshot(NOW, text, "", ""), 5)
    full = replace(snapshot, jobs=tuple(jobs.values()))
    fresh = Planner(cluster, Policy(allocator=policy))
    first = _median(lambda: fresh.decide(full), 1)
    times, placed = [], 0
    for number in range(passes):
        now = NOW + 60 + number
        ended = rng.choice([name for name, job in jobs.items() if job.hosts])
        del jobs[str(ended)]
        new = _job(10**6 + number, rng)
        jobs[new.id] = new
        seen = replace(snapshot, now=now, jobs=tuple(jobs.values()))
        begin = time.perf_counter()
        decision = planner.decide(seen)
        times.append(time.perf_counter() - begin)
        placed += sum(move.partition == "run" for move in decision.moves)
        jobs = _started(jobs, decision.moves, now)
    return {
        "policy": policy,
        "hosts": len(names),
        "running": sum(bool(job.hosts) for job in jobs.values()),
        "waiting": sum(not job.hosts for job in jobs.values()),
        "planner_s": round(tables, 3),
        "read_ms": round(1e3 * reading, 1),
        "first_pass_ms": round(1e3 * first, 1),
        "pass_ms_median": round(1e3 * float(np.median(times)), 1),
        "pass_ms_p95": round(1e3 * float(np.quantile(times, 0.95)), 1),
        "pass_ms_max": round(1e3 * max(times), 1),
        "placed": placed,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _job(number: int, rng: np.random.Generator) -> SlurmJob:
    """Return a waiting job of 1 to 512 nodes, mostly few, and a time limit of 1 to 24 hours."""
    size = int(2 ** rng.triangular(0, 2, 9))
    limit = 3600 * int(rng.integers(1, 25))
    return SlurmJob(str(number), "door", "PENDING", "PartitionDown", size, 1, limit, NOW - 10**6 + number)


def _carried_out(jobs: dict[str, SlurmJob], planner: Planner, snapshot: Snapshot) -> dict[str, SlurmJob]:
    return _started(jobs, planner.decide(snapshot).moves, snapshot.now)


def _started(jobs: dict[str, SlurmJob], moves: Sequence[Move], now: int) -> dict[str, SlurmJob]:
    for move in moves:
        job = replace(jobs[move.job], mark=move.mark)
        if move.partition == "run":
            hosts = tuple(expand(move.hosts or ""))
            job = replace(job, partition="run", state="RUNNING", hosts=hosts, start=now)
        jobs[move.job] = job
    return jobs


def _text(jobs: dict[str, SlurmJob]) -> str:
    lines = []
    for job in jobs.values():
        numbers = str(job.nodes), "1", f"{(job.limit or 0) // 3600}:00:00", str(job.submit), str(job.start)
        wishes = "N/A", "u", "", "", "(null)", "N/A", "(null)", compress(job.hosts)
        lines.append("\x1f".join([job.id, job.id, job.partition, job.state, "None", *numbers, *wishes]))
    return "\n".join(lines)


def _median(work: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return float(np.median(taken))


if __name__ == "__main__":
    main()
