"""The tables of docs/lab/jobs.md: ``python -m benchmarks.many_jobs TABLE [FILE ...]``, in Markdown.

Tables: pollard and blocks (drawn loads), thunder LOG, routes FABRIC [TABLES [JOBS]], speed LOG, million, accasim LOG
PYTHON (the log of SDSC SP2; a Python that has accasim); and pictures FOLDER.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from topompi.jobs import Backfill, Cluster, Outcome, Workload, read_swf, simulate
from topompi.jobs.drawing import draw
from topompi.jobs.metrics import average_hops, sharing, summarise
from topompi.jobs.study import POLLARD, Interval, break_even, interval
from topompi.jobs.workload.generate import capacity_mix, power_of_two_mix
from topompi.jobs.workload.transform import larger
from topompi.topology import load_routes
from topompi.views.cluster import cluster_of

SEEDS = range(8)
CAB, PINOT = Cluster.regular(1296, 18, 18), Cluster.regular(2592, 18, 18)
MARENOSTRUM = Cluster.of("MareNostrum", [18] * 172, [18] * 9 + [10])


def row(*cells: object) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def table(head: Sequence[str], lines: Iterator[Sequence[object]]) -> None:
    """Print a table line by line."""
    print(row(*head))
    print(row(*("---" for _ in head)))
    for line in lines:
        print(row(*line), flush=True)


def hours(found: Interval) -> str:
    """A mean and half its interval."""
    return f"{found.mean / 3600:.2f} ± {(found.high - found.mean) / 3600:.2f}"


def pollard() -> None:
    """Mean waits of the scenarios on drawn loads, and the break-even speed-up."""
    loads: dict[str, tuple[Callable[[int], Workload], Cluster]] = {
        "light (0.6), Cab": (lambda seed: drawn(seed, 0.6), CAB),
        "full (0.85), Cab": (lambda seed: drawn(seed, 0.85), CAB),
        "overloaded (1.1), Cab": (lambda seed: drawn(seed, 1.1), CAB),
        "2x of light, Cab": (lambda seed: larger(drawn(seed, 0.6), 2), CAB),
        "2x of light, Pinot": (lambda seed: larger(drawn(seed, 0.6), 2), PINOT),
        "3x of light, Pinot": (lambda seed: larger(drawn(seed, 0.6), 3), PINOT),
    }

    def lines() -> Iterator[Sequence[object]]:
        for name, (make, cluster) in loads.items():
            jobs = [make(seed) for seed in SEEDS]
            waits = []
            for allocator, speed in POLLARD.values():
                each = [
                    summarise(simulate(one, cluster, allocator=allocator, speed=speed.format(seed=seed))).mean_wait
                    for seed, one in zip(SEEDS, jobs, strict=True)
                ]
                waits.append(hours(interval(each)))
            pays = interval([break_even(one, cluster) for one in jobs])
            yield name, *waits, f"{pays.mean:.1f} % ({pays.low:.1f} to {pays.high:.1f})"

    table(["load, machine", *POLLARD, "break-even"], lines())


def drawn(seed: int, of: float) -> Workload:
    """A month's load of the kind of Cab's."""
    return capacity_mix(np.random.default_rng(seed), 12_000, CAB.num_nodes, of)


def figures(outcome: Outcome) -> tuple[str, ...]:
    """Cells for waits, makespan, use, packing and sharing."""
    one, shared = summarise(outcome), sharing(outcome)
    cells = f"{one.mean_wait / 60:,.1f}", f"{one.makespan / 86400:.1f}", f"{one.utilisation:.1%}"
    hops = np.nanmean(average_hops(outcome))
    pairs = f"{shared.leaf_pairs:,}", f"{shared.pod_pairs:,}"
    return (*cells, f"{hops:.2f}", f"{shared.percent:.1f}", f"{shared.partners:.2f}", *pairs)


FIGURES = ["wait, min", "makespan, d", "in use", "hops", "sharing, %", "partners", "leaf pairs", "pod pairs"]


def thunder(path: str) -> None:
    """Every allocator on the first jobs of a real log."""
    log, cluster = read_swf(path, 4).select(slice(20_000)), Cluster.regular(1002, 18, 18)
    names = ("first", "contiguous", "bestfit", "exclusive", "isolated", "leaf-exclusive", "blocks")
    table(["policy", *FIGURES], ((name, *figures(simulate(log, cluster, allocator=name))) for name in names))


def blocks() -> None:
    """The policies of Jokanovic on a drawn load, and virtual network blocks without each rule."""
    jobs = power_of_two_mix(np.random.default_rng(1), 3_000)
    names = ["first", "contiguous", "exclusive", "blocks", *(f"blocks-{rule}" for rule in "abcdef")]
    table(["policy", *FIGURES], ((name, *figures(simulate(jobs, MARENOSTRUM, allocator=name))) for name in names))


def routes(fabric: str, tables: str | None = None, jobs: str = "1000") -> None:
    """What true isolation costs on real forwarding tables."""
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
    """Jobs per second of processor time of each loop."""
    log, cluster = read_swf(path, 4), Cluster.regular(1002, 18, 18)
    small = replace(log.select(slice(20_000)), name="first 20,000")
    for compiled, jobs in ((True, log), (False, small)):
        for name in ("counts", "first", "isolated"):
            for depth in (0, 1, None) if name == "counts" else (1,):
                began = time.process_time()
                simulate(jobs, cluster, Backfill(depth), name, compiled=compiled)
                rate = len(jobs) / (time.process_time() - began)
                print(row("C" if compiled else "Python", name, Backfill(depth).name, f"{rate:,.0f}"), flush=True)


def million() -> None:
    """A million drawn jobs on 100,000 nodes, leaves=18x18: processor seconds, and the process's peak in GB."""
    jobs, cluster = capacity_mix(np.random.default_rng(1), 10**6, 100_000), Cluster.regular(100_000, 18, 18)
    for name in ("counts", "first", "isolated"):
        began = time.process_time()
        simulate(jobs, cluster, allocator=name)
        spent, peak = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(row(name, f"{spent:.1f}", f"{peak:.2f}"), flush=True)


def accasim(path: str, python: str, count: str = "3000") -> None:
    """AccaSim and the loops in C and in Python on the same jobs, one after another: jobs a second."""
    script = Path(__file__).with_name("accasim_rate.py")
    words = [python, "-P", str(script), path, count, "128"]  # -P: its folder has modules that hide others'
    answer = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    rate = float(answer.split()[-1])
    print(row("AccaSim", f"{rate:,.0f}", "1"), flush=True)
    jobs, cluster = read_swf(path).select(slice(int(count))), Cluster.regular(128, 128)
    for compiled in (True, False):
        began = time.process_time()
        simulate(jobs, cluster, allocator="first", compiled=compiled)
        own = len(jobs) / (time.process_time() - began)
        print(row("C" if compiled else "Python", f"{own:,.0f}", f"{own / rate:,.0f}"), flush=True)


def pictures(folder: str) -> None:
    """The same load under each policy: jobs of at most half the machine and four hours."""
    jobs = power_of_two_mix(np.random.default_rng(2), 140, 288, 2.5)
    jobs = jobs.select(jobs.nodes <= 144)
    jobs = replace(jobs, run=np.minimum(jobs.run, 4 * 3600), request=np.minimum(jobs.request, 4 * 3600))
    for name in ("first", "contiguous", "bestfit", "exclusive", "blocks", "isolated", "leaf-exclusive", "disjoint"):
        draw(simulate(jobs, Cluster.regular(288, 18, 4), allocator=name), Path(folder) / f"{name}.svg")


PROGRAMS: dict[str, Callable[..., None]] = {
    one.__name__: one for one in (pollard, thunder, blocks, routes, speed, million, accasim, pictures)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
