"""Neighbourhood alltoalls and sparse exchanges with real MPI on an emulated network: topompi against the library.

    python -m benchmarks.neighbours --mpich-python .venv-mpich/bin/python --json neighbours.json

Needs root. The sides take turns of some calls in each job, so that disturbances affect all of them.
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
from osu_like_bench.statistics import compare
from topompi.errors import TopompiError

from .jobs import network_parser, one_line_errors, progress

RANKS = "benchmarks.neighbours_ranks"
GRAPHS = (
    "coarse level, 8 to 64 B",
    "27 points, faces of 512 B",
    "27 points, faces of 4 KiB",
    "27 points, faces of 64 KiB",
)
FORMS = "blocking,request,non-blocking,other memory,other sizes"
HEAD = ("network", "uplinks", "library", "graph", "form", "library, ms", "side", "times as fast", "chosen")


def run(arguments: argparse.Namespace, directory: Path) -> Iterator[list[str]]:
    """Run all jobs, and yield the rows of the table.

    :param arguments: arguments of the command line.
    :param directory: folder for the plan.
    """
    plan = directory / "plan.json"
    sides = [*arguments.sides.split(","), "library"]
    graphs = [graph for graph in arguments.graphs.split(";") if graph]
    exchanges = [int(one) for one in arguments.exchanges.split(",") if one]
    wanted = {"graphs": graphs, "forms": arguments.forms.split(","), "exchanges": exchanges}
    plan.write_text(json.dumps({**wanted, "sides": sides, "seconds": arguments.seconds}))
    kept: list[dict[str, Any]] = []
    for uplinks in arguments.uplink_rates.split(","):
        with Emulated(arguments.network, Rates.parse(arguments.host_rate, uplinks)) as network:
            for python in filter(None, (sys.executable, arguments.mpich_python)):
                options = LaunchOptions(ppn=arguments.ppn, python=python, timeout=arguments.timeout)
                done = network.run(["-m", RANKS, str(plan)], options)
                if done.returncode:
                    raise TopompiError(f"{python}: exit code {done.returncode}: {done.stderr[-2000:]}")
                said = json.loads(done.stdout.splitlines()[-1])
                progress(f"{uplinks}, {python}")
                kept.append({"network": arguments.network, "ppn": arguments.ppn, "uplinks": uplinks, **said})
                yield from _rows(f"{arguments.network} x {arguments.ppn}", uplinks, said)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(kept) + "\n")


def _rows(network: str, uplinks: str, said: dict[str, Any]) -> Iterator[list[str]]:
    for cell in said["cells"]:
        library = np.array(cell["times"]["library"])
        for side, times in cell["times"].items():
            if side == "library":
                continue
            found = compare(np.array(times), library)
            ratio = f"{found.ratio:.2f} [{found.low:.2f}, {found.high:.2f}]"
            algorithm = cell["reasons"][side].partition(":")[0]
            median = f"{1e3 * np.median(library):.2f}"
            yield [network, uplinks, said["library"], cell["graph"], cell["form"], median, side, ratio, algorithm]


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = network_parser(__doc__)
    parser.add_argument("--ppn", type=int, default=2, help="ranks of each host (default 2)")
    parser.add_argument("--uplink-rates", default="100M", help="one network each (default 100M)")
    parser.add_argument("--graphs", default=";".join(GRAPHS), help="names of graphs, with ; between them (default all)")
    parser.add_argument("--sides", default="chosen,hosts", help="words of TOPOMPI_NEIGHBOURS, or chosen")
    parser.add_argument("--forms", default=FORMS, help=f"forms of calls (default {FORMS})")
    parser.add_argument("--exchanges", default="64,4096", help="bytes of exchanges' payloads (default 64,4096)")
    parser.add_argument("--seconds", type=float, default=4.0, help="for all sides of a graph and form (default 4)")
    parser.add_argument("--mpich-python", help="a Python with MPICH and mpi4py, to be measured too")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that one job may take")
    parser.add_argument("--json", help="write all samples here")
    return parser.parse_args()


def main() -> None:
    """Measure, and print the table."""
    arguments = parse()
    with one_line_errors("neighbours"), tempfile.TemporaryDirectory() as scratch:
        for row in (HEAD, ["---"] * len(HEAD), *run(arguments, Path(scratch))):
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
