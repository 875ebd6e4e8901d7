"""Charts of nodes over time: a bar per job and range of consecutive nodes, or, for many jobs, an image of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...inputs.figures import span_name
from .outcome import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_nodes"]

DAY = 86400
BARS = 2_000  # rectangles; an outcome with more is drawn as an image
COLUMNS, ROWS = 1_800, 1_000  # columns, and most rows, of the image: 2 columns per pixel of a 900-pixel chart
# Successive jobs get three shades of the colour of their size in turn, so that neighbours of one size are told apart.
FADED = (0.0, 0.1, 0.2)  # share of white that is mixed into the colour
EDGED = (1 / 300, 1 / 100)  # fractions of the chart's width and height above which a bar has an edge


def draw_nodes(axes: Axes, outcome: Outcome, origin: int, unit: int = DAY) -> None:
    """Draw which job holds each node, or slot, from the first arrival to the last end, coloured by its number of nodes.

    :param axes: axes of matplotlib, with time since the origin across.
    :param outcome: the outcome, with nodes.
    :param origin: second at which the axis begins.
    :param unit: seconds of the axis's unit, for example those of a day.
    """
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    scale = ScalarMappable(LogNorm(1, max(2, outcome.cluster.num_nodes)), colormaps["cividis_r"])
    colours = scale.to_rgba(outcome.workload.nodes.astype(np.float64))[:, :3]
    faded = np.take(FADED, np.arange(len(colours)) % len(FADED))[:, None]
    colours = colours + faded * (1 - colours)
    resource = "node" if outcome.slots is None else "slot"
    corners, jobs = _bars(outcome, origin, unit)
    if corners is None:
        every = _image(axes, outcome, origin, unit, colours)
        axes.set_title(f"{resource}s at moments {span_name(every)} apart", loc="left", fontsize=8, color="#555555")
    else:
        room = (int(outcome.end.max()) - origin) / unit, outcome.num_resources
        _rectangles(axes, corners, colours[jobs], room)
    axes.set(ylabel=resource, ylim=(0, outcome.num_resources))
    pods = outcome.cluster.leaf_start[outcome.cluster.pod_start[1:-1]]
    for pod in pods if outcome.slots is None else outcome.cluster.slot_start[pods]:
        axes.axhline(pod, color="black", linewidth=0.5)
    bar = axes.figure.colorbar(scale, ax=axes, label="nodes of a job", location="top", aspect=60)
    ticks = [2**power for power in range(0, 31, 1 + outcome.cluster.num_nodes.bit_length() // 12)]
    ticks = [tick for tick in ticks if tick <= max(2, outcome.cluster.num_nodes)]
    bar.set_ticks(ticks, labels=[f"{tick:,}" for tick in ticks])
    bar.minorticks_off()


def _bars(outcome: Outcome, origin: int, unit: int) -> tuple[NDArray[np.float64] | None, list[int]]:
    """Return corners of a rectangle for each run of consecutive nodes of each job, and its job; None if too many."""
    corners: list[list[tuple[float, float]]] = []
    jobs: list[int] = []
    for job in outcome.ran.tolist():
        nodes = outcome.resources_of(job)
        cuts = np.flatnonzero(np.diff(nodes) > 1)
        left, right = (outcome.start[job] - origin) / unit, (outcome.end[job] - origin) / unit
        for low, high in zip(nodes[np.append(0, cuts + 1)], nodes[np.append(cuts, len(nodes) - 1)] + 1, strict=True):
            corners.append([(left, low), (right, low), (right, high), (left, high)])
            jobs.append(job)
        if len(corners) > BARS:
            return None, []
    return np.array(corners, dtype=np.float64).reshape(-1, 4, 2), jobs


def _rectangles(
    axes: Axes, corners: NDArray[np.float64], colours: NDArray[np.float64], room: tuple[float, float]
) -> None:
    """Draw bars, with white edges if they are wide and high enough to be seen with them.

    :param axes: axes of matplotlib.
    :param corners: corners of each bar, shape (bars, 4, 2).
    :param colours: colour of each bar, shape (bars, 3).
    :param room: width and height of the chart.
    """
    from matplotlib.collections import PolyCollection

    edged = (corners[:, 2] - corners[:, 0] > np.multiply(room, EDGED)).all(axis=1)
    axes.add_collection(PolyCollection(list(corners), facecolors=colours, edgecolors="white", linewidths=0.5 * edged))
    axes.autoscale_view()


def _image(axes: Axes, outcome: Outcome, origin: int, unit: int, colours: NDArray[np.float64]) -> float:
    """Draw the holders of evenly spaced nodes at evenly spaced moments; return the seconds between two moments."""
    last, rows = int(outcome.end.max()), min(ROWS, outcome.num_resources)
    every = max(last - origin, 1) / COLUMNS
    # A job is drawn in the columns in whose middle it runs: on average, areas are then in proportion to node-seconds.
    first, end = (np.ceil((moment - origin) / every - 0.5).astype(np.int64) for moment in (outcome.start, outcome.end))
    row = np.full(outcome.num_resources, -1)
    row[(2 * np.arange(rows) + 1) * outcome.num_resources // (2 * rows)] = np.arange(rows)
    holder = np.full((rows, COLUMNS), -1)
    for job in outcome.ran[(first < end)[outcome.ran]].tolist():
        at = row[outcome.resources_of(job)]
        holder[at[at >= 0], first[job] : end[job]] = job
    picture = np.vstack((colours, np.ones(3)))[holder]  # number -1, no job, is the last row: white
    extent = (0, (last - origin) / unit, 0, outcome.num_resources)
    # Without clipping, because the image fills its frame, and a clip has a random identifier.
    axes.imshow(picture, origin="lower", aspect="auto", interpolation="nearest", extent=extent, clip_on=False)
    return every
