"""``topompi colocate pair``: pairs of programs for shared nodes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ...inputs.pairs import read_pairs
from ...machine.colocation.errors import ColocationError
from ...machine.colocation.pairing.matching import MATCHERS
from ...machine.colocation.pairing.pool import BASES, Pairing, pair_jobs
from ..inputs import AsJson
from ..quantities import FACTOR
from ..terminal import console
from .inputs import read_knowledge

__all__ = ["System", "pair"]

System = Annotated[
    Path | None, typer.Option("--system", help="Bounds and thresholds of the machine; default: of these profiles.")
]
_BY = f"Value of a pair: {', '.join(BASES)}; default: speedups if there is a file of them, else labels."
_POOL = "Jobs as PROGRAM or PROGRAM=NUMBER, separated by commas; default: each program once."


def pair(
    files: Annotated[list[Path], typer.Argument(help="Profiles, and at most one file of speed-ups.")],
    *,
    pool: Annotated[str, typer.Option("--pool", help=_POOL)] = "",
    by: Annotated[str, typer.Option("--by", help=_BY)] = "",
    method: Annotated[str, typer.Option("--algorithm", "-a", help=f"{', '.join(MATCHERS)}.")] = "optimal",
    every: Annotated[bool, typer.Option("--all", help="Pair jobs that gain nothing, too.")] = False,
    known: Annotated[bool, typer.Option("--known", help="Leave out pairs whose speed-ups are unknown.")] = False,
    least: Annotated[float, FACTOR("--least", help="Least speed-up of each program in a pair.")] = 0.0,
    system: System = None,
    as_json: AsJson = False,
) -> None:
    """Pair programs for shared nodes, and show the reason of each pair and the expected speed-ups.

    A speed-up compares with nodes of the program's own. By speed-ups, the pairs take the least machine time; by labels,
    they have the most good and fewest bad labels of the rules; by score, their profiles differ most.
    """
    facts = read_knowledge(files, system)
    basis = by or ("speedups" if facts.speedups is not None else "labels")
    jobs = _pool(pool) or list(facts.speedups.programs if facts.speedups is not None else facts.profiles)
    try:
        found = pair_jobs(jobs, facts, by=basis, method=method, all_paired=every, skip_unknown=known, least=least)
    except ColocationError as error:
        raise ColocationError(f"{', '.join(map(str, files))}: {error}") from None
    if as_json:
        print(json.dumps({"by": basis, "method": method} | _facts(found)))
    else:
        _print(found)
        if system is None and facts.system is not None:
            console().print("bounds are those of these profiles; --system keeps them fixed", markup=False)


def _pool(text: str) -> list[str]:
    """Read the jobs of a pool."""
    jobs, form, parts = list[str](), "PROGRAM or PROGRAM=NUMBER", list(filter(None, text.split(",")))
    read_pairs((part for part in parts if "=" in part), "--pool", form, ColocationError)
    for part in parts:
        name, equals, count = part.partition("=")
        if equals and not (count.isascii() and count.isdigit() and 0 < int(count[:9]) <= 10_000):
            raise ColocationError(f"--pool: expecting {form}, got {part!r:.60}")
        jobs += [name] * (int(count) if equals else 1)
    return jobs


def _facts(found: Pairing) -> dict[str, object]:
    pairs = [
        {"programs": one.programs, "speedups": [_known(s) for s in one.speedups], "reason": one.reason}
        for one in found.pairs
    ]
    alone = [{"program": name, "reason": reason} for _, name, reason in found.alone]
    return {"pairs": pairs, "alone": alone, "gain": _known(found.gain)}


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _print(found: Pairing) -> None:
    table = Table("program", "speed-up", "beside", "speed-up", "reason", box=None, header_style="bold")
    for one in found.pairs:
        shown = ["-" if math.isnan(s) else f"{s:.2f}" for s in one.speedups]
        table.add_row(one.programs[0], shown[0], one.programs[1], shown[1], one.reason)
    for _, name, reason in found.alone:
        table.add_row(name, "-", "alone", "-", reason)
    screen = console()
    screen.print(table)
    if not math.isnan(found.gain):
        screen.print(f"machine time on nodes of their own over that in these pairs: {found.gain:.3f}", markup=False)
