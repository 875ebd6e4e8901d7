"""Drawings of schedules as SVG: a tree of ranks and steps, or a chart of the links' loads by step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...inputs.figures import cut_middle
from ..analysis.loads import Analysis, analyse
from ..network import Network
from ..schedule import Schedule
from .svg import GREY, Canvas
from .treedrawing import HOP_COLOURS, draw_tree, is_tree

__all__ = ["HOP_COLOURS", "draw", "draw_chart", "draw_tree", "is_tree"]

Integers = NDArray[np.int64]

# Classes of a link's load over its capacity in the step: upper limit, colour, and text of the legend. Conflicts have
# the browns of loads in other pictures, from light to dark; what has room is grey.
LOADS = (
    (0.5, "#dedede", "up to half full"),
    (1.0, "#ababab", "up to full"),
    (2.0, "#fdb97d", "conflicts, up to 2 times full"),
    (4.0, "#e6670d", "up to 4 times"),
    (np.inf, "#7f2704", "more"),
)
TOP, CELL, RIGHT = 76, 12, 40  # pixels: top margin, height of a link's row, right margin
NARROWEST, WIDEST = 640, 1200  # pixels: limits of the drawing's width
LETTER, MOST_LETTERS = 5.1, 56  # pixels: width of a letter of a link's name; most letters of a name
MOST_LINKS = 96  # most links in a chart, a row each, because more do not fit a page
IDLE = 60  # pixels: height of the bars of idle ranks


def draw(
    schedule: Schedule,
    network: Network,
    *,
    title: str | None = None,
    host_names: Sequence[str] | None = None,
    link_names: Sequence[str] | None = None,
) -> str:
    """Draw a schedule as SVG: a tree if its messages form one, else a chart of links and steps.

    :param schedule: the schedule.
    :param network: network on which it runs.
    :param title: heading; by default collective, algorithm and size.
    :param host_names: name of each host of the network; by default its number.
    :param link_names: name of each link of the network; by default its number.
    Equal schedules give equal text. Cost: as ``analyse``, plus an element per rank, or per loaded link and step.
    """
    title = title or f"{schedule.collective}, {schedule.algorithm}, {schedule.size} ranks"
    if is_tree(schedule):
        return draw_tree(schedule, network, title, host_names)
    return draw_chart(analyse(schedule, network), title, link_names)


def draw_chart(analysis: Analysis, title: str, link_names: Sequence[str] | None = None) -> str:
    """Draw a row per loaded link and a column per step, coloured by load, with idle ranks below.

    The load is relative to the transfers that the link may carry without conflict: its width times the largest number
    of ranks of one host that send over it. Links between switches come first. If more than ``MOST_LINKS`` are loaded,
    the links with the most conflicts are drawn, and among equals the links with the most transfers.

    :param analysis: loads of the links by step.
    :param title: heading of the drawing.
    :param link_names: name of each link of the network; by default its number.
    """
    loaded, shown = _links(analysis)
    names = [f"link {link}" if link_names is None else link_names[link] for link in shown.tolist()]
    names = [cut_middle(name, MOST_LETTERS) for name in names]
    left = max(90.0, 14 + LETTER * max(map(len, names), default=0))
    width = min((WIDEST - left - RIGHT) / max(analysis.num_steps, 1), 2 * CELL)
    bottom = TOP + CELL * len(shown)
    canvas = Canvas(max(left + width * analysis.num_steps + RIGHT, NARROWEST), bottom + IDLE + 90, title)
    over = len(np.unique(analysis.link[analysis.conflicts > 0]))
    most = "" if len(shown) == loaded else f", {len(shown):,} of them shown"
    found = f"{int(analysis.conflicts.sum()):,} conflicts, on {over:,} of {loaded:,} loaded links{most}"
    canvas.text(left, TOP - 26, found, size=11)
    canvas.steps(left, TOP - 6, analysis.num_steps, width)
    for place, name in enumerate(names):
        canvas.text(left - 6, TOP + CELL * (place + 0.8), name, anchor="end", size=9)
    _cells(canvas, analysis, shown, left, width)
    _idle(canvas, analysis, left, width, bottom + 14)
    canvas.legend(canvas.height - 22, [(colour, words) for _, colour, words in LOADS])
    return canvas.svg()


def _links(analysis: Analysis) -> tuple[int, Integers]:
    """The number of loaded links, and the links to draw in their order."""
    network = analysis.network
    size = len(network.capacity)
    conflicts = np.bincount(analysis.link, weights=analysis.conflicts, minlength=size)
    transfers = np.bincount(analysis.link, weights=analysis.transfers, minlength=size)
    loaded = np.flatnonzero(transfers)
    order = np.lexsort((loaded, -transfers[loaded], -conflicts[loaded]))
    shown = np.sort(loaded[order[:MOST_LINKS]]).astype(np.int64)
    # The first and last link of a route belong to its two hosts, and routes contain both directions of every host link.
    length = (network.links >= 0).sum(axis=2)
    last = np.take_along_axis(network.links, np.maximum(length - 1, 0)[:, :, None], axis=2)[:, :, 0]
    ends = np.concatenate((network.links[:, :, 0][length > 0], last[length > 0]))
    return len(loaded), shown[np.argsort(np.isin(shown, ends), kind="stable")]


def _cells(canvas: Canvas, analysis: Analysis, shown: Integers, left: float, width: float) -> None:
    place = np.full(len(analysis.network.capacity), -1)
    place[shown] = np.arange(len(shown))
    load = analysis.transfers / (analysis.width[analysis.link] * analysis.senders)
    lower = 0.0
    for upper, colour, _ in LOADS:
        cells = np.flatnonzero((load > lower) & (load <= upper) & (place[analysis.link] >= 0))
        x, y = left + width * analysis.step[cells], TOP + CELL * place[analysis.link[cells]]
        canvas.cells(x, y, width, CELL, colour)
        lower = upper
    canvas.frame(left, TOP, width * analysis.num_steps, CELL * len(shown))


def _idle(canvas: Canvas, analysis: Analysis, left: float, width: float, top: float) -> None:
    """Draw a bar for the share of idle ranks in each step, and the numbers of the steps."""
    share = analysis.idle_ranks / analysis.network.num_ranks
    mean = float(share[share < 1].mean()) if (share < 1).any() else 0.0  # steps in which all ranks idle do not count
    canvas.text(left - 6, top + 8, "100 %", anchor="end", size=9)
    canvas.text(left - 6, top + IDLE / 2, "idle ranks", anchor="end", size=9)
    canvas.text(left - 6, top + IDLE / 2 + 12, f"mean {mean:.0%}", anchor="end", size=9, colour=GREY)
    canvas.text(left - 6, top + IDLE, "0 %", anchor="end", size=9)
    for step in np.flatnonzero(share).tolist():
        height = IDLE * float(share[step])
        canvas.bar(left + width * step, top + IDLE - height, width, height, GREY)
    canvas.frame(left, top, width * analysis.num_steps, IDLE)
    canvas.steps(left, top + IDLE + 13, analysis.num_steps, width)
