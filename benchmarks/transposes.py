"""Transposes of a pencil FFT on an emulated network: topompi beside the MPI library, on the same sub-communicators.

    python -m benchmarks.transposes --ppn 1 --orders block,random:1 --json transposes.json

Needs root. All rows of a process grid exchange at once, then all columns, each by an Alltoall on a communicator that
``Split`` made of topompi's: the call itself, which runs what the cost model chose (or with ``--tune measure`` a trial),
and the MPI library's own on the very same communicator, in turn in one job; and that once more, which tells what is
chance. A time is that of the slowest rank of all communicators. Medians, 95 % intervals by bootstrap on rounds; the
bound is what the busiest link needs at its nominal rate.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from osu_like_bench.emulate import Emulated, JobOptions, Rates
from osu_like_bench.emulate.launch import rank_hosts
from osu_like_bench.options import parse_bytes
from osu_like_bench.statistics import Comparison, compare
from topompi.errors import TopompiError
from topompi.schedules import Network
from topompi.schedules.alltoall.fft import grid_groups
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of

from .sides import orders, together

FEWEST, MOST = 7, 900  # calls of a side of a cell
SIDES = ("native", "topompi", "again")
FLOOR, AIM = 0.98, 1.15
GRIDS = {1: "4x4,8x2", 2: "16x2,8x4"}


def measure(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """What each rank runs: all cells of a plan, both sides in turn."""
    from mpi4py import MPI

    import topompi

    world, comm = MPI.COMM_WORLD, topompi.Intracomm(MPI.COMM_WORLD)
    world.Alltoall(np.zeros(world.size, "b"), np.zeros(world.size, "b"))  # every pair has met
    found = []
    for rows in plan["rows"]:
        row, column = divmod(world.rank, world.size // rows)
        for way, child in (("rows", comm.Split(row, column)), ("columns", comm.Split(column, row))):
            for size in plan["sizes"]:
                sent = np.full((child.size, size // 8), float(world.rank))
                native, into = MPI.Intracomm(child), [np.empty_like(sent) for _ in SIDES]
                settle(world, partial(child.Alltoall, sent, into[1]), child)
                calls = [partial(one.Alltoall, sent, to) for one, to in zip((native, child, native), into, strict=True)]
                times = in_turn(world, calls, plan["seconds"])
                # On one host there is nothing to choose.
                choice = child._levels.only or child._levels.selector.choose("Alltoall", size)
                all_chosen = sorted(set(world.allgather(choice.algorithm)))
                right = world.allreduce(bool((into[0] == into[1]).all()), MPI.LAND)
                cell = {"rows": rows, "way": way, "size": size, "ran": all_chosen, "right": right}
                found.append(cell | dict(zip(SIDES, times, strict=True)))
            child.Free()
    return found


def settle(world: Any, call: Callable[[], object], child: Any) -> None:
    """Call until all communicators have decided on such calls."""
    trying = True
    while trying:
        call()
        trying = world.allreduce(not child._levels.only and child._levels.selector.trying, op=_lor())


def _lor() -> Any:
    from mpi4py import MPI

    return MPI.LOR


def in_turn(world: Any, calls: list[Callable[[], object]], seconds: float) -> list[list[float]]:
    """Time calls by turns for about so many seconds each: of each call the slowest rank's seconds, round by round."""
    from mpi4py import MPI

    times: list[list[float]] = [[] for _ in calls]
    rounds = FEWEST
    for order in orders(len(calls)):
        for side in order:
            world.Barrier()
            begin = time.perf_counter()
            calls[side]()
            times[side].append(world.allreduce(time.perf_counter() - begin, MPI.MAX))
        if len(times[0]) == 1:
            rounds = int(np.clip(seconds / max(times[0][0], 1e-6), FEWEST, MOST))
        if len(times[0]) >= rounds:
            break
    return times


def bound(network: Network, rows: int, way: str, size: int) -> float:
    """Seconds that the busiest link needs for all rows, or all columns, at once."""
    groups = grid_groups(rows, network.num_ranks // rows)[way == "columns"]
    there = np.zeros((len(groups), network.num_hosts))
    np.add.at(there, (np.arange(len(groups))[:, None], network.rank_host[np.stack(groups)]), 1)
    messages = there.T @ there
    np.fill_diagonal(messages, 0)
    used = network.links >= 0
    each = np.broadcast_to(messages[:, :, None], network.links.shape)[used]
    load = np.bincount(network.links[used], weights=each, minlength=len(network.capacity))
    return float((size * load / network.capacity).max())


def run(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The cells of all rank orders, with their bounds."""
    rows = [int(grid.split("x")[0]) for grid in (arguments.grids or GRIDS[arguments.ppn]).split(",")]
    sizes = [parse_bytes(word, "--sizes") for word in arguments.sizes.split(",")]
    rates = Rates.parse(arguments.host_rate, arguments.uplink_rate)
    with tempfile.TemporaryDirectory() as scratch, Emulated(arguments.network, rates) as network:
        plan = Path(scratch) / "plan.json"
        plan.write_text(json.dumps({"rows": rows, "sizes": sizes, "seconds": arguments.seconds}))
        for order in arguments.orders.split(","):
            environment = {"TOPOMPI_TUNE": arguments.tune, "XDG_CACHE_HOME": scratch}
            options = JobOptions(ppn=arguments.ppn, order=order, timeout=arguments.timeout, environment=environment)
            done = network.run(["-m", "benchmarks.transposes", "--ranks", str(plan)], options)
            if done.returncode:
                raise TopompiError(f"{order}: exit code {done.returncode}: {done.stderr[-2000:]}")
            hosts = rank_hosts(network.fabric, ppn=arguments.ppn, order=order)
            placed = network_of(TopologyInterface.place(hosts, load(network.path).routes))
            for cell in json.loads(done.stdout.splitlines()[-1]):
                least = bound(placed, cell["rows"], cell["way"], cell["size"])
                yield {"order": order, "ranks": placed.num_ranks, "bound": least, **cell}


def table(cells: list[dict[str, Any]]) -> Iterator[str]:
    """What falls short, and the lines of a Markdown table."""
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
    """What cells of one size on as many ranks say together, beside what is chance and what the links allow."""
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
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="4x4", help="what to emulate (default 4x4: 4 leaves x 4 hosts)")
    parser.add_argument("--host-rate", default="100M", help="of host links, bits/s")
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
    parser.add_argument("--ranks", metavar="PLAN", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure, and print the table."""
    arguments = parse()
    if arguments.ranks:
        found = measure(json.loads(Path(arguments.ranks).read_text()))
        from mpi4py import MPI

        if MPI.COMM_WORLD.rank == 0:
            print(json.dumps(found))
        return
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
