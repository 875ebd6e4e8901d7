"""Colours and names in pictures, and files of matplotlib: no text is a formula, and equal data give equal files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..visible import unmarked
from .writing import open_output

__all__ = [
    "DISTANCES",
    "FURTHER",
    "OTHERS",
    "SERIES",
    "bare_name",
    "cut_middle",
    "name_ends",
    "plain_label",
    "save_figure",
    "size_name",
]

# M. Okabe and K. Ito, Color Universal Design, 2008, but for yellow, which is faint on white, and black, which is text.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
# Colours of distances: inside a host, then 1, 3, 5 and 7 hops; and of other distances, in order.
DISTANCES = {0: "#000000", 1: "#009e73", 3: "#0072b2", 5: "#cc79a7", 7: "#56b4e9"}
FURTHER = ("#e69f00", "#d55e00", "#f0e442", "#999999")
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


def name_ends(axes: Any, ends: Sequence[tuple[float, float, str, str]], height: float = 0.034) -> None:
    """Write names to the right of the axes at the ends of their lines, as far apart as their letters need.

    :param axes: the axes of matplotlib, with their final limits and scales.
    :param ends: x and y of each line's last point, its name and its colour.
    :param height: height of a line of text as a part of the axes' height.
    """
    both = axes.transData + axes.transAxes.inverted()
    wanted = sorted((both.transform((x, y))[1], name, colour, both.transform((x, y))) for x, y, name, colour in ends)
    places: list[float] = []
    for at, *_ in wanted:
        places.append(max(at, places[-1] + height) if places else at)
    # The names pushed up the most come down together, as far as the axes' upper end and their neighbours below allow.
    limit = 1.0
    for number in reversed(range(len(places))):
        places[number] = min(places[number], limit)
        limit = places[number] - height
    for (_, name, colour, end), place in zip(wanted, places, strict=True):
        axes.annotate(
            name,
            end,
            (1.03, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            fontsize=9,
            color="#555555" if colour == OTHERS else colour,
            va="center",
            annotation_clip=False,
            ha="left",
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.5,
                "shrinkA": 0,
                "shrinkB": 2,
                "relpos": (0, 0.5),
            },
        )


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
