"""``python -m studies poppa pairs|recovery|evict|overhead``: real pairs under the shutter, caches, overhead."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

from studies.stamps import MEASURED, stamp_of
from studies.tables import fill, table_lines
from topompi.errors import SettingError, TopompiError
from topompi.inputs.writing import write_text

from . import figures
from .overhead import LENGTHS, measure_overhead
from .pairs import Rhythm, measure
from .programs import KERNELS, go_first

__all__ = ["PAIRS", "main"]

PAGE = "prices.md"
PAIRS = (
    ("null", "null"), ("null", "triad"), ("null", "sparse"), ("null", "stencil"), ("triad", "triad"),
    ("triad", "sparse"), ("triad", "random"), ("triad", "stencil"), ("triad", "phases-1"), ("triad", "phases-10"),
)  # fmt: skip
RECOVERED = ("random", "stencil", "triad")  # kernels whose first milliseconds alone are measured, beside the triad
EVICTED = (("random", "random"), ("random", "triad"), ("random", "stencil"))  # kernels that empty each other's caches
# 32 windows of 3.2 ms per region show how long caches take to warm up after the neighbour has stopped.
LONG = Rhythm(cycles=5, watched=3.0, length=3.2, repeats=32, warm=0)
Job = tuple[str, Callable[[], dict[str, Any]]]


def main(arguments: Sequence[str]) -> int:
    """Measure what the file of results lacks, and print the tables; see ``--help``.

    :param arguments: arguments after the source's name.
    :returns: exit code; 1 if a measurement failed.
    """
    given = _parser().parse_args(arguments)
    go_first()
    results: dict[str, Any] = json.loads(given.results.read_text()) if given.results.exists() else {}
    try:
        of = results.get("cycles", "unknown") if results else given.cycles
        if not given.show and of != given.cycles:
            found = f"expecting results of {given.cycles} cycles, got {of} cycles; --results names another file"
            raise SettingError(f"{given.results}: {found}")
        results["cycles"] = given.cycles
        for name, run in [] if given.show else _jobs(given):
            if name not in results:
                print(f"measuring {name}", file=sys.stderr, flush=True)
                results[name] = run()
                write_text(given.results, json.dumps(results, indent=1) + "\n")
    except TopompiError as error:
        print(f"studies poppa: {error}", file=sys.stderr)
        return 1
    for marks, head, rows in figures.TABLES[given.part](results):
        lines = list(table_lines(head, rows))
        print("\n".join([f"\n{marks}", *lines]))
        if given.output is not None:
            command = f"python -m studies poppa {given.part}"
            fill(given.output / PAGE, marks, lines, stamp_of(command, __name__, MEASURED))
    return 0


def _jobs(given: argparse.Namespace) -> Iterator[Job]:
    if given.part == "pairs":
        pairs = list(combinations_with_replacement(KERNELS, 2)) if given.all else PAIRS
        for names in pairs if not given.only else [pair for pair in pairs if "/".join(pair) in given.only]:
            yield f"pair {'/'.join(names)}", partial(_pair, names, Rhythm(given.cycles))
    elif given.part == "recovery":
        for name in RECOVERED:
            yield f"recovery {name}", partial(_recovery, name)
    elif given.part == "evict":
        for names in EVICTED:
            yield f"evict {'/'.join(names)}", partial(_evicted, names, Rhythm(given.cycles))
    else:
        for length in LENGTHS:
            yield f"overhead {length:g}", partial(measure_overhead, length, given.cycles)


def _pair(names: tuple[str, str], rhythm: Rhythm) -> dict[str, Any]:
    return figures.of_pair(measure(names, rhythm))


def _evicted(names: tuple[str, str], rhythm: Rhythm) -> dict[str, Any]:
    return figures.of_evicted(measure(names, rhythm))


def _recovery(name: str) -> dict[str, Any]:
    return figures.of_recovery(measure((name, "triad"), LONG)[0])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m studies poppa", description=__doc__)
    add = parser.add_argument
    add("part", choices=tuple(figures.TABLES))
    add("-o", dest="output", metavar="DIR", type=Path, help=f"folder whose {PAGE} gets the tables")
    add("--results", metavar="FILE", type=Path, default=Path("poppa-study.json"), help="kept from run to run")
    add(
        "--cycles",
        metavar="N",
        type=int,
        default=30,
        help="cycles: both jobs, one alone, both, the other alone",
    )
    add("--only", metavar="A/B", nargs="+", default=[], help="pairs: these alone")
    add("--all", action="store_true", help="pairs: every kernel beside every kernel")
    add("--show", action="store_true", help="measure nothing: tables of the results that are there")
    return parser
