"""Large fabrics: processor seconds and memory to load one, and to place a job of a thousand scattered hosts.

    python -m benchmarks.fabrics                     three fabrics
        python -m benchmarks.fabrics 'kary:36,3'         other fabrics

Each fabric has a process of its own, whose peak memory is reported; topompi is imported before the clock starts.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

from topompi.topology import TopologyInterface, load_routes

__all__ = ["main", "measure"]

SPECS = ("stampede", "XGFT(3; 36,36,39; 1,18,18)", "XGFT(3; 36,36,39; 1,36,36)", "torus:16x16x16", "dragonfly:16,8,8")
JOB = 1024


def measure(spec: str, size: int = JOB) -> dict[str, Any]:
    """Load a fabric and place a job; return hosts, switches, CPU seconds, and the peak memory of this process in MB.

    :param spec: a topology source.
    :param size: number of hosts of the job, chosen at random with seed 0.
    """
    start = time.process_time()
    routes = load_routes(spec)
    loaded = time.process_time()
    hosts = routes.fabric.hosts
    chosen = np.sort(np.random.default_rng(0).choice(len(hosts), min(size, len(hosts)), replace=False))
    begin = time.process_time()
    job = TopologyInterface.place([hosts[host] for host in chosen.tolist()], routes)
    depth, shared = job.tree.depth, len(job.sharing_groups)
    placed = time.process_time()
    return {
        "spec": spec,
        "hosts": len(hosts),
        "switches": routes.fabric.num_switches,
        "load": loaded - start,
        "place": placed - begin,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "depth": depth,
        "shared": shared,
    }


def main(arguments: list[str]) -> None:
    """Print a Markdown table, one row per fabric."""
    if arguments[:1] == ["--one"]:
        print(json.dumps(measure(arguments[1])))
        return
    print(f"| fabric | hosts | switches | load | place {JOB:,} hosts | memory |\n| --- | --- | --- | --- | --- | --- |")
    for spec in arguments or SPECS:
        command = [sys.executable, "-m", "benchmarks.fabrics", "--one", spec]
        row = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        cells = f"{row['load']:.2f} s | {row['place']:.2f} s | {row['megabytes']:.0f} MB"
        print(f"| `{spec}` | {row['hosts']:,} | {row['switches']:,} | {cells} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
