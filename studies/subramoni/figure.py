"""The parts of a figure: tables, charts, and a verdict in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from topompi.errors import BenchmarkError
from topompi.inputs.figures import save_figure

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

    def markdown(self) -> list[str]:
        """Return the lines of a Markdown table, with columns aligned for readers of the text."""
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        head, *body = [
            "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
            for row in (self.columns, *self.rows)
        ]
        rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
        return [*([self.caption, ""] if self.caption else []), head, rule, *body]


@dataclass(frozen=True)
class Chart:
    """Lines over message sizes or numbers of processes.

    :param name: name of the file, without suffix.
    :param title: title above the chart.
    :param xlabel: label of the horizontal axis.
    :param ylabel: label of the vertical axis.
    :param series: points (x, y) of each line, by its name.
    :param bounds: names of the lower bounds among the series, which are drawn dashed.
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

        :raises BenchmarkError: if matplotlib is not installed.
        """
        try:
            from matplotlib import rc_context
            from matplotlib.figure import Figure as Drawing
        except ImportError as error:
            raise BenchmarkError(
                "studies: expecting matplotlib, got none; pip install 'topompi[plot]' brings it"
            ) from error
        path = folder / f"{self.name}.svg"
        with rc_context({"svg.hashsalt": self.name, "font.size": 9}):
            drawing = Drawing(figsize=(7, 4.2), layout="constrained")
            axes = drawing.add_subplot(xlabel=self.xlabel, ylabel=self.ylabel, title=self.title)
            for number, (name, points) in enumerate(self.series.items()):
                bound = name in self.bounds
                x, y = zip(*points, strict=True)
                axes.plot(x, y, "k--" if bound else f"C{number}-o", markersize=3, label=name, linewidth=1.2)
            if self.logarithmic:
                axes.set_xscale("log", base=2)
                axes.set_yscale("log")
            axes.grid(alpha=0.3)
            axes.legend()
            save_figure(drawing, path)
        return path


@dataclass(frozen=True)
class Figure:
    """A figure of the reference as reproduced here.

    :param verdict: the gains against the paper's baseline and against the best peer, in a sentence or two, shortfalls
        first.
    :param tables: tables in the order of the page.
    :param charts: charts in the order of the page.
    :param notes: omissions and differences, one sentence each.
    """

    verdict: str
    tables: tuple[Table, ...]
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = field(default=())
