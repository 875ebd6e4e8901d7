"""The results of ``emulated``: its files, and a report on several of them together."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from osu_like_bench.statistics import LEAST_TIMES, Comparison, compare
from topompi.errors import BenchmarkError

from .uplinks import oversubscription

__all__ = ["FITTED", "Line", "Row", "Setting", "lines_of", "markdown", "read", "spread", "together"]

FLOOR = 0.97  # ratio to the library that no cell should be below
FITTED = ("4x4",)  # the networks that the default set was chosen on
LONG = 65536  # bytes from which on the network decides
Setting = tuple[str, str, str, int | str, str]  # network, uplinks, rank order, ranks a host, Python
_ratio_of = cache(oversubscription)


@dataclass(frozen=True)
class Line:
    """The cells of one job, as a line that the job has added to a file.

    :param job: settings of the job.
    :param cells: cells as ``emulated_ranks`` writes them.
    :param left_out: collective, bytes, and the bound in seconds, of cells that were too long.
    """

    job: Setting
    cells: list[dict[str, Any]]
    left_out: list[tuple[str, int, float]]


@dataclass
class Row:
    """A cell of a job, with the times of all files.

    :param network: shape of the network.
    :param uplinks: over-subscription of the uplinks, ``4:1``.
    :param order: order of the ranks.
    :param ppn: ranks per host; ``3/1/4/2`` for hosts with different numbers.
    :param library: name of the MPI library.
    :param collective: name of the collective.
    :param size: message size in bytes.
    """

    network: str
    uplinks: str
    order: str
    ppn: int | str
    library: str
    collective: str
    size: int
    algorithms: set[str] = field(default_factory=set)
    reasons: set[str] = field(default_factory=set)
    times: dict[str, list[float]] = field(default_factory=lambda: {"topompi": [], "library": []})

    @cached_property
    def gain(self) -> Comparison:
        """Ratio by which topompi was faster than the library, over the times that are present at the first access."""
        return compare(np.array(self.times["topompi"]), np.array(self.times["library"]))

    @property
    def is_left(self) -> bool:
        """Whether topompi left the call to the library."""
        return self.algorithms == {"native"}

    @property
    def half(self) -> str:
        """``fitted`` if the default set was chosen on this network, else ``held out``."""
        return "fitted" if self.network in FITTED else "held out"


def lines_of(path: Path) -> Iterator[Line]:
    """Yield the lines that jobs have added to a file.

    :raises BenchmarkError: if a line is malformed, for example cut off; the message names the line.
    """
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            found = json.loads(text)
            network, uplinks, order, ppn, python = found["job"]
            left_out = [tuple(one) for one in found.get("left_out", ())]
            yield Line((network, uplinks, order, ppn, python), found["cells"], left_out)
        except (ValueError, KeyError, TypeError) as error:
            raise BenchmarkError(f"{path}:{number}: expecting the cells of a job as JSON, got {error!r}") from error


def read(paths: Sequence[Path]) -> tuple[list[Row], Counter[tuple[str, int]]]:
    """Return the cells of some files, each once with all times, and the number of jobs that left out each cell."""
    rows: dict[tuple[object, ...], Row] = {}
    left_out: set[tuple[Setting, str, int]] = set()
    for line in (line for path in paths for line in lines_of(path)):
        network, uplinks, order, ppn, _ = line.job
        left_out |= {(line.job, collective, size) for collective, size, _ in line.left_out}
        for cell in line.cells:
            ratio = _ratio_of(network, uplinks)
            key = (network, ratio, order, ppn, cell["library"], cell["collective"], cell["size"])
            row = rows.setdefault(key, Row(*key))
            row.algorithms |= set(cell["algorithms"])
            row.reasons |= set(cell.get("reasons", ()))
            for side, times in row.times.items():
                times += cell["times"][side]
    return list(rows.values()), Counter((collective, size) for _, collective, size in left_out)


def markdown(found: tuple[list[Row], Counter[tuple[str, int]]]) -> Iterator[str]:
    """Yield the report: means by uplinks and sizes, slower cells, cells left to the library, and every cell.

    :param found: result of ``read``.
    """
    rows, left_out = found
    if not rows:
        yield "No cell has been timed."
        return
    yield from _means(rows)
    yield f"\nCells whose whole interval is below {FLOOR}:\n"
    lost = sorted((row for row in rows if row.gain.high < FLOOR), key=lambda row: row.gain.ratio)
    yield from map(_item, lost) if lost else ["none"]
    yield from _left(rows)
    if left_out:
        named = ", ".join(f"{collective} {size:,} ({jobs})" for (collective, size), jobs in sorted(left_out.items()))
        yield f"\nNot timed, since no schedule takes less than the limit (in so many jobs): {named}"
    yield "\n| network | uplinks | order | ranks a host | library | collective | bytes | calls | ratio | chosen | why |"
    yield f"|{'---|' * 11}"
    for row in sorted(rows, key=lambda row: row.gain.ratio):
        yield f"| {_where(row, ' | ')} | {row.gain.pairs} | {_interval(row)} | {_chosen(row)} | {_why(row)} |"


def _means(rows: Sequence[Row]) -> Iterator[str]:
    """Yield geometric means, separately for the fitted and the held-out networks."""
    sizes = sorted({row.size for row in rows})
    yield "How many times as fast as the library, geometric means\n"
    yield f"| networks | uplinks | {' | '.join(f'{size:,}' for size in sizes)} | from {LONG:,} | all | cells | slower |"
    yield f"|---|---|{'---|' * (len(sizes) + 4)}"
    ratios = sorted({row.uplinks for row in rows}, key=lambda ratio: -float(ratio.partition(":")[0]))
    for half in ("fitted", "held out"):
        for ratio in ratios:
            some = [row for row in rows if (row.half, row.uplinks) == (half, ratio)]
            if some:
                means = [_mean([row for row in some if row.size == size]) for size in sizes]
                means += [_mean([row for row in some if row.size >= LONG]), _mean(some)]
                slower = sum(row.gain.high < FLOOR for row in some)
                networks = " ".join(sorted({row.network for row in some}))
                yield f"| {half}: {networks} | {ratio} | {' | '.join(means)} | {len(some)} | {slower} |"


def _left(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the cells left to the library: their mean, by halves, and their number, by collective and size."""
    yield ""
    for half in ("fitted", "held out"):
        for what, is_left in (("left to the library", True), ("by a schedule", False)):
            gains = [row.gain for row in rows if row.half == half and row.is_left == is_left]
            if gains:
                yield f"- {half}, {what}: {together(gains, FLOOR)}"
    sizes = sorted({row.size for row in rows})
    yield "\nCells left to the library, of all\n"
    yield f"| collective | {' | '.join(f'{size:,}' for size in sizes)} |"
    yield f"|---|{'---|' * len(sizes)}"
    for collective in sorted({row.collective for row in rows}):
        some = [[row for row in rows if (row.collective, row.size) == (collective, size)] for size in sizes]
        yield f"| {collective} | {' | '.join(f'{sum(row.is_left for row in of)} of {len(of)}' for of in some)} |"


def _item(row: Row) -> str:
    few = f", {row.gain.pairs} calls only" if row.gain.pairs < LEAST_TIMES else ""
    return f"- {_where(row, ', ')}: {_interval(row)}{few}, {_chosen(row)}: {_why(row)}"


def _where(row: Row, between: str) -> str:
    parts = (row.network, row.uplinks, row.order, row.ppn, row.library, row.collective, f"{row.size:,}")
    return between.join(map(str, parts))


def _interval(row: Row) -> str:
    return f"{row.gain.ratio:.3f} [{row.gain.low:.3f}, {row.gain.high:.3f}]"


def _chosen(row: Row) -> str:
    return ", ".join(sorted(row.algorithms))


def _why(row: Row) -> str:
    return "; ".join(sorted(row.reasons))


def _mean(rows: Sequence[Row]) -> str:
    return f"{np.exp(np.mean([np.log(row.gain.ratio) for row in rows])):.2f}" if rows else ""


def spread(found: Sequence[Comparison]) -> float:
    """Return the standard deviation of the logarithms of the true ratios of some comparisons.

    It is the part of the ratios' variance that their intervals do not explain (R. DerSimonian and N. Laird, 1986): 0 if
    chance explains all of it. Comparisons without an interval are left out.
    """
    ends = np.log([(one.low, one.ratio, one.high) for one in found if one.low < one.high])
    if len(ends) < 2:
        return 0.0
    weights = (2 * 1.96 / (ends[:, 2] - ends[:, 0])) ** 2
    about = ends[:, 1] - np.average(ends[:, 1], weights=weights)
    beyond = np.sum(weights * about**2) - (len(ends) - 1)
    return float(np.sqrt(max(0.0, beyond / (np.sum(weights) - np.sum(weights**2) / np.sum(weights)))))


def together(found: Sequence[Comparison], floor: float) -> str:
    """Summarise comparisons: their mean, the number below the floor, the least, and their true differences."""
    ratios = np.array([one.ratio for one in found])
    low, sure = np.sum(ratios < floor), sum(one.high < floor for one in found)
    mean = f"{len(found)} cells, geometric mean {np.exp(np.mean(np.log(ratios))):.3f}x"
    least = f"least {ratios.min():.3f}x, differing by {spread(found):.1%} beyond chance"
    return f"{mean}; below {floor}: {low}, with the whole interval {sure}; {least}"
