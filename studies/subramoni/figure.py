"""The parts of a figure: tables, charts, and a verdict in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topompi.errors import BenchmarkError
from topompi.inputs.figures import OTHERS, SERIES, check_plot, log_axes, name_ends, save_figure, size_name

__all__ = ["Chart", "Figure", "Table"]


@dataclass(frozen=True)
class Table:
    """A table of formatted cells.

    :param columns: heads of the columns.
    :param rows: cells of each row, as many as columns.
    :param caption: sentence that describes the rows; empty for none.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class Chart:
    """Lines over message sizes or numbers of processes.

    :param name: name of the file, without suffix.
    :param title: title above the chart.
    :param xlabel: label of the horizontal axis.
    :param ylabel: label of the vertical axis.
    :param series: points (x, y) of each line, by its name.
    :param bounds: names of the lower bounds among the series, which are dashed and black.
    :param logarithmic: whether both axes are logarithmic.
    """

    name: str
    title: str
    xlabel: str
    ylabel: str
    series: Mapping[str, Sequence[tuple[float, float]]]
    bounds: tuple[str, ...] = ()
    logarithmic: bool = True

    def save(self, folder: Path) -> Path:
        """Draw the chart as ``NAME.svg`` in a folder; equal data give an equal file.

        All lines have their names at their ends; lines that coincide are one. At most six have colours.

        :raises BenchmarkError: if matplotlib is not installed.
        """
        path = folder / f"{self.name}.svg"
        check_plot(path, "studies", BenchmarkError)
        from matplotlib import rc_context
        from matplotlib.figure import Figure as Drawing

        with rc_context({"svg.hashsalt": self.name, "font.size": 9}):
            drawing = Drawing(figsize=(8, 4.4), layout="constrained")
            axes = drawing.add_subplot(xlabel=self.xlabel, ylabel=self.ylabel, title=self.title)
            ends = []
            for names, points, look in self._lines():
                axes.plot(*zip(*points, strict=True), markersize=3, linewidth=1.2, **look)
                ends += [(*points[-1], name, look["color"]) for name in names]
            if self.logarithmic:
                places = sorted({x for points in self.series.values() for x, _ in points})
                named = size_name if "bytes" in self.xlabel else "{:,.0f}".format
                log_axes(axes, places, named)
            else:
                axes.set(xlim=(0, None), ylim=(0, None))
            axes.grid(alpha=0.3)
            name_ends(axes, ends, 0.045)
            save_figure(drawing, path)
        return path

    def _lines(self) -> list[tuple[list[str], list[tuple[float, float]], dict[str, Any]]]:
        """Return the names of the series that coincide on each line, its points, and its look."""
        lines: list[tuple[list[str], list[tuple[float, float]]]] = []
        for name, points in self.series.items():
            same = [names for names, other in lines if _coincide(other, points)]
            if not points:
                continue
            if same:
                same[0].append(name)
            else:
                lines.append(([name], list(points)))
        place = {name: at for at, name in enumerate(one for one in self.series if one not in self.bounds)}
        found = []
        for names, points in lines:
            look = {"color": "black", "linestyle": "--"}
            if names[0] in place:  # by its place, so that a series has the same colour in all charts of a page
                colour = SERIES[place[names[0]]] if place[names[0]] < len(SERIES) else OTHERS
                look = {"color": colour, "marker": "o" if self.logarithmic else ""}
            found.append((names, points, look))
        return found


def _coincide(one: Sequence[tuple[float, float]], other: Sequence[tuple[float, float]]) -> bool:
    """Whether two lines have the same points, up to 0.3 %, which is less than a line's width."""
    return len(one) == len(other) and all(
        a == b and math.isclose(c, d, rel_tol=3e-3) for (a, c), (b, d) in zip(one, other, strict=True)
    )


@dataclass(frozen=True)
class Figure:
    """A figure of the reference as reproduced here.

    :param verdict: the gains against the paper's baseline and against the best peer, in a sentence or two, shortfalls
        first.
    :param tables: tables in the order of the page.
    :param charts: charts in the order of the page.
    """

    verdict: str
    tables: tuple[Table, ...]
    charts: tuple[Chart, ...] = ()
