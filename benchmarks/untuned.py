"""What a user gets who tunes nothing: every collective through topompi by the cost model alone, against the library.

    python -m benchmarks.untuned --minutes 30 --json untuned.jsonl
    python -m benchmarks.untuned --report untuned.jsonl

Needs root. There are no trials, no rules and no memory of earlier jobs. In one job every cell is timed through topompi
and straight from the library by turns (see ``in_turn``). Half of the networks are held out: nothing was fitted to them.
Jobs come in a seeded random order, so that a run that is cut is a fair sample; a further run with the same file goes
on.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np

from osu_like_bench.emulate import Emulated, JobOptions, Rates
from osu_like_bench.options import parse_bytes
from osu_like_bench.statistics import Comparison, compare
from topompi.errors import TopompiError

from .emulated import COLLECTIVES, FLOOR
from .in_turn import RANKS, words
from .jobs import progress

__all__ = ["Job", "markdown", "order_of"]

HOST_RATE = "100M"
RATIOS = {"100M": "4 : 1", "200M": "2 : 1", "400M": "1 : 1"}  # on 4x4
FITTED, HELD_OUT = ("4x4",), ("5,3,6,2", "2x4x2", "8x2")
Job = tuple[str, str, str, int, str]  # network, rate of uplinks, rank order, ranks a host, Python
Cells = list[dict[str, Any]]


def order_of(jobs: Sequence[Job], seed: int) -> list[Job]:
    """Jobs in a random order in which those of one network follow each other: to make a network takes seconds."""
    chance = random.Random(seed)
    groups = [list(some) for _, some in groupby(sorted(jobs), key=lambda job: job[:2])]
    for group in groups:
        chance.shuffle(group)
    chance.shuffle(groups)
    return [job for group in groups for job in group]


def run(given: argparse.Namespace) -> int:
    """Run the jobs that the file does not have, until the time is over; how many failed."""
    asked = product(given.networks, given.uplink_rates, given.orders, map(int, given.ppn), given.pythons)
    done = (
        {tuple(json.loads(line)["job"]) for line in given.json.read_text().splitlines()} if given.json.exists() else ()
    )
    left = [job for job in order_of(list(asked), given.seed) if job not in done]
    end, failed = time.monotonic() + 60 * given.minutes, 0
    with tempfile.TemporaryDirectory() as scratch:
        for (spec, uplinks), jobs in groupby(left, key=lambda job: job[:2]):
            if time.monotonic() > end:
                break
            with Emulated(spec, Rates.parse(HOST_RATE, uplinks)) as network:
                for job in jobs:
                    if time.monotonic() > end:
                        break
                    failed += not _one(given, network, job, Path(scratch))
    return failed


def _one(given: argparse.Namespace, network: Emulated, job: Job, scratch: Path) -> bool:
    """Run one job and add its cells to the file."""
    _, _, order, ppn, python = job
    plan = scratch / "plan.json"
    told = {name: getattr(given, name) for name in ("collectives", "sizes", "seconds")}
    plan.write_text(json.dumps({**told, "sides": ["topompi", "library"], "tuning": False}))
    environment = {"TOPOMPI_TUNE": "off", "XDG_CACHE_HOME": str(scratch)}
    options = JobOptions(order=order, ppn=ppn, python=python, timeout=given.timeout, environment=environment)
    ended = network.run(["-m", RANKS, str(plan)], options)
    if ended.returncode:
        print(f"{job}: exit code {ended.returncode}: {ended.stderr[-500:]}", file=sys.stderr)
        return False
    with given.json.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"job": job, "cells": json.loads(ended.stdout.splitlines()[-1])}) + "\n")
    progress(", ".join(map(str, job)))
    return True


def read(paths: Sequence[Path]) -> Iterator[tuple[Job, dict[str, Any], Comparison]]:
    """The cells of some files: job, cell, and how many times as fast as the library topompi was."""
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            found = json.loads(line)
            for cell in found["cells"]:
                times = cell["times"]
                yield tuple(found["job"]), cell, compare(np.array(times["topompi"]), np.array(times["library"]))


def markdown(rows: Sequence[tuple[Job, dict[str, Any], Comparison]]) -> Iterator[str]:
    """The report: means by networks, rates and sizes; what lost; every cell."""
    sizes = sorted({cell["size"] for _, cell, _ in rows})
    yield f"| networks | uplinks | {' | '.join(f'{size:,} bytes' for size in sizes)} | all | cells | slower |"
    yield f"|---|---|{'---|' * (len(sizes) + 3)}"
    for name, specs in (("fitted", FITTED), ("held out", HELD_OUT)):
        for rate in sorted({job[1] for job, _, _ in rows}):
            some = [row for row in rows if row[0][0] in specs and row[0][1] == rate]
            if some:
                means = [_mean([row for row in some if row[1]["size"] == size]) for size in sizes]
                slower = sum(one.high < FLOOR for _, _, one in some)
                cells = " | ".join([*means, _mean(some), str(len(some)), str(slower)])
                specs_seen = " ".join(sorted({job[0] for job, _, _ in some}))
                yield f"| {name}: {specs_seen} | {RATIOS.get(rate, rate)} | {cells} |"
    yield f"\nCells whose whole interval is below {FLOOR}:\n"
    yield from [_line(*row) for row in rows if row[2].high < FLOOR] or ["none"]
    yield "\n| network | uplinks | order | ranks a host | library | collective | bytes | ratio | calls | chosen |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row in sorted(rows, key=lambda row: row[2].ratio):
        yield _line(*row)


def _line(job: Job, cell: dict[str, Any], found: Comparison) -> str:
    where = f"{job[0]} | {job[1]} | {job[2]} | {job[3]} | {cell['library']} | {cell['collective']} | {cell['size']}"
    chosen = ", ".join(sorted(set(cell["algorithms"])))
    return f"| {where} | {found.ratio:.3f} [{found.low:.3f}, {found.high:.3f}] | {found.pairs} | {chosen} |"


def _mean(rows: Sequence[tuple[Job, dict[str, Any], Comparison]]) -> str:
    return f"{np.exp(np.mean([np.log(one.ratio) for _, _, one in rows])):.2f}" if rows else ""


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=lambda text: text.split(), default=[*FITTED, *HELD_OUT], help="by blanks")
    parser.add_argument("--uplink-rates", type=words, default="100M,200M,400M", help="bits/s")
    parser.add_argument("--orders", type=words, default="block,leaf-cyclic,random:1", help="rank orders")
    parser.add_argument("--ppn", type=words, default="1,2,4", help="ranks a host")
    parser.add_argument("--collectives", type=words, default=",".join(COLLECTIVES))
    parser.add_argument("--sizes", type=words, default="1K,4K,16K,64K,256K", help="bytes")
    parser.add_argument("--seconds", type=float, default=1.5, help="for both sides of a cell (default 1.5)")
    parser.add_argument("--minutes", type=float, default=30.0, help="no job begins later (default 30)")
    parser.add_argument("--pythons", type=words, default=sys.executable, help="interpreters, one for each MPI library")
    parser.add_argument("--seed", type=int, default=1, help="of the order of jobs")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds that one job may take")
    parser.add_argument("--json", type=Path, default=Path("untuned.jsonl"), help="add the cells to this file")
    parser.add_argument("--report", nargs="+", type=Path, metavar="FILE", help="report on these files, run nothing")
    given = parser.parse_args()
    given.sizes = [parse_bytes(text, "--sizes") for text in given.sizes]
    return given


def main() -> int:
    """Run what is left and report."""
    given = parse()
    try:
        failed = 0 if given.report else run(given)
        rows = list(read(given.report or [given.json]))
        print("\n".join(markdown(rows)))
    except (TopompiError, OSError) as error:
        print(f"untuned: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
