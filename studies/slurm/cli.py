"""``python -m studies slurm [PART...]``: the reference's chapter 8 on a real Slurm, over an emulated network."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from topompi.errors import TopompiError
from topompi.inputs.writing import write_text

from ..stamps import MEASURED, stamp_of
from ..tables import stamped
from . import latency, page, placement, throughput
from .bench import ROOT
from .plan import Plan, Results

__all__ = ["PARTS", "main"]

PARTS = ("throughput", "stencil", "alltoall", "latency")
PAGE = "slurm.md"


def main(arguments: Sequence[str]) -> int:
    """Measure the cells that the file of results lacks, and print their tables; see ``--help``.

    :param arguments: arguments after the source's name.
    :returns: exit code; 1 if a cell failed.
    """
    given = _parser().parse_args(arguments)
    plan = _plan(given)
    # Programs on the hosts import this checkout's modules.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that contexts take Slurm and the network down
    try:
        results = Results(given.results, plan)
        if not given.show:
            _measure(plan, results, given.parts or PARTS)
        stamp = stamp_of("python -m studies slurm", __name__, MEASURED)
        lines = [*stamped(page.lines(results.data), stamp)]
        if given.output is not None:
            write_text(given.output / PAGE, "\n".join(lines) + "\n")
        print("\n".join(lines))
    except TopompiError as error:
        print(f"studies slurm: {error}", file=sys.stderr)
        return 1
    for name in results.failed:
        print(f"failed: {name}", file=sys.stderr)
    return int(bool(results.failed))


def _measure(plan: Plan, results: Results, parts: Sequence[str]) -> None:
    if "throughput" in parts:
        throughput.measure(plan, results)
    placement.measure(plan, results, parts)
    if "latency" in parts:
        latency.measure(plan, results)


def _plan(given: argparse.Namespace) -> Plan:
    plan = Plan(repetitions=given.repetitions, policies=tuple(given.policies), seed=given.seed, uplinks=given.uplinks)
    return replace(plan, jobs=8, seconds=2.5, starts=4) if given.small else plan


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m studies slurm", description=__doc__)
    add, default = parser.add_argument, Plan()
    add("parts", metavar="PART", nargs="*", choices=(*PARTS, []), help=f"{', '.join(PARTS)}; all by default")
    add("-o", dest="output", metavar="DIR", type=Path, help=f"folder whose {PAGE} is written")
    add("--results", metavar="FILE", type=Path, default=Path("slurm-study.json"), help="cells, kept from run to run")
    add("--repetitions", metavar="N", type=int, default=default.repetitions)
    add("--policies", nargs="+", choices=throughput.POLICIES, default=list(default.policies))
    add("--seed", metavar="N", type=int, default=default.seed, help="of the list of jobs, and of random orders")
    add("--uplinks", metavar="RATE", default=default.uplinks, help="rate of the uplinks in the throughput: 40M is 2:1")
    add("--small", action="store_true", help="few short jobs, to try it out")
    add("--show", action="store_true", help="measure nothing: tables of the results that are there")
    return parser
