"""Transposes of a pencil FFT on an emulated network: topompi against the MPI library on the same communicators.

    python -m benchmarks.transposes --ppn 1 --orders block,random:1 --json transposes.json

Needs root. All rows of a process grid exchange at once, then all columns, each by an Alltoall on a communicator that
``Split`` made from topompi's. Three sides take turns in one job: topompi's call, which runs the choice of the cost
model (or of a trial, with ``--tune measure``); the MPI library's call on the same communicator; and the library's call
again, which shows chance. A time is that of the slowest rank of all communicators. The report has medians, 95 %
intervals by bootstrap over rounds, and a bound: the time that the busiest link needs at its nominal rate.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from osu_like_bench.emulate import Emulated, LaunchOptions, Rates
from osu_like_bench.emulate.launch import rank_hosts
from osu_like_bench.options import parse_bytes
from osu_like_bench.statistics import Comparison, compare
from topompi.errors import TopompiError
from topompi.schedules import Network
from topompi.schedules.alltoall.fft import grid_groups
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of

from .jobs import network_parser
from .sides import together

RANKS = "benchmarks.transposes_ranks"
SIDES = ("native", "topompi", "again")
FLOOR, AIM = 0.98, 1.15
GRIDS = {1: "4x4,8x2", 2: "16x2,8x4"}


def bound(network: Network, rows: int, way: str, size: int) -> float:
    """Return the seconds that the busiest link needs for all rows, or all columns, at once.

    :param network: network of the job.
    :param rows: number of rows of the process grid.
    :param way: ``rows`` or ``columns``.
    :param size: bytes of a block.
    """
    groups = grid_groups(rows, network.num_ranks // rows)[way == "columns"]
    there = np.zeros((len(groups), network.num_hosts))
    np.add.at(there, (np.arange(len(groups))[:, None], network.rank_host[np.stack(groups)]), 1)
    messages = there.T @ there
    np.fill_diagonal(messages, 0)
    return float((size * network.loads(messages) / network.capacity).max())


def run(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Run a job in each rank order, and yield its cells with their bounds."""
    rows = [int(grid.split("x")[0]) for grid in (arguments.grids or GRIDS[arguments.ppn]).split(",")]
    sizes = [parse_bytes(word, "--sizes") for word in arguments.sizes.split(",")]
    rates = Rates.parse(arguments.host_rate, arguments.uplink_rate)
    with tempfile.TemporaryDirectory() as scratch, Emulated(arguments.network, rates) as network:
        plan = Path(scratch) / "plan.json"
        plan.write_text(json.dumps({"rows": rows, "sizes": sizes, "seconds": arguments.seconds}))
        for order in arguments.orders.split(","):
            environment = {"TOPOMPI_TUNE": arguments.tune, "XDG_CACHE_HOME": scratch}
            options = LaunchOptions(ppn=arguments.ppn, order=order, timeout=arguments.timeout, environment=environment)
            done = network.run(["-m", RANKS, str(plan)], options)
            if done.returncode:
                raise TopompiError(f"{order}: exit code {done.returncode}: {done.stderr[-2000:]}")
            hosts = rank_hosts(network.fabric, ppn=arguments.ppn, order=order)
            placed = network_of(TopologyInterface.place(hosts, load(network.path).routes))
            for cell in json.loads(done.stdout.splitlines()[-1]):
                least = bound(placed, cell["rows"], cell["way"], cell["size"])
                yield {"order": order, "ranks": placed.num_ranks, "bound": least, **cell}


def table(cells: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the report: a summary for each size, then a Markdown table."""
    gains = [compare(np.array(cell["topompi"]), np.array(cell["native"])) for cell in cells]
    for kind in sorted({(cell["size"], cell["ranks"]) for cell in cells}):
        yield from sums([(cell, gain) for cell, gain in zip(cells, gains, strict=True) if kind == _kind(cell)])
    yield ""
    heads = ["ranks", "order", "grid", "of", "bytes", "bound (ms)", "native (ms)", "topompi (ms)"]
    heads += ["native / topompi", "native / bound", "ran", ""]
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for cell, gain in zip(cells, gains, strict=True):
        grid = f"{cell['rows']}x{cell['ranks'] // cell['rows']}"
        ours, native = (float(np.median(cell[side])) for side in ("topompi", "native"))
        times = [f"{1e3 * cell['bound']:.2f}", f"{1e3 * native:.2f}", f"{1e3 * ours:.2f}"]
        ratio = f"{gain.ratio:.2f} [{gain.low:.2f}, {gain.high:.2f}]"
        most = f"{native / cell['bound']:.2f}" if cell["bound"] else "-"
        row = [str(cell["ranks"]), cell["order"], grid, cell["way"], str(cell["size"]), *times, ratio, most]
        yield f"| {' | '.join([*row, ' '.join(cell['ran']), '' if cell['right'] else 'WRONG'])} |"


def _kind(cell: dict[str, Any]) -> tuple[int, int]:
    return cell["size"], cell["ranks"]


def sums(compared: list[tuple[dict[str, Any], Comparison]]) -> Iterator[str]:
    """Yield a summary of the cells of one size and number of ranks: gains, chance, and the gain that links allow."""
    first = compared[0][0]
    told = f"- {first['size']} bytes, {first['ranks']} ranks"
    found = [gain for _, gain in compared]
    yield f"{told}, topompi: {together(found, FLOOR)}; at least {AIM}: {sum(gain.ratio >= AIM for gain in found)}"
    left = [gain for cell, gain in compared if cell["ran"] == ["native"]]
    if left:
        yield f"{told}, of these, left to the library: {together(left, FLOOR)}"
    itself = [compare(np.array(cell["again"]), np.array(cell["native"])) for cell, _ in compared]
    yield f"{told}, the library against itself: {together(itself, FLOOR)}"
    most = [np.median(cell["native"]) / cell["bound"] for cell, _ in compared if cell["bound"]]
    if most:
        yield f"{told}: the links would allow a mean of {np.exp(np.mean(np.log(most))):.2f}x in {len(most)} cells"


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = network_parser(__doc__)
    parser.add_argument("--uplink-rate", default="100M", help="of uplinks; 100M is 4:1 for 4 hosts of 100M")
    parser.add_argument("--ppn", type=int, default=1, choices=sorted(GRIDS), help="ranks a host (default 1)")
    parser.add_argument("--orders", default="block,random:1", help="rank orders (default block,random:1)")
    parser.add_argument("--grids", help=f"rows x columns of processes (default {GRIDS})")
    parser.add_argument("--sizes", default="4K,64K,256K", help="bytes of a block (default 4K,64K,256K)")
    parser.add_argument("--tune", default="", help="TOPOMPI_TUNE: measure for trials (default: the cost model chooses)")
    parser.add_argument("--seconds", type=float, default=3.0, help="for one side of a cell (default 3)")
    parser.add_argument("--timeout", type=float, default=400.0, help="seconds of a job at most")
    parser.add_argument("--json", metavar="FILE", help="write all samples")
    parser.add_argument("--join", metavar="FILE", action="append", default=[], help="add an earlier run's samples")
    return parser.parse_args()


def main() -> None:
    """Measure, print the report, and write the samples."""
    arguments = parse()
    cells = [cell for path in arguments.join for cell in json.loads(Path(path).read_text())["cells"]]
    cells += run(arguments) if arguments.orders else []
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"format": "topompi transposes", "version": 2, "cells": cells}))
    print("\n".join(table(cells)))


if __name__ == "__main__":
    try:
        main()
    except (TopompiError, OSError) as error:
        print(f"transposes: {error}", file=sys.stderr)
        sys.exit(1)
