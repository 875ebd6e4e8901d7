"""Part ``latency``: seconds from submission to start by Slurm alone and by the bridge, and the bridge's own costs."""

from __future__ import annotations

import random
import re
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from topompi.errors import BenchmarkError

from .analysis import output
from .bench import Bench, bench
from .plan import Plan, Results

__all__ = ["BRIDGES", "measure"]

BRIDGES = ("1", "0.25")  # seconds between two passes
LISTEN = "127.0.0.1:9109"  # in the network of the first host
LONGEST = 30.0
_JOB = "#!/bin/sh\n#SBATCH --nodes=1 --ntasks=1 --exclusive --time=1\necho start $(date +%s.%N)\n"
_SLEEP = "#!/bin/sh\n#SBATCH --nodes=1 --ntasks=1 --exclusive --time=1\nsleep 2\n"
_FETCH = f"import urllib.request as u; print(u.urlopen('http://{LISTEN}/metrics', timeout=10).read().decode())"
_RSS = re.compile(r"VmRSS:\s+([0-9]+) kB")
_METRIC = re.compile(r"^topompi_bridge_(\w+) ([0-9.e+-]+)$", re.MULTILINE)


def measure(plan: Plan, results: Results) -> None:
    """Measure the latency by Slurm alone, and by the bridge at each pace; cells that are there are skipped."""
    results.cell("latency/slurm", lambda: _starts(plan, None))
    for seconds in BRIDGES:
        results.cell(f"latency/bridge {seconds}", partial(_starts, plan, seconds))
    results.cell("latency/costs", lambda: _costs(plan))


def _starts(plan: Plan, seconds: str | None) -> list[float]:
    """Submit one job after another to the idle cluster; return the seconds until each has started."""
    rng, found = random.Random(plan.seed), []
    with bench(plan.spec, plan.rate, plan.uplinks) as cluster:
        if seconds is not None:
            cluster.begin_bridge("isolated", "--every", seconds)
        for number in range(plan.starts):
            cluster.wait_until_empty(LONGEST)
            time.sleep(0.5 + rng.random())  # at any time between two passes
            begin = time.time()
            cluster.submit(_JOB, f"job{number}", f"--partition={'all' if seconds is None else 'door'}")
            path = cluster.work / f"job{number}.out"
            cluster.wait_until(partial(_started, path), LONGEST, "a start", 0.1)
            found.append(_started(path) - begin)
    print(f"  {' '.join(f'{value:.2f}' for value in found)} s", flush=True)
    return found


def _started(path: Path) -> float:
    return float(output(path.read_text()).get("start", "0")) if path.exists() else 0.0


def _costs(plan: Plan) -> dict[str, Any]:
    """Let the bridge place as many jobs as the cluster has nodes in its first pass; return its times and memory."""
    with bench(plan.spec, plan.rate, plan.uplinks) as cluster:
        cluster.told("scontrol", "update", "PartitionName=door", "State=DOWN")
        for number in range(2 * plan.nodes):
            cluster.submit(_SLEEP, f"job{number}", "--partition=door")
        cluster.begin_bridge("disjoint", "--listen", LISTEN)
        cluster.wait_until(lambda: _metrics(cluster).get("passes_total", 0) >= 1, 2 * LONGEST, "a pass")
        first = _metrics(cluster)
        cluster.wait_until_empty(2 * LONGEST)
        assert cluster.bridge is not None  # begin_bridge has started it
        memory = _RSS.search(Path(f"/proc/{cluster.bridge.pid}/status").read_text())
        found = {
            "jobs in the first pass": first["placed_total"],
            "seconds of the first pass": first["pass_seconds_max"],
            "seconds of a pass, median": _metrics(cluster)["pass_seconds_median"],
            "memory, MB": int(memory[1]) / 1000 if memory else None,
        }
    print(f"  {found}", flush=True)
    return found


def _metrics(cluster: Bench) -> dict[str, float]:
    """Ask the bridge for its counters."""
    try:
        text = cluster.told(sys.executable, "-c", _FETCH)
    except BenchmarkError:
        return {}  # it does not listen yet
    return {name: float(value) for name, value in _METRIC.findall(text)}
