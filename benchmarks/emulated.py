"""Collectives with real MPI on an emulated network: topompi against MPI libraries and a lower bound.

    python -m benchmarks.emulated --mpich-python .venv-mpich/bin/python --json emulated.json

Needs root. A cell is a collective at a size. Each round starts every side once in every rank order, in turn, so that
disturbances of the machine affect all sides; each start exchanges data for a second, and then times every cell. Rounds
are repeated until the time is over. topompi runs on Open MPI and on MPICH with their defaults. It decides by trials
(TOPOMPI_TUNE=measure) in two starts before the first round; later starts may repeat trials before they time a cell.
Each cell compares the faster of the two topompi sides with the fastest rival. Times are medians over all calls, with
95 % intervals by bootstrap over starts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from osu_like_bench.emulate import Emulated, LaunchOptions, Rates
from osu_like_bench.emulate.launch import rank_hosts
from osu_like_bench.emulate.monitor import ENOUGH
from osu_like_bench.emulate.peers import PEERS
from osu_like_bench.options import parse_bytes
from osu_like_bench.statistics import Comparison, Summary, compare_runs, summary_of_starts
from topompi.errors import TopompiError
from topompi.schedules import lower_bound
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of

from .jobs import network_parser, one_line_errors, progress

RANKS = "benchmarks.emulated_ranks"  # in the same folder as osu_like_bench, so that a job finds it
COLLECTIVES = ("gather", "scatter", "bcast", "allreduce", "alltoall", "allgather", "reduce", "reduce_scatter")
ROOTED = ("gather", "scatter", "bcast", "reduce")
SIZES = "1K,4K,16K,64K,256K,1M"
ORDERS = "leaf-cyclic,random:1"
OURS = {"topompi": "openmpi", "topompi-mpich": "mpich"}  # our sides, and the libraries that they run on
# The rivals, of which a user could run the best instead. Open MPI 5 prefers HAN by itself (priority 35, tuned has 30),
# and
# with one rank per host HAN leaves every call to tuned, so both sides are one program, measured twice. Their times
# count
# as one sample, because the smaller of two medians of one distribution is biased below its median.
AGAINST = (("openmpi", "han"), ("mpich",))
RIVALS = [name for name in PEERS if name != "openmpi-polling"]  # that one is for measuring round trips
SLICE, MOST = 0.1, 100  # most seconds (by the bound), and calls, of a cell per start: starts vary more than calls
FLOOR = 0.97  # ratio to the best rival that no cell should be below
TUNING = 2  # starts of ours that do not count: trials choose in the first, and repeat in the second
FEWEST = 3  # times that an interval needs at least


@dataclass(frozen=True)
class Cell:
    """A collective at a message size.

    :param collective: name of the collective.
    :param size: message size in bytes.
    :param bound: seconds that no schedule can beat in the present rank order.
    """

    collective: str
    size: int
    bound: float

    def plan(self, tuning: bool = False) -> dict[str, object]:
        """Return the cell for the ranks' plan: many calls if a call is short, one call if it is long."""
        calls = 1 if tuning else int(np.clip(SLICE / self.bound, 1, MOST))
        return {"collective": self.collective, "size": self.size, "iterations": calls}


@dataclass
class Side:
    """The measurements of one side (topompi or a library) in one rank order.

    :param starts: seconds of each call in each start, by (collective, size).
    :param ticks: clock ticks of the processors, idle and total.
    :param mpi: version of the library.
    """

    starts: dict[tuple[str, int], list[list[float]]] = field(default_factory=dict)
    ticks: list[int] = field(default_factory=lambda: [0, 0])
    mpi: str = ""


def rivals_among(sides: Sequence[str]) -> list[list[str]]:
    """Return the rivals of our sides, each as the list of sides that measure it; all sides if none is a rival."""
    found = [[side for side in sides if side in same] for same in AGAINST]
    return [same for same in found if same] or [[side] for side in sides]


def cells_of(fabric_path: Path, hosts: Sequence[str], collectives: Sequence[str], sizes: Sequence[int]) -> list[Cell]:
    """Return all cells in a rank order, with their bounds.

    :param fabric_path: file of the emulated fabric.
    :param hosts: host of each rank.
    :param collectives: names of the collectives.
    :param sizes: message sizes in bytes.
    """
    network = network_of(TopologyInterface.place(list(hosts), load(fabric_path).routes))
    cells = []
    for collective in collectives:
        root = 0 if collective in ROOTED else None
        unit = lower_bound(network, collective, root=root).seconds
        cells += [Cell(collective, size, size * unit) for size in sizes]
    return cells


class Bench:
    """The benchmark on a network: its sides, and all their measurements.

    :param network: network that is up.
    :param arguments: arguments of the command line.
    :param directory: folder for the plan and the cache of this run.
    """

    def __init__(self, network: Emulated, arguments: argparse.Namespace, directory: Path) -> None:
        self.network, self.arguments, self.directory = network, arguments, directory
        self.cache = Path(arguments.cache) if arguments.cache else directory / "cache"
        self.pythons = {"Open MPI": sys.executable, "MPICH": arguments.mpich_python}
        wanted = arguments.sides.split(",")
        self.sides = [name for name in wanted if self.pythons[PEERS[OURS.get(name, name)].vendor]]
        self.ours = [name for name in self.sides if name in OURS]
        self.rivals = rivals_among(self.sides)
        self.left_out = [name for name in wanted if name not in self.sides]
        self.cells: dict[str, list[Cell]] = {}
        self.too_long: dict[str, list[Cell]] = {}
        for order in arguments.orders.split(","):
            hosts = rank_hosts(network.fabric, order=order)
            cells = cells_of(network.path, hosts, arguments.collectives.split(","), arguments.sizes)
            self.cells[order] = [cell for cell in cells if cell.bound <= arguments.limit]
            self.too_long[order] = [cell for cell in cells if cell.bound > arguments.limit]
        self.measured = {(order, side): Side() for order in self.cells for side in self.sides}
        self.rounds = 0

    def start(self, order: str, side: str, tuning: bool = False) -> None:
        """Run all cells of one side in one order, and keep the samples unless the start only tunes.

        :param order: order of the ranks.
        :param side: name of the side.
        :param tuning: whether topompi's trials decide in this start, whose samples are not kept.
        """
        plan = self.directory / "plan.json"
        cells = self.cells[order]
        plan.write_text(json.dumps({"ours": side in OURS, "cells": [cell.plan(tuning) for cell in cells]}))
        peer = OURS.get(side, side)
        options = LaunchOptions(
            mpi=peer,
            order=order,
            python=self.pythons[PEERS[peer].vendor],
            timeout=self.arguments.timeout,
            environment={"TOPOMPI_TUNE": "measure", "XDG_CACHE_HOME": str(self.cache)},
        )
        begin = time.monotonic()
        done = self.network.run(["-m", RANKS, str(plan)], options)
        if done.returncode:
            raise TopompiError(f"{side}, {order}: exit code {done.returncode}: {done.stderr[-2000:]}")
        progress(f"{'tuning ' if tuning else ''}{side}, {order}: {time.monotonic() - begin:.1f} s")
        if not tuning:
            self._keep(order, side, json.loads(done.stdout.splitlines()[-1]))

    def _keep(self, order: str, side: str, said: dict[str, Any]) -> None:
        kept = self.measured[order, side]
        kept.mpi = str(said["mpi"]).replace("\0", "").strip()  # MPICH pads its version with NULs
        for cell, found in zip(self.cells[order], said["cells"], strict=True):
            kept.starts.setdefault((cell.collective, cell.size), []).append(found["times"])
            kept.ticks[0] += found["idle"]
            kept.ticks[1] += found["ticks"]

    def join(self, path: Path) -> None:
        """Add the samples of an earlier run on the same network, for this run's cells and sides."""
        earlier = json.loads(path.read_text())
        rates = sorted(set(self.network.fabric.link_rate.tolist()))
        if (earlier["network"], earlier["rates"]) != (self.network.spec, rates):
            raise TopompiError(
                f"{path}: expecting a run on {self.network.spec} with links of {rates} bytes/s, "
                f"got {earlier['network']} with {earlier['rates']}"
            )
        self.rounds += earlier["rounds"]
        for row in earlier["results"]:
            kept = self.measured.get((row["order"], row["side"]))
            if kept is not None:
                kept.mpi = row["mpi"].replace("\0", "").strip()
                starts = np.array_split(row["samples"], row.get("starts", earlier["rounds"]))
                kept.starts.setdefault((row["collective"], row["size"]), []).extend(some.tolist() for some in starts)
                kept.ticks = [kept.ticks[0] + round(1000 * row["idle"]), kept.ticks[1] + 1000]

    def run(self) -> None:
        """Tune, then run rounds until another one would exceed the time.

        Without time, but with joined runs, do nothing.
        """
        if self.rounds and not self.arguments.minutes:
            return
        begin = time.monotonic()
        for order in self.cells:
            for side, _ in product(self.ours, range(TUNING)):
                self.start(order, side, tuning=True)
        longest = 0.0
        while not self.rounds or time.monotonic() - begin + longest < 60 * self.arguments.minutes:
            start = time.monotonic()
            for order in self.cells:
                turn = self.rounds % len(self.sides)
                for side in (*self.sides[turn:], *self.sides[:turn]):
                    self.start(order, side)
            self.rounds += 1
            longest = max(longest, time.monotonic() - start)

    def rows(self, order: str) -> Iterator[tuple[Cell, dict[str, Summary], str, str, Comparison | None]]:
        """Yield, for each cell, each side's times, our best side, the best rival, and the comparison of these two."""
        generator = np.random.default_rng(0)
        for cell in self.cells[order]:
            key = cell.collective, cell.size
            measured = {side: self.measured[order, side].starts.get(key, []) for side in self.sides}
            if not all(measured.values()):
                continue
            arrays = {side: [np.array(times) for times in starts] for side, starts in measured.items()}
            found = {side: summary_of_starts(starts, generator) for side, starts in arrays.items()}
            rivals = {
                "/".join(sides): summary_of_starts([one for side in sides for one in arrays[side]], generator)
                for sides in self.rivals
            }
            ours = min(self.ours, key=lambda side: found[side].median, default="")
            best = min(rivals, key=lambda name: rivals[name].median)
            yield cell, found, ours, best, compare_runs([found[ours]], [rivals[best]]) if ours else None

    def halves(self) -> tuple[list[float], list[float]]:
        """Return ratios to the best rival, of ours and of our libraries: two per cell with several starts.

        A ratio takes its two times from different starts, the even and the odd ones. A library is as fast as itself, so
        the deviation of its ratios from 1 is chance.
        """
        ratios: tuple[list[float], list[float]] = ([], [])
        beneath = [OURS[side] for side in self.ours if OURS[side] in self.sides]
        for order, cells in self.cells.items():
            for key in ((cell.collective, cell.size) for cell in cells):
                starts = {side: self.measured[order, side].starts.get(key, []) for side in self.sides}
                if not beneath or min(map(len, starts.values())) < 2:
                    continue
                for half in (0, 1):
                    best = min(_median(starts, sides, 1 - half) for sides in self.rivals)
                    for found, some in zip(ratios, (self.ours, beneath), strict=True):
                        found.append(best / min(_median(starts, [side], half) for side in some))
        return ratios


def _median(starts: dict[str, list[list[float]]], sides: list[str], half: int) -> float:
    """Return the median over some sides of the times in their even (0) or odd (1) starts."""
    return float(np.median(np.concatenate([start for side in sides for start in starts[side][half::2]])))


def markdown(bench: Bench) -> Iterator[str]:
    """Yield the report: the slowest cells first, then a table for each rank order."""
    rows = {order: list(bench.rows(order)) for order in bench.cells}
    ratios = [
        (comparison.ratio, comparison, order, cell, best)
        for order, table in rows.items()
        for cell, _, _, best, comparison in table
        if comparison is not None
    ]
    yield from _heading(bench)
    if ratios:
        slower = sorted((one for one in ratios if one[0] < 1), key=lambda one: one[0])
        mean = float(np.exp(np.mean([np.log(one[0]) for one in ratios])))
        rivals = ", ".join("/".join(sides) for sides in bench.rivals)
        ours = " or ".join(bench.ours)
        yield f"{ours} against the best of {rivals}, cell by cell: slower in "
        yield f"{len(slower)} of {len(ratios)} cells, below {FLOOR} in {sum(one[0] < FLOOR for one in slower)}, "
        yield f"with the whole interval in {sum(one[1].high < FLOOR for one in slower)}; "
        yield f"geometric mean {mean:.2f}x. The slowest:\n"
        for ratio, comparison, order, cell, best in slower[:10]:
            interval = _interval(f"{comparison.low:.2f}", f"{comparison.high:.2f}", comparison.pairs)
            yield f"- {cell.collective} {cell.size}, {order}: {ratio:.2f}x {interval} of {best}"
    yield from _chance(bench)
    for order, table in rows.items():
        yield from _table(bench, order, table)


def _chance(bench: Bench) -> Iterator[str]:
    """Compare with chance: the number of cells that would be below the floor if a library were compared with itself."""
    ours, beneath = bench.halves()
    if ours:
        low = [sum(ratio < FLOOR for ratio in some) / 2 for some in (ours, beneath)]
        name = " or ".join(bench.ours)
        yield f"\nOf {len(ours) // 2} cells with several starts, with the best rival's times from half of them and the "
        yield f"other's from the other half: {name} is below {FLOOR} in {low[0]:g}, and the better of the libraries "
        yield f"that it runs on, themselves, in {low[1]:g} (means of both ways to halve)"


def _heading(bench: Bench) -> Iterator[str]:
    network = bench.network
    rates = ", ".join(f"{8 * rate / 1e6:g}" for rate in sorted(set(network.fabric.link_rate.tolist())))
    yield f"## Emulated: {network.spec}, {network.fabric.num_hosts} ranks, links of {rates} Mbit/s\n"
    versions = sorted({side.mpi for side in bench.measured.values()})
    cpus, load_average = os.cpu_count(), ", ".join(f"{one:.2f}" for one in os.getloadavg())
    yield f"{platform.system()} {platform.release()}, {cpus} processors, load {load_average} at the end; "
    yield f"{'; '.join(versions)}. {bench.rounds} round(s).\n"
    shares = {key: kept.ticks[0] / max(1, kept.ticks[1]) for key, kept in bench.measured.items()}
    named = ", ".join(f"{side} ({order}) {share:.0%}" for (order, side), share in shares.items())
    yield f"- processors idle, or with work of lower priority, while measuring: {named}"
    if min(shares.values()) < ENOUGH:
        yield f"- below {ENOUGH:.0%} idle, times are the processors' as much as the network's: quiet the machine"
    for side in bench.left_out:
        yield f"- left out: {side}, for there is no --mpich-python"
    for order, cells in bench.too_long.items():
        named = ", ".join(f"{cell.collective} {cell.size}" for cell in cells)
        if named:
            yield f"- left out, {order}: cells whose bound is above {bench.arguments.limit:g} s (--limit): {named}"
    yield ""


def _table(
    bench: Bench, order: str, table: list[tuple[Cell, dict[str, Summary], str, str, Comparison | None]]
) -> Iterator[str]:
    yield f"\n### Rank order {order}: milliseconds, median [95 % interval]; ratio: best rival over our best\n"
    heads = ["collective", "bytes", "bound", *bench.sides, "best rival", "ratio", "our best / bound"]
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for cell, found, ours, best, comparison in table:
        times = [_cell(found[side]) for side in bench.sides]
        last = ["", ""]
        if comparison is not None:
            ends = f"{comparison.low:.2f}", f"{comparison.high:.2f}"
            last[0] = f"{comparison.ratio:.2f} {_interval(*ends, comparison.pairs)}"
            last[1] = f"{found[ours].median / cell.bound:.2f}"
        yield f"| {' | '.join([cell.collective, str(cell.size), _ms(cell.bound), *times, best, *last])} |"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.{2 if seconds < 0.1 else 0}f}"


def _cell(found: Summary) -> str:
    low, high = map(_ms, found.interval)
    return f"{_ms(found.median)} {_interval(low, high, found.times)}"


def _interval(low: str, high: str, times: int) -> str:
    """Format an interval, or, with too few times for resampling, the number of times."""
    return f"[{low}, {high}]" if times >= FEWEST else f"(n={times})"


def document(bench: Bench) -> dict[str, object]:
    """Return all measurements, for other programs."""
    return {
        "format": "topompi emulated benchmark",
        "version": 1,
        "network": bench.network.spec,
        "rates": sorted(set(bench.network.fabric.link_rate.tolist())),
        "rounds": bench.rounds,
        "results": [
            {
                "order": order,
                "side": side,
                "mpi": kept.mpi,
                "collective": cell.collective,
                "size": cell.size,
                "bound": cell.bound,
                "idle": kept.ticks[0] / max(1, kept.ticks[1]),
                "starts": len(kept.starts[cell.collective, cell.size]),
                "samples": [one for start in kept.starts[cell.collective, cell.size] for one in start],
            }
            for (order, side), kept in bench.measured.items()
            for cell in bench.cells[order]
            if (cell.collective, cell.size) in kept.starts
        ],
    }


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = network_parser(__doc__)
    parser.add_argument("--uplink-rate", default="100M", help="of uplinks; 400M is 1:1 for 4 hosts of 100M, 100M 4:1")
    parser.add_argument("--orders", default=ORDERS, help=f"rank orders (default {ORDERS})")
    parser.add_argument("--collectives", default=",".join(COLLECTIVES))
    parser.add_argument("--sizes", default=SIZES, help=f"bytes (default {SIZES})")
    parser.add_argument("--sides", default=",".join([*RIVALS, *OURS]), help="of what runs, in the order of the table")
    parser.add_argument("--mpich-python", help="a Python with MPICH and mpi4py, for the sides that need it")
    parser.add_argument("--limit", type=float, default=0.7, help="leave out cells whose bound is above so many seconds")
    parser.add_argument("--minutes", type=float, default=12.0, help="begin no round that would end later; see --join")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds that one start may take")
    parser.add_argument(
        "--join", action="append", default=[], help="the --json of an earlier run, to be added; repeatable"
    )
    parser.add_argument("--cache", help="keep what was tuned here, for another run (default: tuned anew each time)")
    parser.add_argument("--json", help="write all samples here")
    arguments = parser.parse_args()
    arguments.sizes = [parse_bytes(text, "--sizes") for text in arguments.sizes.split(",")]
    return arguments


def main() -> None:
    """Measure, print the tables, and write all measurements."""
    arguments = parse()
    with one_line_errors("emulated"):
        rates = Rates.parse(arguments.host_rate, arguments.uplink_rate)
        with tempfile.TemporaryDirectory() as scratch, Emulated(arguments.network, rates) as network:
            bench = Bench(network, arguments, Path(scratch))
            for path in arguments.join:
                bench.join(Path(path))
            bench.run()
            print("\n".join(markdown(bench)))
            if arguments.json:
                Path(arguments.json).write_text(json.dumps(document(bench)) + "\n")


if __name__ == "__main__":
    main()
