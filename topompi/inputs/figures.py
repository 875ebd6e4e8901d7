"""Colours and names in pictures of matplotlib, whose texts are not read as formulas, and writing of their files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..visible import unmarked
from .writing import open_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = [
    "DISTANCES",
    "FAINTEST",
    "FURTHER",
    "OTHERS",
    "SERIES",
    "SUFFIXES",
    "bare_name",
    "check_plot",
    "colours_by_hops",
    "cut_middle",
    "joined",
    "log_axes",
    "name_ends",
    "plain_label",
    "save_figure",
    "shaded",
    "short_names",
    "size_name",
    "span_name",
    "without_common_end",
]

# M. Okabe and K. Ito, Color Universal Design, 2008, but for yellow, which is faint on white, and black, which is text.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
# Distance in hops (0: inside a host) -> its colour, for distances of fat trees; then the colours of all other
# distances, nearest first.
DISTANCES = {0: "#000000", 1: "#009e73", 3: "#0072b2", 5: "#cc79a7", 7: "#56b4e9"}
FURTHER = ("#e69f00", "#d55e00", "#f0e442", "#999999")
OTHERS = "#9a9a9a"  # colour of all series after the first six; only the names at their ends distinguish them
FAINTEST = 0.15  # intensity of the smallest non-zero amount in a heat map
SUFFIXES = (".svg", ".png")  # endings of the files to which pictures can be written
UNITS = (("days", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
PACKED = {".bz2", ".conf", ".gz", ".ibnetdiscover", ".json", ".log", ".swf", ".txt", ".xml", ".xz", ".yaml"}


def colours_by_hops(
    hops: Iterable[int], fixed: Mapping[int, str] = DISTANCES, further: Sequence[str] = FURTHER
) -> dict[int, str]:
    """Return the colour of each distance, nearest first, pairs without a route last.

    If more distances lack a fixed colour than ``further`` has colours, the remaining distances share its last colour.

    :param hops: distances in hops, 0 inside a host; negative if pairs have no route.
    :param fixed: distance -> its colour, for distances whose colour is the same in all pictures.
    :param further: colours of the distances that are not in ``fixed``, nearest first.
    """
    classes = sorted(set(hops), key=lambda one: (one < 0, one))
    others = [one for one in classes if one not in fixed]
    own = {one: further[min(at, len(further) - 1)] for at, one in enumerate(others)}
    return {one: fixed.get(one) or own[one] for one in classes}


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


def short_names(names: Sequence[str], most: int) -> list[str]:
    """Shorten names to at most ``most`` letters, and keep them different from each other if possible.

    A common ending of all names that begins with a separator, for example ``:MQM9701/U1``, is always left out. If the
    names are still too long, these are left out one after another: words with which all names begin or end, words that
    all names have in their middle, and single letters.

    :param names: names, for example those of all switches of a level.
    :param most: number of letters that a name has room for.
    """
    found = without_common_end(names)
    words = [re.split(r"([^0-9A-Za-z]+)", name) for name in found]
    for shorten in (lambda one: one, _inner, lambda one: _differing(_inner(one))):
        found = ["".join(one) or name for one, name in zip(shorten(words), names, strict=True)]
        if max(map(len, found), default=0) <= most:
            return found
    cuts = [
        [_cut_at(name, head, most) for name in found]
        for head in sorted(range(1, most), key=lambda at: abs(at - most // 2))
    ]
    return max(cuts, key=lambda cut: len(set(cut)), default=found)


def without_common_end(names: Sequence[str]) -> list[str]:
    """Leave out the common ending of several names that begins with a separator, for example ``:MQM9701/U1``."""
    if len(set(names)) < 2:
        return list(names)
    shared = _shared([name[::-1] for name in names])
    tail = names[0][len(names[0]) - shared :]
    at = next((place for place, letter in enumerate(tail) if letter in ":/ "), len(tail))
    return [name[: len(name) - len(tail) + at] or name for name in names]


def _shared(names: Sequence[Sequence[str]]) -> int:
    """Return the number of letters, or words, that all names begin with."""
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*names, strict=False)))


def _inner(names: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Leave out the words, with their separators, that all names begin or end with.

    :param names: each name as words with the separators between them.
    """
    if len(set(map(tuple, names))) < 2:
        return list(names)
    start, end = (_shared([one[::way] for one in names]) // 2 * 2 for way in (1, -1))
    return [one[start : max(len(one) - end, start + 1)] for one in names]


def _differing(names: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Replace the runs of words that all names have in the middle by an ellipsis.

    :param names: each name as words with the separators between them.
    """
    if len(set(map(len, names))) > 1 or len(set(map(tuple, names))) < 2:
        return list(names)
    alike = [len(set(column)) == 1 for column in zip(*names, strict=True)]
    runs = [(same, list(places)) for same, places in groupby(range(len(alike)), key=alike.__getitem__)]
    return [["…" if same and len(run) > 1 else "".join(one[at] for at in run) for same, run in runs] for one in names]


def _cut_at(name: str, head: int, most: int) -> str:
    """Shorten a name to ``most`` letters, the first ``head`` of which are those of its beginning."""
    return name if len(name) <= most else f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"


def span_name(seconds: float) -> str:
    """Write a time in the unit that makes it short, for example ``60.1 us``."""
    unit, length = next(((unit, length) for unit, length in UNITS if seconds >= length), UNITS[-1])
    return f"{seconds / length:.3g} {unit}"


def size_name(nbytes: float) -> str:
    """Write a number of bytes as benchmarks do, by powers of 1,024: ``8``, ``1K``, ``64K``, ``1.5M``."""
    power = next((power for power in range(4) if nbytes < 1024 ** (power + 1)), 4)
    return f"{nbytes / 1024**power:.4g}{('', 'K', 'M', 'G', 'T')[power]}"


def log_axes(axes: Axes, places: Sequence[float], name: Callable[[float], str] = size_name) -> None:
    """Make both axes logarithmic, with names along the horizontal axis and plain numbers along the vertical one.

    :param axes: the axes of matplotlib.
    :param places: positions of the names on the horizontal axis, for example sizes of messages in bytes.
    :param name: function from a position to its name.
    """
    from matplotlib.ticker import LogLocator

    axes.set(xscale="log", yscale="log")
    axes.set_xticks(places, [name(place) for place in places])
    axes.minorticks_off()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}")


def joined(names: Sequence[str]) -> str:
    """Join the names of several series into one for the line on which they coincide, of about 34 letters or less."""
    whole = " = ".join(names)
    return whole if len(whole) <= 34 else f"{cut_middle(names[0], 22)} = {len(names) - 1} more"


def name_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]], height: float = 0.034) -> None:
    """Write the name of each line to the right of the axes, near the line's end, and so that no names overlap.

    :param axes: the axes of matplotlib, with their final limits and scales.
    :param ends: x and y of each line's last point, its name and its colour.
    :param height: height of a name's letters divided by the height of the axes.
    """
    both = axes.transData + axes.transAxes.inverted()
    wanted = sorted((both.transform((x, y))[1], name, colour, both.transform((x, y))) for x, y, name, colour in ends)
    places: list[float] = []
    for at, *_ in wanted:
        places.append(max(at, places[-1] + height) if places else at)
    # The loop above may have moved names beyond the upper end of the axes; this loop moves them down again.
    limit = 1.0
    for number in reversed(range(len(places))):
        places[number] = min(places[number], limit)
        limit = places[number] - height
    for (_, name, colour, end), place in zip(wanted, places, strict=True):
        axes.annotate(
            name,
            (end[0], end[1]),
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


def check_plot(path: Path, option: str, error: type[Exception]) -> None:
    """Refuse a wrong file name, or a missing matplotlib, before any long work.

    :param path: path of a picture that is to be drawn.
    :param option: name of the option for the message.
    :param error: class of the error that is raised if the suffix is not .svg or .png, or matplotlib is missing.
    """
    if path.suffix not in SUFFIXES:
        raise error(f"{option}: expecting a file name in {' or '.join(SUFFIXES)}, got {str(path)!r}")
    try:
        import matplotlib  # noqa: F401 -- only its presence is checked
    except ImportError as problem:
        raise error(f"{option}: expecting matplotlib, got none; pip install 'topompi[plot]' brings it") from problem


def shaded(
    amount: NDArray[np.float64], kind: NDArray[np.int64], colours: Mapping[int, str], largest: float
) -> NDArray[np.float64]:
    """Return the image of a heat map, shape (rows, columns, 3): its colours show kinds, their intensities amounts.

    The intensity grows with the square root of amount / ``largest``, because amounts span decades; a cell with amount 0
    is white.

    :param amount: quantity that each cell shows, for example bytes, 0 or more, shape (rows, columns).
    :param kind: number that decides the colour of each cell, for example its hops, shape (rows, columns).
    :param colours: kind -> its colour, as #rrggbb.
    :param largest: amount that is drawn at full intensity.
    """
    full = np.ones((*amount.shape, 3))
    for one, colour in colours.items():
        full[kind == one] = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    strength = np.sqrt(amount / (largest or 1.0))
    strength = np.where(amount > 0, FAINTEST + (1 - FAINTEST) * strength, 0.0)[:, :, None]
    image: NDArray[np.float64] = 1 - strength * (1 - full)
    return image


def plain_label(text: str) -> str:
    """Escape a tick label so that matplotlib does not read it as a formula."""
    return unmarked(text).replace("$", r"\$")


def save_figure(figure: Figure, path: Path, **how: Any) -> None:
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
    if form == "svg":
        how["metadata"] = {"Date": None}
    with open_output(path, "wb") as stream:
        figure.savefig(stream, format=form, **how)


def _labels(axis: Axis) -> list[object]:
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return [axis.offsetText, *(label for tick in ticks for label in (tick.label1, tick.label2))]
