"""Colours and names in pictures, and files of matplotlib: no text is a formula, and equal data give equal files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..visible import unmarked
from .writing import open_output

__all__ = ["OTHERS", "SERIES", "bare_name", "cut_middle", "plain_label", "save_figure", "size_name"]

# M. Okabe and K. Ito, Color Universal Design, 2008, but for yellow, which is faint on white, and black, which is text.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
OTHERS = "#9a9a9a"  # colour of further series, which have their names at their ends
PACKED = {".bz2", ".conf", ".gz", ".ibnetdiscover", ".json", ".log", ".swf", ".txt", ".xml", ".xz", ".yaml"}


def cut_middle(text: str, most: int) -> str:
    """Shorten a text to at most ``most`` letters by leaving out its middle, because names differ at their ends."""
    if len(text) <= most:
        return text
    tail = most // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def bare_name(path: str) -> str:
    """Return the name of an input file for a title: without its folder, and without suffixes of format and packing."""
    name = Path(path).name
    while Path(name).suffix in PACKED and Path(name).stem:
        name = Path(name).stem
    return name


def size_name(nbytes: float) -> str:
    """Write a number of bytes as benchmarks do, by powers of 1,024: ``8``, ``1K``, ``64K``, ``1.5M``."""
    power = next((power for power in range(4) if nbytes < 1024 ** (power + 1)), 4)
    return f"{nbytes / 1024**power:.4g}{('', 'K', 'M', 'G', 'T')[power]}"


def plain_label(text: str) -> str:
    """Escape a tick label so that matplotlib does not read it as a formula."""
    return unmarked(text).replace("$", r"\$")


def save_figure(figure: Any, path: Path, **how: Any) -> None:
    """Write a figure in the format of the file's suffix, with titles, legends and other texts as plain text.

    Tick labels are still read as formulas, because those of logarithmic axes are formulas; pass names among them
    through `plain_label`.

    :param figure: the figure of matplotlib.
    :param path: path of the file, which ends in .svg or .png.
    :param how: further arguments of ``savefig``.
    :raises OSError: if `open_output` raises it.
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
