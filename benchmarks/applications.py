"""Whole programs on an emulated network: the examples unchanged, and with one line changed.

    python -m benchmarks.applications --json applications.json --markdown applications.md

Needs root. Both sides of run n place their ranks in the order ``random:n``, as a scheduler may, and alternate in going
first. A ratio is the original's median over topompi's, above 1 if topompi is faster, with a 95 % interval by bootstrap
over pairs of runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from osu_like_bench.emulate import Emulated, LaunchOptions, LinkRates
from osu_like_bench.statistics import Comparison, compare
from topompi.errors import TopompiError

from .jobs import network_parser, progress
from .paths import ROOT

SIDES = ("original", "topompi")
# Options of each example for the original line, and for the changed line.
CHANGES: Mapping[str, tuple[str, str]] = {
    "stencil3d": ("--reorder none", "--reorder topompi"),
    "cg": ("--reorder none", "--reorder topompi"),
    "fft3d": ("--comm native", "--comm topompi"),
}
RESULTS = ("fingerprint", "energy", "iterations")  # results that both sides must agree on, if an example prints them


@dataclass(frozen=True)
class Case:
    """An example with its options and its number of ranks on each host.

    :param application: name of an example.
    :param ppn: ranks on each host.
    :param options: options of the program.
    """

    application: str
    ppn: int
    options: str

    def __str__(self) -> str:
        return f"{self.application} {self.options}, {self.ppn} a host"


CASES = (
    Case("stencil3d", 1, "--grid 192x96x96 --steps 800"),
    Case("stencil3d", 1, "--grid 192x96x96 --steps 400 --periodic"),
    Case("stencil3d", 2, "--grid 192x192x96 --steps 400"),
    Case("stencil3d", 2, "--grid 192x192x96 --steps 200 --periodic"),
    Case("cg", 1, "--grid 192x96x96 --tolerance 3e-3"),
    Case("cg", 2, "--grid 192x192x96 --tolerance 1e-2"),
    Case("fft3d", 1, "--shape 64x64x64 --steps 5"),
    Case("fft3d", 2, "--shape 64x64x64 --steps 5"),
)


@dataclass(frozen=True)
class Row:
    """The measurements of an example on a network.

    :param case: the program.
    :param links: description of the network and its rates.
    :param runs: records of all runs, of the original and of topompi's side.
    """

    case: Case
    links: str
    runs: tuple[list[dict[str, Any]], list[dict[str, Any]]]

    def median(self, side: int, *names: str) -> float:
        """Return the median, over a side's runs, of the sum of the named times, in seconds."""
        return float(np.median(self._times(side, names)))

    def share(self, side: int) -> float:
        """Return the median, over a side's runs, of the share of the solution's time that is communication."""
        return float(np.median([run["communication"] / run["seconds"] for run in self.runs[side]]))

    def ratio(self, *names: str) -> Comparison:
        """Return the comparison of the sums of the named times; its ratio is above 1 if topompi is faster."""
        return compare(self._times(1, names), self._times(0, names))

    def _times(self, side: int, names: Sequence[str]) -> np.ndarray:
        return np.array([sum(run[name] for name in names) for run in self.runs[side]])

    @property
    def alike(self) -> bool:
        """Whether both sides have equal results in every run."""
        return all(one["result"] == other["result"] for one, other in zip(*self.runs, strict=True))

    @property
    def idle(self) -> float:
        """Median share of the processors that was idle, or ran work of lower priority, while data flowed."""
        shares = [run["idle"] for runs in self.runs for run in runs if run["idle"] is not None]
        return float(np.median(shares)) if shares else float("nan")


def measure(network: Emulated, case: Case, side: int, number: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run one side once; return its record.

    :param network: network that is up.
    :param case: the program.
    :param side: index into SIDES.
    :param number: number of the run, which is the seed of the order of the ranks.
    :param arguments: arguments of the command line.
    :raises TopompiError: if the program fails.
    """
    program = ROOT / "examples" / case.application / f"{case.application}.py"
    words = [str(program), *case.options.split(), *CHANGES[case.application][side].split(), "--json"]
    order = f"random:{number}"
    begin = time.monotonic()
    done = network.run(
        words, LaunchOptions(order=order, ppn=case.ppn, python=arguments.python, timeout=arguments.timeout)
    )
    if done.returncode:
        raise TopompiError(f"{case}, {SIDES[side]}, {order}: exit code {done.returncode}: {done.stderr[-2000:]}")
    said = json.loads(done.stdout.splitlines()[-1])
    took = time.monotonic() - begin
    progress(f"{case}, {SIDES[side]}, {order}: {said['seconds']:.2f} s, {took:.1f} s with the start")
    return {
        "application": case.application,
        "ppn": case.ppn,
        "options": case.options,
        "links": f"{network.spec}, {arguments.host_rate} : {arguments.uplink_rate}",
        "side": SIDES[side],
        "order": order,
        **{name: said[name] for name in ("setup", "seconds", "communication")},
        "job": took,
        "result": [said[name] for name in RESULTS if name in said],
        "ranks": said.get("ranks", ""),
        "idle": done.usage.idle,
        "busiest": done.usage.busiest,
    }


def measured(cases: Sequence[Case], arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the records of all runs; each run has all cases, and each case has both sides one after the other."""
    rates = LinkRates.parse(arguments.host_rate, arguments.uplink_rate)
    with Emulated(arguments.network, rates) as network:
        for number in range(arguments.first, arguments.first + arguments.runs):
            for case in cases:
                for side in (0, 1) if number % 2 else (1, 0):
                    yield measure(network, case, side, number, arguments)


def rows_of(records: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return the records as rows by case and network; runs without both sides are left out."""
    found: dict[tuple[Case, str], dict[tuple[str, int], dict[str, Any]]] = {}
    for record in records:
        runs = found.setdefault((Case(record["application"], record["ppn"], record["options"]), record["links"]), {})
        again = 0  # joined files may have the same order
        while record["side"] in runs.setdefault((record["order"], again), {}):
            again += 1
        runs[record["order"], again][record["side"]] = record
    rows = []
    for (case, links), runs in found.items():
        pairs = [both for both in runs.values() if len(both) == len(SIDES)]
        if pairs:
            original, ours = ([both[side] for both in pairs] for side in SIDES)
            rows.append(Row(case, links, (original, ours)))
    return rows


def markdown(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table's lines, the smallest ratio first."""
    heads = "program|a host|links|runs|solve, s: original|topompi|ratio|communication: original|topompi"
    yield f"| {' | '.join(f'{heads}|set-up, s: original|topompi|ratio with set-up|same result|idle'.split('|'))} |"
    yield f"|{'---|' * 14}"
    for row in sorted(rows, key=lambda row: row.ratio("seconds").ratio):
        solve, whole = row.ratio("seconds"), row.ratio("setup", "seconds")
        cells = [f"{row.case.application} `{row.case.options}`", str(row.case.ppn), row.links, str(solve.pairs)]
        cells += [*(f"{row.median(side, 'seconds'):.2f}" for side in (0, 1)), _ratio(solve)]
        cells += [f"{row.share(side):.0%}" for side in (0, 1)]
        cells += [*(f"{row.median(side, 'setup'):.2f}" for side in (0, 1)), _ratio(whole)]
        yield f"| {' | '.join([*cells, 'yes' if row.alike else '**no**', f'{row.idle:.0%}'])} |"
    cpus, load = os.cpu_count(), ", ".join(f"{one:.1f}" for one in os.getloadavg())
    yield f"\n{platform.system()} {platform.release()}, {cpus} processors for all ranks, load {load} at the end."


def _ratio(found: Comparison) -> str:
    return f"{found.ratio:.2f} [{found.low:.2f}, {found.high:.2f}]"


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = network_parser(__doc__, "of host links, bits/s (default 100M)")
    parser.add_argument("--uplink-rate", default="100M", help="of uplinks (default 100M, which is 4:1)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="cases with this in their names; repeatable"
    )
    parser.add_argument(
        "--case", action="append", nargs=3, metavar=("NAME", "PPN", "OPTIONS"), help="this case instead; repeatable"
    )
    parser.add_argument("--list", action="store_true", help="print the names of the cases, and measure nothing")
    parser.add_argument("--runs", type=int, default=5, help="runs of each side (default 5); 0 with --join: only tables")
    parser.add_argument("--first", type=int, default=1, help="number of the first run, which says the order of ranks")
    parser.add_argument("--python", default=sys.executable, help="interpreter whose MPI runs the programs")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that one run may take (default 300)")
    parser.add_argument("--join", action="append", default=[], help="the --json of an earlier run, to be added")
    parser.add_argument("--json", metavar="FILE", help="write all runs here")
    parser.add_argument("--markdown", metavar="FILE", help="write the table here, and not to standard output")
    arguments = parser.parse_args()
    for name, ppn, _ in arguments.case or ():
        if name not in CHANGES or not ppn.isdecimal() or not int(ppn):
            parser.error(f"--case: expecting one of {', '.join(CHANGES)} and ranks a host, got {name} {ppn}")
    return arguments


def main() -> int:
    """Measure, print the table, and write the runs; a run that fails loses none of the earlier ones."""
    arguments = parse()
    wanted = [Case(name, int(ppn), options) for name, ppn, options in arguments.case or ()] or CASES
    cases = [case for case in wanted if not arguments.only or any(text in str(case) for text in arguments.only)]
    if arguments.list:
        print("\n".join(map(str, cases)))
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # raises, so that the network is taken down
    records: list[dict[str, Any]] = []
    failure: BaseException | None = None
    try:
        for path in arguments.join:
            records += json.loads(Path(path).read_text())["runs"]
        for record in measured(cases, arguments) if arguments.runs else ():
            records.append(record)
    except (TopompiError, OSError, KeyboardInterrupt) as error:
        failure = error
    if arguments.json and records:
        document = {"format": "topompi applications", "version": 1, "runs": records}
        Path(arguments.json).write_text(json.dumps(document, indent=1) + "\n")
    table = "\n".join(markdown(rows_of(records)))
    if arguments.markdown:
        Path(arguments.markdown).write_text(table + "\n")
    else:
        print(table)
    if failure is not None:
        print(f"applications: {' '.join(str(failure).split()) or 'interrupted'}", file=sys.stderr)
    return 0 if failure is None else 1


if __name__ == "__main__":
    sys.exit(main())
