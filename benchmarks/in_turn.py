"""What a short call costs through topompi on an emulated network, against the same library in the same job, in turn.

    python benchmarks/in_turn.py --mpich-python .venv-mpich/bin/python --json in_turn.json

Needs root. ``emulated.py`` compares jobs, which differ by a tenth where ranks outnumber processors: too much to see
what costs a hundredth. Here every cell is timed through topompi and straight from the library by turns of some calls,
in one job, after topompi has decided by measured trials. Two more sides tell what bounds it: the library once more, for
what is chance, and a communicator whose methods only call the library's, for what any method in Python costs. Where
topompi on each of two libraries is not slower than that library, the better of the two is not slower than the better of
the libraries.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# This directory has files named as packages: it must not come first.
sys.path[0] = str(Path(__file__).resolve().parents[1])

import numpy as np  # noqa: E402 - the path comes first

from benchmarks.emulated import COLLECTIVES, FLOOR, progress  # noqa: E402 - the path comes first
from benchmarks.sides import together  # noqa: E402 - the path comes first
from osu_like_bench.emulate import Emulated, JobOptions, Rates  # noqa: E402 - the path comes first
from osu_like_bench.options import parse_bytes  # noqa: E402 - the path comes first
from osu_like_bench.statistics import Comparison, compare  # noqa: E402 - the path comes first
from topompi.errors import TopompiError  # noqa: E402 - the path comes first

RANKS = Path(__file__).with_name("in_turn_ranks.py")


@dataclass(frozen=True)
class Row:
    """A cell: of how many bytes, what each side took in seconds, call by call, and what topompi had chosen."""

    uplinks: str
    order: str
    library: str
    collective: str
    size: int
    algorithm: str
    ours: list[float]
    native: list[float]
    again: list[float]
    method: list[float]

    def comparison(self, side: str = "ours") -> Comparison:
        """How many times as fast as the library a side is."""
        return compare(np.array(getattr(self, side)), np.array(self.native))


def run(arguments: argparse.Namespace, directory: Path) -> Iterator[Row]:
    """Every cell, job by job."""
    plan = directory / "plan.json"
    told = {"collectives": arguments.collectives.split(","), "sizes": arguments.sizes, "seconds": arguments.seconds}
    plan.write_text(json.dumps(told))
    for uplinks in arguments.uplink_rates.split(","):
        with Emulated(arguments.network, Rates.parse(arguments.host_rate, uplinks)) as network:
            for order in arguments.orders.split(","):
                for python in filter(None, (sys.executable, arguments.mpich_python)):
                    options = JobOptions(
                        order=order,
                        python=python,
                        timeout=arguments.timeout,
                        environment={"TOPOMPI_TUNE": "measure", "XDG_CACHE_HOME": str(directory / uplinks)},
                    )
                    done = network.run([str(RANKS), str(plan)], options)
                    if done.returncode:
                        raise TopompiError(f"{python}, {order}: exit code {done.returncode}: {done.stderr[-2000:]}")
                    for row in json.loads(done.stdout.splitlines()[-1]):
                        yield Row(uplinks, order, *row)
                    progress(f"{uplinks}, {order}, {python}")


def markdown(rows: list[Row]) -> Iterator[str]:
    """The tables, what falls short first."""
    compared = [(row, row.comparison()) for row in rows]
    machine = f"{platform.system()} {platform.release()}, {os.cpu_count()} processors"
    yield f"## In one job: topompi against the library beneath, {machine}\n"
    for size in sorted({row.size for row in rows}):
        sides = {
            "topompi": [found for row, found in compared if row.size == size],
            "of these, left to the library": [
                found for row, found in compared if row.size == size and row.algorithm == "native"
            ],
            "the library against itself": [row.comparison("again") for row in rows if row.size == size],
            "a method in Python": [row.comparison("method") for row in rows if row.size == size],
        }
        yield from (f"- {size} bytes, {side}: {together(cells, FLOOR)}" for side, cells in sides.items() if cells)
    yield "\n| uplinks | order | library | collective | bytes | calls | topompi (ms) | library (ms) | ratio | chosen |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row, found in sorted(compared, key=lambda pair: pair[1].ratio):
        ours, native_time = (1e3 * np.median(times) for times in (row.ours, row.native))
        where = f"{row.uplinks} | {row.order} | {row.library} | {row.collective} | {row.size} | {len(row.ours)}"
        ratio = f"{found.ratio:.3f} [{found.low:.3f}, {found.high:.3f}]"
        yield f"| {where} | {ours:.2f} | {native_time:.2f} | {ratio} | {row.algorithm} |"


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="4x4", help="what to emulate (default 4x4: 4 leaves x 4 hosts)")
    parser.add_argument("--host-rate", default="100M", help="of host links, bits/s")
    parser.add_argument("--uplink-rates", default="100M,400M", help="one network each (default 100M,400M: 4:1 and 1:1)")
    parser.add_argument("--orders", default="block,leaf-cyclic,random:1", help="rank orders (default all three)")
    parser.add_argument("--collectives", default=",".join(COLLECTIVES))
    parser.add_argument("--sizes", default="1K,4K,16K", help="bytes (default 1K,4K,16K)")
    parser.add_argument("--seconds", type=float, default=6.0, help="for all sides of a cell (default 6)")
    parser.add_argument("--mpich-python", help="a Python with MPICH and mpi4py, to be measured too")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds that one job may take")
    parser.add_argument("--json", help="write all samples here")
    arguments = parser.parse_args()
    arguments.sizes = [parse_bytes(text, "--sizes") for text in arguments.sizes.split(",")]
    return arguments


def main() -> int:
    """Measure, print the table, write the samples."""
    arguments = parse()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            rows = list(run(arguments, Path(scratch)))
        print("\n".join(markdown(rows)))
        if arguments.json:
            Path(arguments.json).write_text(json.dumps([vars(row) for row in rows]) + "\n")
    except (TopompiError, OSError) as error:
        print(f"in_turn: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
