"""Tables of docs/lab/jobs.md: ``python -m benchmarks.many_jobs TABLE [FILE ...]``, in Markdown.

The tables are: thunder LOG, routes FABRIC [TABLES [JOBS]], speed LOG, pairs LOG SPEEDUPS [TURNS], million, accasim LOG
PYTHON (the log of SDSC SP2; a Python that has accasim); and pictures FOLDER. The other tables of that page are in
``studies``.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from studies.jokanovic.cli import COLUMNS, cells_of
from studies.tables import table_lines
from topompi.colocation.scheduling.allocators import Halves, Matched
from topompi.colocation.scheduling.halves import on_halves
from topompi.colocation.scheduling.speed import ColocatedSpeed
from topompi.colocation.scheduling.table import rate_table
from topompi.colocation.speedups.files import read_speedups
from topompi.jobs import Backfill, Cluster, read_swf, simulate
from topompi.jobs.drawing import draw
from topompi.jobs.metrics import summarise
from topompi.jobs.workload.generate import capacity_mix, power_of_two_mix
from topompi.topology import load_routes
from topompi.views.cluster import cluster_of


def row(*cells: object) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def thunder(path: str) -> None:
    """Print figures of every allocator on the first jobs of a real log."""
    log, cluster = read_swf(path, 4).select(slice(20_000)), Cluster.regular(1002, 18, 18)
    names = ("first", "contiguous", "bestfit", "exclusive", "isolated", "leaf-exclusive", "blocks")
    rows = ((name, *cells_of(simulate(log, cluster, allocator=name))) for name in names)
    for line in table_lines(["policy", *COLUMNS], rows):
        print(line, flush=True)


def routes(fabric: str, tables: str | None = None, jobs: str = "1000") -> None:
    """Print the cost of real isolation on real forwarding tables."""
    found = load_routes(fabric, tables)
    cluster = cluster_of(found)
    load_of_jobs = capacity_mix(np.random.default_rng(1), int(jobs), cluster.num_nodes, 0.85)
    for name in ("first", "isolated", "disjoint"):
        began = time.perf_counter()
        outcome = simulate(load_of_jobs, cluster, allocator=name)
        one, spent = summarise(outcome), time.perf_counter() - began
        cells = f"{one.mean_wait / 60:.1f}", f"{one.makespan / 86400:.2f}", f"{int(jobs) / spent:,.0f}"
        print(row(name, *cells), flush=True)


def speed(path: str) -> None:
    """Print jobs per second of processor time."""
    log, cluster = read_swf(path, 4), Cluster.regular(1002, 18, 18)
    for name in ("counts", "first", "isolated"):
        for depth in (0, 1, None) if name == "counts" else (1,):
            spent = _spent(lambda name=name, depth=depth: simulate(log, cluster, Backfill(depth), name))  # type: ignore[misc]
            print(row(name, Backfill(depth).name, f"{len(log) / spent:,.0f}"), flush=True)


def pairs(path: str, speedups: str, turns: str = "1") -> None:
    """Print jobs per second of processor time on half nodes, with programs drawn from a file of speed-ups.

    Jobs run in turn without pairs, beside any neighbour, and matched: the median of the turns, the least and the most,
    and the median time relative to that without pairs.
    """
    table, cluster = rate_table(read_speedups(speedups).complete()), Cluster.regular(1002, 18, 18)
    log = read_swf(path, 4)
    jobs, halves = on_halves(log, table.programs, stretch=1 / table.slowest), cluster.with_slots(2)
    ways: dict[str, Callable[[], object]] = {
        "first": lambda: simulate(log, cluster, "easy", "first"),
        "halves": lambda: simulate(jobs, halves, "easy", Halves(), ColocatedSpeed(table)),
        "matched": lambda: simulate(jobs, halves, "easy", Matched(table), ColocatedSpeed(table)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(int(turns)):
        for name, run in ways.items():
            seconds[name].append(_spent(run))
    for name, spent in seconds.items():
        rates = np.quantile(len(log) / np.array(spent), (0.5, 0, 1))
        times = np.median(np.array(spent) / np.array(seconds["first"]))
        print(row(name, f"{len(log):,}", *(f"{rate:,.0f}" for rate in rates), f"{times:.1f}"), flush=True)


def _spent(run: Callable[[], object]) -> float:
    """Return the processor seconds of a call."""
    began = time.process_time()
    run()
    return time.process_time() - began


def million() -> None:
    """Print processor seconds, and peak memory in GB, for a million drawn jobs on 100,000 nodes, leaves=18x18."""
    jobs, cluster = capacity_mix(np.random.default_rng(1), 10**6, 100_000), Cluster.regular(100_000, 18, 18)
    for name in ("counts", "first", "isolated"):
        began = time.process_time()
        simulate(jobs, cluster, allocator=name)
        spent, peak = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(row(name, f"{spent:.1f}", f"{peak:.2f}"), flush=True)


def accasim(path: str, python: str, count: str = "3000") -> None:
    """Print jobs per second of AccaSim and of topompi, run on the same jobs one after another."""
    script = Path(__file__).with_name("accasim_rate.py")
    words = [python, "-P", str(script), path, count, "128"]  # -P, because its folder has modules that hide others
    answer = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    rate = float(answer.split()[-1])
    print(row("AccaSim", f"{rate:,.0f}", "1"), flush=True)
    jobs, cluster = read_swf(path).select(slice(int(count))), Cluster.regular(128, 128)
    own = len(jobs) / _spent(lambda: simulate(jobs, cluster, allocator="first"))
    print(row("topompi", f"{own:,.0f}", f"{own / rate:,.0f}"), flush=True)


def pictures(folder: str) -> None:
    """Draw the same load under each policy: jobs of at most half the machine and four hours."""
    jobs = power_of_two_mix(np.random.default_rng(2), 140, 288, 2.5)
    jobs = jobs.select(jobs.nodes <= 144)
    jobs = replace(jobs, run=np.minimum(jobs.run, 4 * 3600), request=np.minimum(jobs.request, 4 * 3600))
    for name in ("first", "contiguous", "bestfit", "exclusive", "blocks", "isolated", "leaf-exclusive", "disjoint"):
        draw(simulate(jobs, Cluster.regular(288, 18, 4), allocator=name), Path(folder) / f"{name}.svg")


PROGRAMS: dict[str, Callable[..., None]] = {
    one.__name__: one for one in (thunder, routes, speed, pairs, million, accasim, pictures)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
