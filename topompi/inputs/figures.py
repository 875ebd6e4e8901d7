"""Figures of matplotlib as files: names in them are text, not formulas, and the same data make the same file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..visible import unmarked
from .writing import open_output

__all__ = ["plain_label", "save_figure"]


def plain_label(text: str) -> str:
    """A label of an axis' tick that matplotlib takes for no formula."""
    return unmarked(text).replace("$", r"\$")


def save_figure(figure: Any, path: Path, **how: Any) -> None:
    """Write a figure as the file's name ends; titles, legends and other texts are no formulas.

    Labels of ticks keep theirs, for those of logarithmic axes are some: names among them pass `plain_label`.

    :param figure: a figure of matplotlib.
    :param path: ends in .svg or .png.
    :param how: as ``savefig`` takes it.
    :raises OSError: as `open_output` does.
    """
    from matplotlib.text import Text

    ticks = {id(label) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for label in _labels(axis)}
    for text in figure.findobj(Text):
        if id(text) not in ticks:
            text.set_parse_math(False)
            text.set_text(unmarked(text.get_text()))
    form = path.suffix.removeprefix(".")
    with open_output(path, "wb") as stream:
        figure.savefig(stream, format=form, **how, **({"metadata": {"Date": None}} if form == "svg" else {}))


def _labels(axis: Any) -> list[Any]:
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return [axis.offsetText, *(label for tick in ticks for label in (tick.label1, tick.label2))]
