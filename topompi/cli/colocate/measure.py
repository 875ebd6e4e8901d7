"""``topompi colocate measure``: programs in pairs on this node."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.table import Table

from ...inputs.figures import span_name
from ...inputs.files import read_text
from ...inputs.writing import write_text
from ...machine.colocation.errors import ColocationError
from ...machine.colocation.measuring import picture
from ...machine.colocation.measuring.estimating import Forecast, forecast, speedups_of, spreads_of
from ...machine.colocation.measuring.journal import Journal
from ...machine.colocation.measuring.plan import (
    MeasuredProgram,
    MeasuredRun,
    Pair,
    Segment,
    StoppingRules,
    next_segment,
    pairs_of,
    programs_of,
)
from ...machine.colocation.measuring.running import Guard, run_segment
from ...machine.colocation.speedups.files import write_speedups
from ...machine.colocation.speedups.matrix import Speedups
from ..inputs import Settings, settings_of
from ..quantities import COUNT, SECONDS, SHARE
from ..terminal import Screen, console

__all__ = ["measure"]

_PROGRAM = "A command line, NAME=COMMAND, or a file with one per line; quote each."
_CORES = "Cores of the node, for example 0-7: the first half runs one program, the second its neighbour. Default: all."
_ONLY = "PROGRAM/PROGRAM: only this pair, and both programs beside themselves; may be repeated."

RULES = {"least": (COUNT, 3), "most": (COUNT, 9), "within": (SHARE, 0.02)}


def measure(
    programs: Annotated[list[str], typer.Argument(metavar="PROGRAM...", help=_PROGRAM, show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="File for the speed-ups; the runs go to FILE.runs.")],
    cores: Annotated[str | None, typer.Option("--cores", help=_CORES)] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help=_ONLY)] = None,
    settings: Settings = None,
    limit: Annotated[float, SECONDS("--timeout", help="Seconds that one run may take.", min=0.001)] = 600.0,
    draw: Annotated[Path | None, typer.Option("--draw", help="Draw the heat map as FILE.svg or FILE.png.")] = None,
    dry: Annotated[bool, typer.Option("--dry-run", help="Say what is still needed; run and write nothing.")] = False,
) -> None:
    """Measure how much programs slow each other in pairs on this node, and write the matrix of speed-ups.

    A pair is measured in blocks: one program alone, both side by side, the other alone. Side by side, the program that
    ends first is restarted until both have ended. Speed-ups are relative to a program beside a second copy of itself.
    Each run is kept at once: the same call later runs what is missing. Settings: least and most (number of blocks per
    pair), within (relative half-width at which an interval suffices).
    """
    if draw is not None:
        picture.check_plot(draw)
    rules = StoppingRules(*settings_of(settings, RULES, ColocationError).values())
    listed, halves = _programs(programs), _halves(cores)
    pairs = pairs_of([one.name for one in listed], only or [])
    kept, screen = output.with_name(output.name + ".runs"), console(to_error=True)
    if dry:
        runs = _runs_so_far(kept, listed, halves)
        screen.print(_rest(pairs, runs, rules), markup=False)
        _print(speedups_of([one.name for one in listed], runs))
        return
    journal = Journal(kept, listed, halves)
    try:
        with _ended_by_signals(), Guard() as guard:
            _run_all(listed, pairs, journal, rules, halves, limit, screen, guard)
    finally:
        journal.close()
        found = speedups_of([one.name for one in listed], journal.runs)
        write_speedups(output, found)
    _print(found)
    if draw is not None:
        picture.draw(found, draw)


def _runs_so_far(kept: Path, programs: Sequence[MeasuredProgram], halves: Sequence[Sequence[int]]) -> list[MeasuredRun]:
    """Read a journal as a measurement would, from a copy, because that cuts the journal and adds programs to it."""
    with TemporaryDirectory() as folder:
        copy = Path(folder, kept.name)
        if kept.exists():
            write_text(copy, read_text(kept, ColocationError, "a journal of runs"))
        try:
            journal = Journal(copy, programs, halves)
        except ColocationError as error:
            raise ColocationError(str(error).replace(str(copy), str(kept))) from None
        journal.close()
    return journal.runs


def _run_all(
    programs: Sequence[MeasuredProgram],
    pairs: Sequence[Pair],
    journal: Journal,
    rules: StoppingRules,
    halves: Sequence[Sequence[int]],
    limit: float,
    screen: Screen,
    guard: Guard,
) -> None:
    """Run segments until all pairs are good enough, with a line of progress before each."""
    by_name = {one.name: one for one in programs}
    while True:
        segment = next_segment(pairs, journal.runs, spreads_of(journal.runs), rules)
        if segment is None:
            return
        now = " beside ".join(segment.programs) + " alone" * (len(segment.programs) == 1)
        screen.print(f"{_rest(pairs, journal.runs, rules)}; now {now}", markup=False)

        def record(name: str, seconds: float, segment: Segment = segment) -> None:
            journal.write(MeasuredRun(segment.pair, segment.block, name, _beside(segment, name), seconds))

        # A program keeps its half of the node when it runs alone.
        places = [halves[segment.pair.index(name)] for name in segment.programs]
        if len(set(segment.programs)) < len(segment.programs):
            places = list(halves)
        run_segment([by_name[name] for name in segment.programs], places, limit, record, guard)


def _beside(segment: Segment, name: str) -> str | None:
    if len(segment.programs) == 1:
        return None
    one, other = segment.programs
    return other if name == one else one


def _rest(pairs: Sequence[Pair], runs: Sequence[MeasuredRun], rules: StoppingRules) -> str:
    rest: Forecast = forecast(pairs, runs, spreads_of(runs), rules)
    time = f"about {span_name(rest.seconds)}" if rest.seconds == rest.seconds else "unknown time"
    return (
        f"{rest.cells} of {sum(len(set(pair)) for pair in pairs)} cells still needed, {time if rest.cells else '0 s'}"
    )


def _programs(words: Sequence[str]) -> list[MeasuredProgram]:
    """Read programs from words, each of which may be a file that is no program."""
    lines = list[str]()
    for word in words:
        path = Path(word)
        if path.is_file() and not os.access(path, os.X_OK):
            text = read_text(path, ColocationError, "programs")
            lines += [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        else:
            lines.append(word)
    return programs_of(lines)


def _halves(text: str | None) -> tuple[list[int], list[int]]:
    """Return the cores of both halves of the node.

    :raises ColocationError: if cores are malformed, or fewer than two.
    """
    usable = sorted(os.sched_getaffinity(0))
    wanted = usable if text is None else _cores(text)
    if len(wanted) < 2 or not set(wanted) <= set(usable):
        raise ColocationError(f"--cores: expecting two or more of {usable}, got {text or usable}")
    half = len(wanted) // 2
    return wanted[:half], wanted[half : 2 * half]


def _cores(text: str) -> list[int]:
    found = list[int]()
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
    except ValueError:
        raise ColocationError(f"--cores: expecting numbers and ranges, for example 0-3,8, got {text!r}") from None
    return list(dict.fromkeys(found))


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end this process like an exit, so that programs are ended, too."""

    def leave(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print(found: Speedups) -> None:
    """Print a row per program: seconds in compact mode, speed-ups beside each neighbour with intervals, and alone."""
    table = Table(box=None, header_style="bold")
    table.add_column("program")
    for name in ("compact s", *(f"beside {name}" for name in found.programs), "alone"):
        table.add_column(name, justify="right")
    for row, name in enumerate(found.programs):
        cells = [_cell(*values) for values in zip(found.ratio[row], found.low[row], found.high[row], strict=True)]
        table.add_row(name, f"{found.compact[row]:.3f}", *cells, _cell(found.alone[row]))
    console().print(table)


def _cell(value: float, low: float = float("nan"), high: float = float("nan")) -> str:
    if value != value:
        return "-"
    return f"{value:.2f}" if low != low else f"{value:.2f} ({low:.2f}-{high:.2f})"
