"""Collectives with real MPI on emulated networks: through topompi and through the library, in turns in one job.

    python -m benchmarks.emulated --minutes 30 --pythons .venv-openmpi/bin/python,.venv-mpich/bin/python
    python -m benchmarks.emulated --tune measure --networks 4x4 --ppn 1 --json tuned.jsonl
    python -m benchmarks.emulated --report emulated.jsonl more.jsonl

Needs root. Without ``--tune`` the cost model alone chooses: there are no trials, no rules and no memory of earlier
jobs. With ``--tune measure`` topompi decides by trials in two jobs before the one that counts. Most of the networks are
held out: nothing was fitted to them. Jobs, and the cells of a job (a collective at a size), come in a seeded random
order of which every beginning is balanced, so that a run that is cut short is a fair sample; a further run with the
same file adds the cells that it lacks. A job that fails is reported, and the others run.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any, TypeVar

from osu_like_bench.emulate import Emulated, LaunchOptions
from osu_like_bench.emulate.launch import rank_hosts
from osu_like_bench.options import parse_bytes
from topompi.errors import TopompiError
from topompi.schedules import lower_bound
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of

from .emulated_report import FITTED, Setting, lines_of, markdown, read
from .jobs import one_line_errors, progress
from .uplinks import rates_of

__all__ = ["balanced", "missing"]

RANKS = "benchmarks.emulated_ranks"  # in the same folder as osu_like_bench, so that a job finds it
COLLECTIVES = ("gather", "scatter", "bcast", "allreduce", "alltoall", "allgather", "reduce", "reduce_scatter")
ROOTED = ("gather", "scatter", "bcast", "reduce")
SIZES = "1K,4K,16K,64K,256K,1M"
TUNING = 2  # jobs that do not count: trials choose in the first, and repeat in the second
HELD_OUT = ("5,3,6,2", "2x4x2", "8x2")
Case = TypeVar("Case", bound=tuple[Hashable, ...])


def balanced(cases: Sequence[Case], seed: str) -> list[Case]:
    """Put cases in a random order of which every beginning has each value, and each pair of values, equally often.

    :param cases: tuples of one length; the values at one place are of one kind.
    :param seed: seed of the order.

    Cost: the square of the number of cases.
    """
    left, order, seen = list(cases), [], Counter[Hashable]()
    random.Random(seed).shuffle(left)
    values = [set(column) for column in zip(*cases, strict=True)]

    def excess(case: Case) -> tuple[list[int], int]:
        least = [min(seen[place, value] for value in column) for place, column in enumerate(values)]
        leads = [seen[trait] - least[place] for place, trait in enumerate(enumerate(case))]
        return sorted(leads, reverse=True), sum(seen[pair] for pair in _pairs(case))

    while left:
        case = min(left, key=excess)
        left.remove(case)
        order.append(case)
        seen.update([*enumerate(case), *_pairs(case)])
    return order


def _pairs(case: tuple[Hashable, ...]) -> list[Hashable]:
    """Return all pairs of a case's values, each value with its place."""
    return list(combinations(enumerate(case), 2))


def missing(path: Path, job: Setting, cells: Sequence[tuple[str, int]], limit: float) -> list[tuple[str, int]]:
    """Return the cells of a job that a file lacks.

    :param path: path of the file, which need not exist.
    :param job: job of the cells.
    :param cells: collectives and their bytes.
    :param limit: seconds; cells with a known bound above it are not missing.
    """
    had: set[tuple[str, int]] = set()
    for line in lines_of(path) if path.exists() else ():
        if line.job == job:
            had |= {(cell["collective"], cell["size"]) for cell in line.cells}
            had |= {(collective, size) for collective, size, bound in line.left_out if bound > limit}
    return [cell for cell in cells if cell not in had]


def bounds_of(path: Path, hosts: Sequence[str], cells: Sequence[tuple[str, int]]) -> dict[tuple[str, int], float]:
    """Return the seconds that no schedule can beat, for each cell.

    :param path: file of the emulated fabric.
    :param hosts: host of each rank.
    :param cells: collectives and their bytes.
    """
    network = network_of(TopologyInterface.place(list(hosts), load(path).routes))
    names = {collective for collective, _ in cells}
    units = {name: lower_bound(network, name, root=0 if name in ROOTED else None).seconds for name in names}
    return {(collective, size): size * units[collective] for collective, size in cells}


def time_cells(
    network: Emulated, options: LaunchOptions, plan: Mapping[str, object], directory: Path
) -> tuple[list[dict[str, Any]], str]:
    """Run a job that times the cells of a plan in turn.

    :param network: network that is up.
    :param options: options of the job.
    :param plan: plan as ``emulated_ranks`` describes it; ``most`` is without limit unless given.
    :param directory: folder for files between the job and this process.
    :returns: the cells that the job has timed, and the reason of its failure, empty if it succeeded.
    """
    told, found = directory / "plan.json", directory / "found.jsonl"
    found.write_text("")
    told.write_text(json.dumps({"most": math.inf, **plan, "found": str(found)}))
    failure = ""
    try:
        done = network.run(["-m", RANKS, str(told)], options)
        if done.returncode:
            failure = f"exit code {done.returncode}: {done.stderr[-2000:]}"
    except TopompiError as error:
        failure = str(error)
    whole = (line for line in found.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n"))
    return [json.loads(line) for line in whole], failure


def run(given: argparse.Namespace) -> int:
    """Time the cells that the file lacks, until the time is over; return the number of jobs that failed."""
    jobs: list[Setting] = list(product(given.networks, given.uplink_rates, given.orders, given.ppn, given.pythons))
    cells = list(product(given.collectives, given.sizes))
    end, failed = time.monotonic() + 60 * given.minutes, 0
    for job in balanced(jobs, str(given.seed)):
        left = missing(given.json, job, cells, given.limit)
        if left and time.monotonic() < end:
            with tempfile.TemporaryDirectory() as scratch:
                failed += not _one(given, job, balanced(left, f"{given.seed} {job}"), end, Path(scratch))
    return failed


def _one(given: argparse.Namespace, job: Setting, cells: Sequence[tuple[str, int]], end: float, scratch: Path) -> bool:
    """Run a job and add its cells to the file; return whether it ended well.

    :param given: arguments of the command line.
    :param job: settings of the job.
    :param cells: collectives and their bytes.
    :param end: second, by the monotonic clock, after which no cell begins.
    :param scratch: folder for the job's files; its cache is empty.
    """
    spec, uplinks, order, ppn, python = job
    environment = {"TOPOMPI_TUNE": given.tune, "TOPOMPI_RULES": "", "XDG_CACHE_HOME": str(scratch)}
    options = LaunchOptions(order=order, ppn=ppn, python=python, timeout=given.timeout, environment=environment)
    with Emulated(spec, rates_of(spec, uplinks)) as network:
        hosts = rank_hosts(network.fabric, ppn=ppn, order=order)
        bounds = bounds_of(network.path, hosts, cells)
        plan = {
            "cells": [cell for cell in cells if bounds[cell] <= given.limit],
            "seconds": given.seconds,
            "most": min(end - time.monotonic(), given.timeout / 2),
        }
        for tuning in [True] * TUNING * (given.tune == "measure") + [False]:
            found, failure = time_cells(network, options, {**plan, "tuning": tuning}, scratch)
            if failure:
                break
    left_out = [(*cell, bounds[cell]) for cell in cells if bounds[cell] > given.limit]
    with given.json.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"job": job, "cells": found, "left_out": left_out}) + "\n")
    progress(f"{', '.join(map(str, job))}: {len(found)} cells")
    if failure:
        print(f"emulated: {', '.join(map(str, job))}: after {len(found)} cells: {failure}", file=sys.stderr)
    return not failure


def words(text: str) -> list[str]:
    """Split a text at its commas."""
    return text.split(",")


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=lambda text: text.split(), default=[*FITTED, *HELD_OUT], help="by blanks")
    parser.add_argument(
        "--uplink-rates", type=words, default="4:1,2:1,1:1", help="N:1 over-subscribed at each level, or bits/s"
    )
    parser.add_argument("--orders", type=words, default="block,leaf-cyclic,random:1", help="rank orders")
    parser.add_argument("--ppn", type=words, default="1,2,4", help="ranks per host, or 3/1/4/2 by turns")
    parser.add_argument("--tune", choices=("off", "measure"), default="off", help="trials before (default off)")
    parser.add_argument("--collectives", type=words, default=",".join(COLLECTIVES))
    parser.add_argument("--sizes", type=words, default=SIZES, help=f"bytes (default {SIZES})")
    parser.add_argument(
        "--limit", type=float, default=0.7, help="longest bound of a cell that is timed, in seconds (default 0.7)"
    )
    parser.add_argument("--seconds", type=float, default=1.5, help="for both sides of a cell (default 1.5)")
    parser.add_argument("--minutes", type=float, default=30.0, help="no cell begins later (default 30)")
    parser.add_argument("--pythons", type=words, default=sys.executable, help="interpreters, one for each MPI library")
    parser.add_argument("--seed", type=int, default=1, help="of the order of jobs and cells")
    parser.add_argument(
        "--timeout", type=float, default=600.0, help="seconds that one job may take; no cell begins after half of them"
    )
    parser.add_argument("--json", type=Path, default=Path("emulated.jsonl"), help="add the cells to this file")
    parser.add_argument("--report", nargs="+", type=Path, metavar="FILE", help="report on these files, run nothing")
    given = parser.parse_args()
    given.sizes = [parse_bytes(text, "--sizes") for text in given.sizes]
    given.ppn = [int(text) if text.isdecimal() else text for text in given.ppn]
    return given


def main() -> int:
    """Run the remaining jobs, and report."""
    with one_line_errors("emulated"):
        given = parse()
        failed = 0 if given.report else run(given)
        print("\n".join(markdown(read(given.report or [given.json]))))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
