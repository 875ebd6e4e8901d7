"""The cost of short calls through topompi on an emulated network, against the same library in the same job.

    python -m benchmarks.in_turn --mpich-python .venv-mpich/bin/python --json in_turn.json

Needs root. ``emulated`` compares jobs, which differ by a tenth if ranks outnumber processors: too much to see a cost of
a hundredth. Here one job times every cell through topompi and through the library, which take turns of some calls.
topompi has decided by measured trials in two earlier jobs, and may repeat trials in this one. Two more sides show the
limits of the comparison: the library a second time shows chance, and a communicator whose methods only call the
library's shows the cost of any method in Python. If topompi on each of two libraries is not slower than that library,
the better topompi is not slower than the better library.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from osu_like_bench.emulate import Emulated, LaunchOptions, Rates
from osu_like_bench.options import parse_bytes
from osu_like_bench.statistics import Comparison, compare
from topompi.errors import TopompiError

from .emulated import COLLECTIVES, FLOOR, TUNING
from .jobs import network_parser, one_line_errors, progress
from .sides import together

RANKS = "benchmarks.in_turn_ranks"
SIDES = {
    "topompi": "topompi",
    "library": "the library",
    "library again": "the library against itself",
    "method": "a method in Python",
}


@dataclass(frozen=True)
class Row:
    """The measurements of a collective at a size.

    :param uplinks: rate of the uplinks, as given on the command line.
    :param order: order of the ranks.
    :param library: name of the MPI library.
    :param collective: name of the collective.
    :param size: message size in bytes.
    :param algorithms: algorithms that topompi chose, job by job.
    :param reasons: reasons of these choices, job by job.
    :param times: seconds of each call, by side.
    """

    uplinks: str
    order: str
    library: str
    collective: str
    size: int
    algorithms: list[str]
    reasons: list[str]
    times: dict[str, list[float]]

    def comparison(self, side: str) -> Comparison:
        """Return the comparison of a side with the library; its ratio is above 1 if the side is faster."""
        return compare(np.array(self.times[side]), np.array(self.times["library"]))

    def add(self, cell: dict[str, Any]) -> None:
        """Add the measurements of the same cell in another job."""
        self.algorithms.extend(cell["algorithms"])
        self.reasons.extend(cell["reasons"])
        for side, more in cell["times"].items():
            self.times[side] += more


def time_cells(
    network: Emulated, options: LaunchOptions, plan: Mapping[str, object], directory: Path
) -> tuple[list[dict[str, Any]], str]:
    """Run a job that times the cells of a plan in turn.

    :param network: network that is up.
    :param options: options of the job.
    :param plan: plan as ``in_turn_ranks`` describes it; ``most`` is without limit unless given.
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


def run(arguments: argparse.Namespace, directory: Path) -> list[Row]:
    """Run all jobs, and return the rows."""
    cache = Path(arguments.cache or directory / "cache")
    cells = list(product(arguments.collectives, arguments.sizes))
    rows: dict[tuple[object, ...], Row] = {}
    jobs = [
        (order, python) for order in arguments.orders for python in (sys.executable, arguments.mpich_python) if python
    ]
    for uplinks in arguments.uplink_rates:
        with Emulated(arguments.network, Rates.parse(arguments.host_rate, uplinks)) as network:
            for (order, python), number in product(jobs, range(-TUNING, arguments.rounds)):
                tuning = number < 0
                plan = {"cells": cells, "sides": arguments.sides, "seconds": arguments.seconds, "tuning": tuning}
                options = LaunchOptions(
                    order=order,
                    python=python,
                    timeout=arguments.timeout,
                    environment={"TOPOMPI_TUNE": "measure", "XDG_CACHE_HOME": str(cache / uplinks)},
                )
                found, failure = time_cells(network, options, plan, directory)
                if failure:
                    raise TopompiError(f"{python}, {order}: {failure}")
                progress(f"{'tuning ' if tuning else ''}{uplinks}, {order}, {python}")
                for cell in found:
                    key = uplinks, order, cell["library"], cell["collective"], cell["size"]
                    if key in rows:
                        rows[key].add(cell)
                    else:
                        rows[key] = Row(uplinks, order, **cell)
    return list(rows.values())


def markdown(rows: list[Row]) -> Iterator[str]:
    """Yield the report: a summary for each size and side, then a table, the smallest ratio first."""
    compared = {side: [row.comparison(side) for row in rows] for side in rows[0].times if side != "library"}
    machine = f"{platform.system()} {platform.release()}, {os.cpu_count()} processors"
    yield f"## In one job: topompi against the library beneath, {machine}\n"
    for size in sorted({row.size for row in rows}):
        for side, found in compared.items():
            cells = [(row, one) for row, one in zip(rows, found, strict=True) if row.size == size]
            yield f"- {size} bytes, {SIDES[side]}: {together([one for _, one in cells], FLOOR)}"
            left = [one for row, one in cells if set(row.algorithms) == {"native"}]
            if side == "topompi" and left:
                yield f"- {size} bytes, of these, left to the library: {together(left, FLOOR)}"
    yield "\n| uplinks | order | library | collective | bytes | calls | topompi (ms) | library (ms) | ratio | chosen |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row, gain in sorted(zip(rows, compared["topompi"], strict=True), key=lambda pair: pair[1].ratio):
        ours, native_time = (1e3 * np.median(row.times[side]) for side in ("topompi", "library"))
        where = f"{row.uplinks} | {row.order} | {row.library} | {row.collective} | {row.size} | {gain.pairs}"
        ratio = f"{gain.ratio:.3f} [{gain.low:.3f}, {gain.high:.3f}]"
        yield f"| {where} | {ours:.2f} | {native_time:.2f} | {ratio} | {', '.join(sorted(set(row.algorithms)))} |"


def words(text: str) -> list[str]:
    """Split a text at its commas."""
    return text.split(",")


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = network_parser(__doc__)
    parser.add_argument(
        "--uplink-rates", type=words, default="100M,400M", help="one network each (default 100M,400M: 4:1 and 1:1)"
    )
    parser.add_argument(
        "--orders", type=words, default="block,leaf-cyclic,random:1", help="rank orders (default all three)"
    )
    parser.add_argument("--collectives", type=words, default=",".join(COLLECTIVES))
    parser.add_argument("--sizes", type=words, default="1K,4K,16K", help="bytes (default 1K,4K,16K)")
    parser.add_argument(
        "--sides", type=words, default=",".join(SIDES), help="the first two at least (default all four)"
    )
    parser.add_argument("--seconds", type=float, default=6.0, help="for all sides of a cell in a job (default 6)")
    parser.add_argument("--rounds", type=int, default=1, help="jobs of each library in each order (default 1)")
    parser.add_argument("--cache", help="keep what was tuned here, for another run (default: tuned anew each time)")
    parser.add_argument("--mpich-python", help="a Python with MPICH and mpi4py, to be measured too")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds that one job may take")
    parser.add_argument("--json", help="write all samples here")
    arguments = parser.parse_args()
    arguments.sizes = [parse_bytes(text, "--sizes") for text in arguments.sizes]
    if not {"topompi", "library"} <= set(arguments.sides) <= set(SIDES):
        got = ",".join(arguments.sides)
        parser.error(f"--sides: expecting topompi, library and perhaps others of {', '.join(SIDES)}, got {got}")
    if arguments.rounds < 1:
        parser.error(f"--rounds: expecting at least 1, got {arguments.rounds}")
    return arguments


def main() -> None:
    """Measure, print the table, and write the samples."""
    arguments = parse()
    with one_line_errors("in_turn"):
        with tempfile.TemporaryDirectory() as scratch:
            rows = run(arguments, Path(scratch))
        print("\n".join(markdown(rows)))
        if arguments.json:
            Path(arguments.json).write_text(json.dumps([vars(row) for row in rows]) + "\n")


if __name__ == "__main__":
    main()
