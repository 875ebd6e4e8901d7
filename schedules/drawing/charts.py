"""Pictures of schedules as SVG: who serves whom in which step, or which link is loaded in which step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..analysis.loads import Analysis, analyse
from ..network import Network
from ..schedule import Schedule
from .svg import GREY, Canvas
from .treedrawing import HOP_COLOURS, draw_tree, is_tree

__all__ = ["HOP_COLOURS", "draw", "draw_chart", "draw_tree", "is_tree"]

Integers = NDArray[np.int64]

# Load of a link over what it may carry in the step: upper limit of each class, colour, and what the legend says.
LOADS = (
    (0.5, "#c6dbef", "up to half full"),
    (1.0, "#6baed6", "up to full"),
    (2.0, "#fdae6b", "conflicts, up to 2 times full"),
    (4.0, "#e6550d", "up to 4 times"),
    (np.inf, "#7f0000", "more"),
)
LEFT, TOP, CELL = 150, 66, 12  # pixels: margins, a link's row
WIDEST = 960  # pixels for all steps
MOST_LINKS = 96  # rows of a chart: what a page holds
IDLE = 60  # pixels of the bars of idle ranks


def draw(
    schedule: Schedule,
    network: Network,
    *,
    title: str | None = None,
    host_names: Sequence[str] | None = None,
    link_names: Sequence[str] | None = None,
) -> str:
    """The tree of a schedule whose messages form one, else its chart of links and steps, as SVG.

    :param schedule: the schedule.
    :param network: on which it runs.
    :param title: by default collective, algorithm and size.
    :param host_names: name of each host of the network; by default its number.
    :param link_names: name of each link of the network; by default its number.
    The same schedule makes the same text. Cost: as ``analyse``, and an element for each rank or loaded link and step.
    """
    title = title or f"{schedule.collective}, {schedule.algorithm}, {schedule.size} ranks"
    if is_tree(schedule):
        return draw_tree(schedule, network, title, host_names)
    return draw_chart(analyse(schedule, network), title, link_names)


def draw_chart(analysis: Analysis, title: str, link_names: Sequence[str] | None = None) -> str:
    """A row for each loaded link, a column for each step, in the colour of the load; below, idle ranks.

    The load counts against what the link may carry without a conflict: its width for each rank that one host sends
    from. Links between switches come first. Where there are more than ``MOST_LINKS`` those with the most conflicts are
    shown, and of these that carry the most.

    :param analysis: loads of the links by step.
    :param title: heading of the picture.
    :param link_names: name of each link of the network; by default its number.
    """
    loaded, shown = _links(analysis)
    width = min(WIDEST / max(analysis.num_steps, 1), 2 * CELL)
    bottom = TOP + CELL * len(shown)
    canvas = Canvas(max(LEFT + width * analysis.num_steps + 40, 640), bottom + IDLE + 90, title)
    over = len(np.unique(analysis.link[analysis.conflicts > 0]))
    most = "" if len(shown) == loaded else f", {len(shown):,} of them shown"
    found = f"{int(analysis.conflicts.sum()):,} conflicts, on {over:,} of {loaded:,} loaded links{most}"
    canvas.text(LEFT, TOP - 12, found)
    for place, link in enumerate(shown.tolist()):
        name = f"link {link}" if link_names is None else link_names[link]
        canvas.text(LEFT - 6, TOP + CELL * (place + 0.8), name, anchor="end", size=9)
    _cells(canvas, analysis, shown, width)
    _idle(canvas, analysis, width, bottom + 14)
    canvas.legend(canvas.height - 22, [(colour, words) for _, colour, words in LOADS])
    return canvas.svg()


def _links(analysis: Analysis) -> tuple[int, Integers]:
    """The number of loaded links, and those to be shown in their order."""
    network = analysis.network
    size = len(network.capacity)
    conflicts = np.bincount(analysis.link, weights=analysis.conflicts, minlength=size)
    transfers = np.bincount(analysis.link, weights=analysis.transfers, minlength=size)
    loaded = np.flatnonzero(transfers)
    order = np.lexsort((loaded, -transfers[loaded], -conflicts[loaded]))
    shown = np.sort(loaded[order[:MOST_LINKS]]).astype(np.int64)
    # A route's first link is its host's, and so is its last; both ways of all hosts are some route's.
    length = (network.links >= 0).sum(axis=2)
    last = np.take_along_axis(network.links, np.maximum(length - 1, 0)[:, :, None], axis=2)[:, :, 0]
    ends = np.concatenate((network.links[:, :, 0][length > 0], last[length > 0]))
    return len(loaded), shown[np.argsort(np.isin(shown, ends), kind="stable")]


def _cells(canvas: Canvas, analysis: Analysis, shown: Integers, width: float) -> None:
    place = np.full(len(analysis.network.capacity), -1)
    place[shown] = np.arange(len(shown))
    load = analysis.transfers / (analysis.width[analysis.link] * analysis.senders)
    lower = 0.0
    for upper, colour, _ in LOADS:
        cells = np.flatnonzero((load > lower) & (load <= upper) & (place[analysis.link] >= 0))
        x, y = LEFT + width * analysis.step[cells], TOP + CELL * place[analysis.link[cells]]
        canvas.cells(x, y, width, CELL, colour)
        lower = upper
    canvas.frame(LEFT, TOP, width * analysis.num_steps, CELL * len(shown))


def _idle(canvas: Canvas, analysis: Analysis, width: float, top: float) -> None:
    """Bars of the share of idle ranks in each step, and the numbers of the steps."""
    share = analysis.idle_ranks / analysis.network.num_ranks
    mean = float(share[share < 1].mean()) if (share < 1).any() else 0.0  # steps of local moves alone left out
    canvas.text(LEFT - 6, top + 10, "idle ranks", anchor="end", size=9)
    canvas.text(LEFT - 6, top + 22, f"mean {mean:.0%}", anchor="end", size=9, colour=GREY)
    for step in np.flatnonzero(share).tolist():
        height = IDLE * float(share[step])
        canvas.bar(LEFT + width * step, top + IDLE - height, width, height, GREY)
    canvas.frame(LEFT, top, width * analysis.num_steps, IDLE)
    canvas.text(LEFT - 6, top + IDLE + 13, "step", anchor="end", size=9)
    for step in range(0, analysis.num_steps, int(-(-24 // width))):
        canvas.text(LEFT + width * (step + 0.5), top + IDLE + 13, str(step), anchor="middle", size=9)
