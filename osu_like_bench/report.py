"""The output of a run: the OSU Micro-Benchmarks' tables, followed by the columns of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean, median
from typing import TYPE_CHECKING

import numpy as np

from .benchmarks import Benchmark
from .options import Options
from .record import Circumstances, SizeResult
from .statistics import Comparison

if TYPE_CHECKING:
    from topompi.mpi.selection.choice import Choice

__all__ = ["RunReport"]

# OSU's column widths in characters, of the size, of a number, and of the iterations (osu_util.h of version 7).
SIZE, FIELD, COUNT = 10, 18, 12


class RunReport:
    """A writer of a run's output as lines; it gets the results of one message size after the other.

    :param options: options of the run.
    :param operation: measured operation or kernel.
    :param facts: circumstances of the run.
    """

    def __init__(self, options: Options, operation: Benchmark, facts: Circumstances) -> None:
        self.options, self.operation, self.facts = options, operation, facts
        self.unstable: list[int] = []
        self.failed: list[str] = []
        self._ratios: list[float] = []
        self._chosen: dict[str, list[int]] = {}  # message sizes at which topompi ran each algorithm
        self._reasons: dict[str, str] = {}  # reason for each algorithm at the last size at which it ran

    def header(self, notes: Sequence[str] = ()) -> list[str]:
        """Return the lines above the table's first row: title, placement, notes, and titles of columns.

        :param notes: further notes, one per line.
        """
        facts, sides, title = self.facts, " against ".join(self.options.sides), self.operation.title
        named = title if title.startswith("MPI_") else f"MPI {title}"  # OSU's one-sided titles begin with MPI_
        lines = [f"# OSU-like {named} Test, {sides}, {facts.mpi}"]
        lines.append(f"# Placement: {_placement(facts)}")
        if facts.oversubscribed:
            lines.append(f"# Oversubscribed: {facts.ranks} ranks on fewer CPUs, times measure scheduling too")
        if len(self.options.sides) == 2:
            lines.append("# Medians over iterations of the slowest rank's time; ratio: native time / topompi time")
        lines += [f"# {note}" for note in self._circumstances()]
        lines += [f"# {note}" for note in notes]
        columns = [*self._columns(), *[("Validation", FIELD)] * self.options.check]
        numbers = "".join(f"{name:>{width}}" for name, width in columns)
        return [*lines, f"{'# Size':<{SIZE}}{numbers}" if self.operation.sized else f"# {numbers.lstrip()}"]

    def row(self, results: Sequence[SizeResult], comparison: Comparison | None, choice: Choice | None = None) -> str:
        """Return the table's line for one message size, with the results of all sides.

        :param results: results, one per side.
        :param comparison: comparison of the two sides, if there are two.
        :param choice: algorithm that topompi ran, with the reason, if known.
        """
        if choice is not None:
            self._chosen.setdefault(choice.algorithm, []).append(results[0].size)
            self._reasons[choice.algorithm] = choice.reason
        cells = [cell for result in results for cell in self._numbers(result)]
        cells += [cell for result in results for cell in self._further(result)]
        widths = [width for _, width in self._columns()]
        if self.options.full:
            cells.append(str(len(results[0].samples)))
        if comparison is not None:
            interval = f"[{comparison.low:.2f}, {comparison.high:.2f}]"
            cells += [f"{comparison.ratio:.2f}", interval, comparison.verdict]
            self._ratios.append(comparison.ratio)
            self.unstable += [results[0].size] if comparison.unstable else []
        if self.options.check:
            wrong = [f"{result.side} at {result.size} bytes" for result in results if not result.valid]
            self.failed += wrong
            cells.append("Fail" if wrong else "Pass")
        line = "".join(f"{cell:>{width}}" for cell, width in zip(cells, [*widths, FIELD], strict=False))
        return f"{results[0].size:<{SIZE}}{line}" if self.operation.sized else line

    def footer(self) -> list[str]:
        """Return the lines below the table: choices of algorithms and their gain, unstable times, wrong data."""
        lines = self._conclusion()
        if self.unstable:
            sizes = ", ".join(map(str, self.unstable))
            lines.append(f"# Unstable: interval wider than 20 % at {sizes} bytes; raise -i, quiet or pin CPUs")
        if self.failed:
            lines.append(f"# Fail: wrong data: {', '.join(self.failed)}")
        return lines

    def _conclusion(self) -> list[str]:
        """Return a sentence: topompi's algorithms by size, the reason for the last of them, the mean of the ratios."""
        if not self._ratios:
            return []
        mean = f"{geometric_mean(self._ratios):.2f}x over {len(self._ratios)} sizes (geometric mean)"
        if not self._chosen:
            return [f"# topompi against native: {mean}"]
        ours = {name: sizes for name, sizes in self._chosen.items() if name != "native"}
        if not ours:
            return [f"# Both sides ran the library's own calls ({self._reasons['native']}): {mean}"]
        parts = [f"{name} at {', '.join(map(str, sizes))}" for name, sizes in ours.items()]
        rest = ", the library's own elsewhere" if "native" in self._chosen else ""
        last = next(reversed(ours))
        return [f"# topompi ran {'; '.join(parts)} bytes{rest}: {mean}; {last} by {self._reasons[last]}"]

    def _columns(self) -> list[tuple[str, int]]:
        """Return (title, width in characters) of all columns between the size's and the validation's."""
        windowed, full = self.operation.window is not None, self.options.full
        count = [("Iterations", COUNT)] * full
        further = [(title, max(FIELD, len(title) + 2)) for title in self._titles()]
        if len(self.options.sides) == 1:
            what, wide = ("Bandwidth(MB/s)", FIELD + 3) if windowed else ("Latency(us)", FIELD)
            if self.operation.extra and not full:
                return [("Overall(us)", FIELD), *further]
            if windowed and not full:
                return [("MB/s" if self.operation.pairs else "Bandwidth (MB/s)", FIELD), *further]
            return [(f"{kind} {what}", wide) for kind in ("Avg", "Min", "Max")[: 3 if full else 1]] + further + count
        unit = "(MB/s)" if windowed else "(us)"
        kinds = ("", " avg", " min", " max")[: 4 if full else 1]
        names = [(f"{side}{kind}{unit}", FIELD) for side in self.options.sides for kind in kinds]
        names += [(f"{side} {title}", FIELD + 8) for side in self.options.sides for title in self._titles()]
        return [*names, *count, ("Ratio", COUNT), ("95% interval", FIELD), ("Verdict", FIELD)]

    def _numbers(self, result: SizeResult) -> list[str]:
        """Return the cells of a side's times: OSU's average, or, if two sides are compared, the median.

        With the option ``-f`` follow the average, if it is not the first cell, the minimum and the maximum.
        """
        # In the order of the columns "min" and "max": the smallest bandwidth belongs to the longest time.
        extremes = (result.minimum, result.maximum)[:: 1 if self.operation.window is None else -1]
        times = [result.average, *extremes] if self.options.full else [result.average]
        if len(self.options.sides) == 2:
            times = [median(result.samples), *(times if self.options.full else [])]
        return [f"{self._value(seconds, result.size):.2f}" for seconds in times]

    def _value(self, seconds: float, size: int) -> float:
        """Convert seconds to microseconds, or, for windows of messages, to MB/s."""
        if self.operation.window is None:
            return seconds * 1e6
        return size * self._messages / seconds / 1e6

    @property
    def _messages(self) -> int:
        """Number of messages per call of a benchmark of bandwidth."""
        return self.operation.messages(self.facts.ranks) if isinstance(self.operation, type) else 0

    def _circumstances(self) -> list[str]:
        """Return the header lines by which OSU explains the columns."""
        operation = self.operation
        if operation.extra:
            return ["Overall = Coll. Init + Compute + MPI_Test + MPI_Wait"]
        if operation.pairs and operation.window is not None:
            return [f"[ pairs: {self.facts.ranks // 2} ] [ window size: {operation.window} ]"]
        return []

    def _titles(self) -> list[str]:
        """Return the titles of a side's columns that follow its times."""
        extra = self.operation.extra if len(self.options.sides) == 1 else self.operation.extra[-1:]
        what = "BW(MB/s)" if self.operation.window is not None else "Lat(us)"
        rate = ["Messages/s"] * (self.operation.pairs and self.operation.window is not None)
        return [*extra, *rate, *(f"P{one:g} Tail {what}" for one in self.options.tail)]

    def _further(self, result: SizeResult) -> list[str]:
        """Return a side's cells that follow its times: other values, and percentiles.

        A percentile of a bandwidth is the rate that this percentage of the calls reaches.
        """
        cells = []
        for title in self._titles():
            if title in result.more:
                cells.append(f"{result.more[title] * (1e6 if '(us)' in title else 1):.2f}")
            elif title == "Messages/s":
                cells.append(f"{self._messages / result.average:.2f}")
        tail = np.percentile(result.samples, self.options.tail).tolist() if self.options.tail else []
        return cells + [f"{self._value(seconds, result.size):.2f}" for seconds in tail]


def _placement(facts: Circumstances) -> str:
    hosts = len(set(facts.hosts))
    count = f"{facts.ranks} rank{'s' * (facts.ranks != 1)} on {hosts} host{'s' * (hosts != 1)}"
    if facts.virtual:
        return f"virtual, {count} of {facts.topology} (times are this machine's)"
    return f"{count}, topology from {facts.topology}" if facts.topology else count
