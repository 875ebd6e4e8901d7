"""Four programs that share a node of two cores: measured in pairs, predicted, paired, and run in all modes in turn.

    python -m studies coscheduling2025 walk --results walk-study -o docs/lab

Three are the project's examples with one process, one is a kernel. ``--quick`` runs a small case, which fills no page.
An interrupted walk goes on where it stopped if it is called again.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from studies.poppa.programs import compiled
from studies.stamps import MEASURED, stamp_of
from studies.tables import fill, table_lines
from topompi.colocation.measuring.picture import draw
from topompi.colocation.measuring.plan import Program, programs_of
from topompi.colocation.measuring.running import run_segment
from topompi.colocation.speedups.files import read_speedups, write_speedups
from topompi.errors import BenchmarkError, TopompiError
from topompi.inputs.writing import write_text

from .hidden import designs, next_design, only_pairs
from .turns import Step, Turn, modes_of, plan
from .walk_tables import NEIGHBOURS, tables

__all__ = ["PROGRAMS", "commands", "main", "read_turns", "run_turns"]

ROOT = Path(__file__).resolve().parents[2]
PAGE, FIGURE, HEAT, TURNS = "coscheduling.md", "walk.svg", "heat.json", "turns.json"
# Command lines, and two values of {n}: with the first a run takes 1.3 to 1.6 s here, with the second, of --quick, less.
PROGRAMS = {
    "stencil3d": ("python examples/stencil3d/stencil3d.py --grid 128x128x128 --steps {n}", "30", "3"),
    "cg": ("python examples/cg/cg.py --grid 96x96x96 --tolerance {n}", "1e-3", "2e-1"),
    "fft3d": ("python examples/fft3d/fft3d.py --shape 32x32x32 --steps {n}", "40", "4"),
    "null": ("kernels null {n}", "4500000", "450000"),
}
BLOCKS, ROUNDS = 5, 20
LIMIT = 60.0  # seconds that a run may take
# Open MPI on one host: without these it looks for networks for a second at every start.
ENVIRONMENT = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm"}


def commands(quick: bool, kernels: Path) -> list[str]:
    """Return the programs as words ``NAME=COMMAND`` of ``topompi colocate measure``.

    :param quick: whether runs are short.
    :param kernels: path of the compiled kernels.
    """
    places = {"python": sys.executable, "kernels": str(kernels)}
    found = []
    for name, (line, long, short) in PROGRAMS.items():
        words = line.format(n=short if quick else long).split()
        whole = [str(ROOT / word) if word.endswith(".py") else places.get(word, word) for word in words]
        found.append(f"{name}={shlex.join(whole)}")
    return found


def run_turns(programs: Sequence[Program], cores: Sequence[Sequence[int]], path: Path, rounds: int) -> list[Turn]:
    """Run the turns that a file lacks, each kept at once, and return all.

    :param programs: the programs.
    :param cores: cores of both places, which programs exchange in every second round.
    :param path: JSON file of the turns.
    :param rounds: number of rounds.
    :raises TopompiError: if a program fails.
    """
    by_name = {one.name: one for one in programs}
    turns = read_turns(path)
    done = {turn.step for turn in turns}
    for step in plan(modes_of(list(by_name), designs(list(by_name), 1)), rounds):
        if step in done:
            continue
        runs = list[tuple[str, float]]()

        def record(name: str, seconds: float, runs: list[tuple[str, float]] = runs) -> None:
            runs.append((name, seconds))

        places = cores[::-1] if step.round % 2 else cores
        began = time.monotonic()
        run_segment([by_name[name] for name in step.programs], places, LIMIT, record)
        turns.append(Turn(step, time.monotonic() - began, tuple(runs)))
        write_text(path, json.dumps(turns) + "\n")
    return turns


def read_turns(path: Path) -> list[Turn]:
    """Read the turns that have run; none if there is no file.

    :param path: JSON file of the turns.
    :raises BenchmarkError: if the file is malformed.
    """
    if not path.exists():
        return []
    try:
        found: list[Any] = json.loads(path.read_text(encoding="utf-8"))
        return [
            Turn(Step(number, mode, tuple(names)), seconds, tuple((name, took) for name, took in runs))
            for (number, mode, names), seconds, runs in found
        ]
    except (ValueError, TypeError) as error:
        raise BenchmarkError(f"{path}: expecting turns as JSON, got {error}") from None


def _measure(words: Sequence[str], cores: Sequence[int], heat: Path, blocks: int) -> None:
    """Run ``topompi colocate measure`` on two cores."""
    places = "--cores=" + ",".join(map(str, cores))
    count = [f"--set=least={blocks},most={blocks}"]
    command = [sys.executable, "-m", "topompi", "colocate", "measure", *words, "-o", str(heat), places, *count]
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode:
        raise BenchmarkError(f"topompi colocate measure: expecting exit code 0, got {done.returncode}")


def _measured(folder: Path, quick: bool) -> list[Turn]:
    """Measure what a folder lacks: the matrix, the matrix with hidden cells, and the turns."""
    words = commands(quick, compiled())
    cores = sorted(os.sched_getaffinity(0))[:2]
    os.environ.update(ENVIRONMENT)
    _measure(words, cores, folder / HEAT, 1 if quick else BLOCKS)
    truth = read_speedups(folder / HEAT)
    write_speedups(folder / "part.json", only_pairs(truth, next_design(truth, NEIGHBOURS[0])))
    return run_turns(programs_of(words), [[one] for one in cores], folder / TURNS, 1 if quick else ROUNDS)


def _run(given: argparse.Namespace) -> None:
    folder: Path = given.results.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    turns = read_turns(folder / TURNS) if given.show else _measured(folder, given.quick)
    truth = read_speedups(folder / HEAT)
    for marks, head, rows in tables(truth, turns):
        lines = list(table_lines(head, rows))
        print("\n".join([f"\n{marks}", *lines]))
        if given.output is not None and not given.quick:
            fill(
                given.output / PAGE,
                marks,
                lines,
                stamp_of("python -m studies coscheduling2025 walk", __name__, MEASURED),
            )
    if given.output is not None and not given.quick:
        draw(truth, given.output.parent / "figures" / FIGURE)


def main(arguments: Sequence[str]) -> int:
    """Take the walk, print its tables, and put them and the heat map into the pages.

    :param arguments: arguments after the study's name; see ``--help``.
    :returns: exit code; 1 if a program failed.
    """
    parser = argparse.ArgumentParser(prog="python -m studies coscheduling2025 walk", description=__doc__)
    add = parser.add_argument
    add("-o", dest="output", metavar="DIR", type=Path, help=f"folder whose {PAGE} gets the tables")
    add(
        "--results", metavar="DIR", type=Path, default=Path("walk-study"), help="folder of runs, kept from call to call"
    )
    add("--quick", action="store_true", help="a small case, which fills no page")
    add("--show", action="store_true", help="run nothing: tables of the results that are there")
    try:
        _run(parser.parse_args(arguments))
    except TopompiError as error:
        print(f"studies coscheduling2025 walk: {error}", file=sys.stderr)
        return 1
    return 0
