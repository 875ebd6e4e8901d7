"""``python -m osu_like_bench compare A.json B.json``: a comparison of two separate runs by size, without MPI."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from topompi.cli.terminal import HELP, Limit
from topompi.errors import BenchmarkError, TopompiError
from topompi.inputs import in_words, read_text
from topompi.inputs.figures import SERIES, bare_name, check_plot, cut_middle, log_axes, name_ends, save_figure

from .command import UsageError
from .likeness import cautions, differences
from .options import SIDES
from .record import Record, SizeResult
from .statistics import LEAST_TIMES, TOO_FEW, Comparison, TimeSummary, compare_runs, summary

__all__ = ["ComparisonTable", "SideTimes", "compare_records", "main", "plot"]

FORMAT, VERSION = "osu_like_bench comparison", 1
OURS, NATIVE = SIDES
# The value of ``Facts.arena`` in records of simulations, whose times have no noise; and the name of the side under
# which these records have the lower bounds of any schedule's time.
SIMULATED, BOUND = "simulate", "bound"
COLUMNS = (("A(us)", 12), ("IQR(us)", 12), ("B(us)", 12), ("IQR(us)", 12), ("Ratio", 8), ("95% interval", 16))
SIZE, VERDICT = 16, 18


class AllowedDifference(StrEnum):
    """The differences between runs that ``--across`` can allow."""

    mpi = "mpi"


app = typer.Typer(add_completion=False, context_settings=HELP)


@dataclass(frozen=True)
class SideTimes:
    """The measurements of one side (one of the implementations compared in a run) of a record.

    :param name: name of the record, for error messages.
    :param record: the whole record.
    :param side: name of the side.
    :param results: results by message size in bytes.
    """

    name: str
    record: Record
    side: str
    results: dict[int, SizeResult]

    @classmethod
    def choose(cls, name: str, record: Record, side: str) -> SideTimes:
        """Choose a record's side by name; if the record has a single side, choose that one.

        :param name: name of the record, for error messages.
        :param record: a record with results.
        :param side: name of the side.
        :raises BenchmarkError: if the record has no results, or several sides and none of this name.
        """
        by_side: dict[str, dict[int, SizeResult]] = {}
        for result in record.results:
            by_side.setdefault(result.side, {})[result.size] = result
        if not by_side:
            raise BenchmarkError(f"{name}: expecting results, got none")
        chosen = next(iter(by_side)) if len(by_side) == 1 else side
        if chosen not in by_side:  # as in simulations, whose sides are algorithms and libraries without a default
            raise BenchmarkError(f"{name}: expecting a side in {sorted(by_side)}, got {chosen!r}")
        return cls(name, record, chosen, by_side[chosen])

    def __str__(self) -> str:
        return f"{self.name} ({self.side}, {self.record.facts.mpi})"


@dataclass(frozen=True)
class ComparisonTable:
    """A comparison of two series of measurements, A and B, at the sizes that both have.

    :param series: A and B.
    :param sizes: message sizes in bytes that both have, ascending.
    :param summaries: two sequences, the summaries of A's and of B's times, one per size.
    :param rows: comparisons of A with B, one per size.
    :param overall: comparison by the geometric mean of the ratios over the sizes.
    :param notes: cautions about the comparison, one line each.
    """

    series: tuple[SideTimes, SideTimes]
    sizes: tuple[int, ...]
    summaries: tuple[tuple[TimeSummary, ...], tuple[TimeSummary, ...]]
    rows: tuple[Comparison, ...]
    overall: Comparison
    notes: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the table as text."""
        first, second = self.series
        facts = first.record.facts
        yield f"# OSU-like comparison of {first.record.options.benchmark}, A against B"
        yield f"# A: {first}"
        yield f"# B: {second}"
        if facts.arena == SIMULATED:
            yield f"# {facts.ranks} rank(s) on {len(set(facts.nodes))} simulated host(s): {facts.description}"
            yield "# Times until the last rank has finished, exact and the same in each run; ratio: B / A"
        else:
            yield f"# {facts.ranks} rank(s) on {len(set(facts.nodes))} machine(s), {facts.cpu}"
            yield "# Medians over iterations of the slowest rank's time and interquartile range; ratio: B / A"
            yield "# Intervals say how times vary within these runs, not from run to run: repeat both to learn that"
        if first.record.options.benchmark == "bw":
            yield "# Times are of a window of messages: half the time is twice the bandwidth"
        yield f"{'# Size':<{SIZE}}" + "".join(f"{name:>{width}}" for name, width in COLUMNS) + f"{'Verdict':>{VERDICT}}"
        for size, one, other, row in zip(self.sizes, *self.summaries, self.rows, strict=True):
            cells = [f"{seconds * 1e6:.2f}" for side in (one, other) for seconds in (side.median, _range(side))]
            yield _line(str(size), cells, row)
        yield _line("# Geometric mean", [""] * 4, self.overall)
        yield from (f"# {note}" for note in self.notes)

    def to_json(self) -> str:
        """Return the table as JSON text; times are in seconds."""
        names = [
            {"record": side.name, "side": side.side, "mpi": side.record.facts.mpi, "date": side.record.facts.date}
            for side in self.series
        ]
        rows = [
            {"size": size, "a": _numbers(one), "b": _numbers(other), **_words(row)}
            for size, one, other, row in zip(self.sizes, *self.summaries, self.rows, strict=True)
        ]
        head = {"format": FORMAT, "version": VERSION, "benchmark": self.series[0].record.options.benchmark}
        tail = {"sizes": rows, "geometric_mean": _words(self.overall), "notes": self.notes}
        return json.dumps({**head, "a": names[0], "b": names[1], **tail}, indent=1)


def compare_records(first: SideTimes, second: SideTimes, across: bool = False, seed: int = 0) -> ComparisonTable:
    """Compare two series of measurements at every message size that both have.

    :param first: A, the run in question.
    :param second: B, the run that it is compared with.
    :param across: True if the MPI libraries may differ in vendor.
    :param seed: seed of the resampling by which intervals are found.
    :raises BenchmarkError: if circumstances of the runs differ that forbid a comparison (one line per difference), or
        no size is in both series.

    Cost: 2,000 medians per size.
    """
    named = (first.name, first.record), (second.name, second.record)
    unlike = differences(*named, across=across)
    if unlike:
        raise BenchmarkError("\n".join(unlike))
    sizes = tuple(sorted(first.results.keys() & second.results.keys()))
    if not sizes:
        raise BenchmarkError(f"{first.name} and {second.name}: expecting a message size in both, got none")
    generator = np.random.default_rng(seed)
    one, other = (_summaries(series, sizes, generator) for series in (first, second))
    exact = first.record.facts.arena == SIMULATED
    rows = tuple(replace(compare_runs([a], [b]), exact=exact) for a, b in zip(one, other, strict=True))
    overall = replace(compare_runs(one, other), exact=exact)
    notes = [
        *_left_out(first, second, sizes),
        *cautions(*named),
        *_doubts(first, sizes, one),
        *_doubts(second, sizes, other),
        *_drift(first, second, generator),
    ]
    return ComparisonTable((first, second), sizes, (one, other), rows, overall, tuple(notes))


def _summaries(series: SideTimes, sizes: Sequence[int], generator: np.random.Generator) -> tuple[TimeSummary, ...]:
    try:
        return tuple(summary(np.array(series.results[size].samples, float), generator) for size in sizes)
    except (TypeError, ValueError) as error:  # also catches BenchmarkError, which is a ValueError
        raise BenchmarkError(f"{series.name}: expecting samples in seconds, got others: {error}") from error


def _left_out(first: SideTimes, second: SideTimes, sizes: Sequence[int]) -> Iterator[str]:
    for series in (first, second):
        alone = sorted(series.results.keys() - set(sizes))
        if alone:
            yield f"Left out: only {series.name} has {_bytes(alone)}"


def _doubts(series: SideTimes, sizes: Sequence[int], summaries: Sequence[TimeSummary]) -> Iterator[str]:
    """Yield notes on a series whose times are unstable or few, or whose data were wrong."""
    pairs = list(zip(sizes, summaries, strict=True))
    unstable = [size for size, side in pairs if side.unstable]
    few = [size for size, side in pairs if side.times < LEAST_TIMES]
    wrong = [size for size in sizes if series.results[size].valid is False]
    if unstable:
        yield f"Unstable: {series.name}: median uncertain by 20 % at {_bytes(unstable)}; raise -i, quiet or pin CPUs"
    if few and series.record.facts.arena != SIMULATED:
        yield f"Few: {series.name}: below {LEAST_TIMES} iterations nothing is significant: {_bytes(few)}; raise -i"
    if wrong:
        yield f"Fail: {series.name}: wrong data at {_bytes(wrong)}"


def _drift(first: SideTimes, second: SideTimes, generator: np.random.Generator) -> Iterator[str]:
    """Yield a note if the native sides of the two runs, which are the control of a comparison, also differ."""
    names = [{result.side for result in series.record.results} for series in (first, second)]
    if not all(NATIVE in sides or len(sides) == 1 for sides in names):
        return
    controls = [SideTimes.choose(series.name, series.record, NATIVE) for series in (first, second)]
    sizes = sorted(controls[0].results.keys() & controls[1].results.keys())
    same = {(one.side, one.record.facts.mpi) for one in controls} == {(NATIVE, first.record.facts.mpi)}
    if same and sizes and NATIVE not in (first.side, second.side):
        verdict = compare_runs(*(_summaries(series, sizes, generator) for series in controls)).verdict
        if verdict not in ("not significant", TOO_FEW):
            yield f"Drift: native, the control, is itself {verdict} in {first.name}: the machine was in another state"


def _bytes(sizes: Sequence[int]) -> str:
    return f"{', '.join(map(str, sizes))} bytes"


def _range(side: TimeSummary) -> float:
    return side.quartiles[1] - side.quartiles[0]


def _line(name: str, cells: Sequence[str], row: Comparison) -> str:
    cells = [*cells, f"{row.ratio:.2f}", f"[{row.low:.2f}, {row.high:.2f}]"]
    numbers = "".join(f"{cell:>{width}}" for cell, (_, width) in zip(cells, COLUMNS, strict=True))
    return f"{name:<{SIZE}}{numbers}{row.verdict:>{VERDICT}}"


def _numbers(side: TimeSummary) -> dict[str, object]:
    return {"median": side.median, "quartiles": side.quartiles, "interval": side.interval, "times": side.times}


def _words(row: Comparison) -> dict[str, object]:
    return {"ratio": row.ratio, "interval": (row.low, row.high), "verdict": row.verdict}


def plot(table: ComparisonTable, path: Path) -> None:
    """Draw the median times of A and B over the message size on logarithmic axes, with bands between their quartiles.

    :param table: the comparison.
    :param path: path of the file, which ends in .svg or .png.
    :raises BenchmarkError: if matplotlib is not installed, the path ends otherwise, or the comparison has no sizes.
    """
    check_plot(path, "--draw", BenchmarkError)
    if table.sizes[0] == 0:
        raise BenchmarkError("--draw: expecting message sizes, got a benchmark that has none")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": FORMAT}):  # fixed, so that the same data give the same file
        figure = Figure(figsize=(9, 5), layout="constrained")
        axes = figure.add_subplot(xlabel="message size (bytes)", ylabel="median latency (us)")
        ends = []
        for letter, series, summaries, marker, colour in zip(
            "AB", table.series, table.summaries, "os", SERIES, strict=False
        ):
            words = replace(series, name=bare_name(series.name))
            times = 1e6 * np.array([[side.median, *side.quartiles] for side in summaries]).T
            axes.plot(table.sizes, times[0], marker=marker, markersize=4, color=colour)
            axes.fill_between(table.sizes, times[1], times[2], alpha=0.25, color=colour, linewidth=0)
            ends.append((table.sizes[-1], float(times[0][-1]), cut_middle(f"{letter}: {words}", 48), colour))
        bound = _bound(table)
        if bound:
            axes.plot(list(bound), [1e6 * seconds for seconds in bound.values()], "k:")
            ends.append((list(bound)[-1], 1e6 * list(bound.values())[-1], "lower bound", "black"))
        log_axes(axes, table.sizes)
        axes.set_title(f"{table.series[0].record.options.benchmark}: medians, and bands between quartiles")
        axes.grid(alpha=0.3)
        name_ends(axes, ends)
        save_figure(figure, path)


def _bound(table: ComparisonTable) -> dict[int, float]:
    """Return the lower bounds of the times in seconds that either record has, by size; bounds of 0 are left out."""
    found: dict[int, float] = {}
    for series in reversed(table.series):
        bounds = (result for result in series.record.results if result.side == BOUND and result.average > 0)
        found.update({result.size: result.average for result in bounds if result.size in table.sizes})
    return dict(sorted(found.items()))


@app.command()
def command(
    first: Annotated[Path, typer.Argument(metavar="A.json", help="Record of the run in question.")],
    second: Annotated[Path, typer.Argument(metavar="B.json", help="Record of the run it is measured by.")],
    side: Annotated[
        str | None,
        typer.Option(help="Of records with several: one for both, or A's,B's; topompi by default.", metavar="SIDE"),
    ] = None,
    across: Annotated[AllowedDifference | None, typer.Option(help="Allow different MPI libraries.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    drawing: Annotated[Path | None, typer.Option("--draw", metavar="FILE", help="Draw to .svg or .png.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    limit: Limit = None,
) -> None:
    """Show how much faster or slower the run of A.json was than the run of B.json, size by size."""
    sides = _sides(side)
    series = [SideTimes.choose(str(path), _read(path), one) for path, one in zip((first, second), sides, strict=True)]
    if side is not None and not set(sides) & {one.side for one in series}:
        has = sorted({result.side for one in series for result in one.record.results})
        raise BenchmarkError(f"--side: expecting one of {', '.join(has)}, got {side!r}")
    table = compare_records(series[0], series[1], across is not None)
    if drawing is not None:
        plot(table, drawing)
    print(table.to_json() if as_json else "\n".join(table.lines()))


def _sides(text: str | None) -> tuple[str, str]:
    """Return the names of the sides to choose in A and in B."""
    names = (text or OURS).split(",")
    if len(names) > 2 or not all(names):
        raise BenchmarkError(f"--side: expecting SIDE or SIDE,SIDE, got {text!r}")
    return names[0], names[-1]


def _read(path: Path) -> Record:
    """Read a record, and check the types of the facts that a comparison uses."""
    try:
        record = Record.from_json(read_text(path, BenchmarkError, "a record"))
    except BenchmarkError as error:
        raise BenchmarkError(f"{path}: {error}") from error
    facts = record.facts
    wanted: list[tuple[object, type]] = [(facts.mpi, str), (facts.versions, dict)]
    wanted += [(facts.nodes, tuple), (facts.hosts, tuple), (facts.arena, str), (facts.about, dict)]
    wanted += [pair for result in record.results for pair in ((result.size, int), (result.side, str))]
    for value, kind in wanted:
        if not isinstance(value, kind):
            raise BenchmarkError(f"{path}: record: expecting a {kind.__name__}, got {value!r}")
    return record


def main(arguments: Sequence[str]) -> int:
    """Run the command; errors go to standard error, one line each.

    :param arguments: arguments after ``compare``.
    :returns: exit code: 0; 1 if the records cannot be compared; 2 for wrong usage.
    """
    try:
        app(list(arguments), prog_name="osu_like_bench compare", standalone_mode=False)
    except UsageError as error:
        messages, code = [error.format_message()], 2
    except (TopompiError, OSError) as error:
        messages, code = in_words(error).splitlines(), 1
        if "--debug" in arguments:
            traceback.print_exc()
    else:
        return 0
    for message in messages:
        print(f"osu_like_bench: compare: {message}", file=sys.stderr)
    return code
