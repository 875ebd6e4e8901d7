"""Pictures of profiles: bytes by distance, traffic between units, and several runs side by side.

The kinds of pictures are those of Subramoni 2013, section 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...inputs.figures import check_plot, cut_middle, plain_label, save_figure, shaded
from ...mapping.graph import CommunicationGraph
from ...topology import TopologyInterface
from .analysis import by_hops, edge_hops, hop_name, units_of
from .colours import DEFAULT, colours_of
from .errors import ProfileError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_comparison", "draw_traffic", "heat"]

COLUMNS = {"bytes": "volume", "messages": "messages"}  # by counted quantity, the graph's attribute that has it
Floats = NDArray[np.float64]
SIZES = {"histogram": (9, 4), "heat": (7, 6)}  # by kind of picture, its width and height in inches
MOST_BARS = 64  # maximum number of units drawn as bars; more are drawn as an area, because bars would be too narrow


def draw_traffic(
    path: Path,
    kind: str,
    graph: CommunicationGraph,
    interface: TopologyInterface,
    granularity: str = "process",
    count: str = "bytes",
    palette: str = DEFAULT,
    title: str = "",
) -> None:
    """Draw the traffic of units, coloured by number of hops: a bar per sending unit, or a matrix of all pairs of units.

    :param path: path of the picture, in .svg or .png.
    :param kind: ``histogram`` for the bars, stacked by hops with the fewest at the bottom; ``heat`` for the matrix.
    :param graph: communication graph of the ranks.
    :param interface: the placement of the ranks.
    :param granularity: kind of units: process, host or switch.
    :param count: ``bytes`` or ``messages``.
    :param palette: name of a palette of `topompi.mpi.profile.colours`.
    :param title: title of the picture; if it is "", a description of the interface.
    :raises ProfileError: if an argument is another word, or matplotlib is missing.

    Cost: for a matrix, a cell per pair of units.
    """
    if kind not in SIZES:
        raise ProfileError(f"expecting a picture of {', '.join(SIZES)}, got {kind!r}")
    with _figure(path, SIZES[kind]) as figure:
        axes = figure.subplots()
        panel = _histogram if kind == "histogram" else _heat
        legend = panel(axes, graph, interface, granularity, count, palette)
        _around(figure, axes, title or interface.describe(), legend)


def _histogram(
    axes: Axes, graph: CommunicationGraph, interface: TopologyInterface, granularity: str, count: str, palette: str
) -> str:
    """Draw a bar per unit, and return "", because the legend needs no title."""
    names, unit = units_of(interface, granularity)
    hops, weight = edge_hops(graph, interface), _weight(graph, count)
    at, bottom = np.arange(len(names)), np.zeros(len(names))
    for one, colour in colours_of(hops.tolist(), palette).items():
        height = np.bincount(unit[graph.sources[hops == one]], weight[hops == one], len(names))
        if len(names) > MOST_BARS:
            axes.fill_between(at, bottom, bottom + height, color=colour, step="mid", label=hop_name(one))
        else:
            axes.bar(at, height, 0.85, bottom=bottom, color=colour, label=hop_name(one))
        bottom = bottom + height
    axes.set(xlabel=granularity, ylabel=f"{count} sent", xlim=(-0.6, len(names) - 0.4), ylim=(0, None))
    if granularity != "process" and len(names) <= MOST_BARS:
        axes.set_xticks(at, [plain_label(cut_middle(name, 16)) for name in names], rotation=90, fontsize=7)
    _amounts(axes)
    return ""


def _heat(
    axes: Axes, graph: CommunicationGraph, interface: TopologyInterface, granularity: str, count: str, palette: str
) -> str:
    """Draw a matrix of units, and return the title of the legend, which names the largest traffic."""
    amount, hops = heat(graph, interface, granularity, count)
    colours, largest = colours_of(hops[amount > 0].tolist(), palette), float(amount.max(initial=0.0))
    axes.imshow(shaded(amount, hops, colours, largest), interpolation="nearest", clip_on=False)
    axes.set(xlabel=f"receiving {granularity}", ylabel=f"sending {granularity}")
    for one, colour in colours.items():
        axes.plot([], [], "s", color=colour, label=hop_name(one))
    return f"full colour:\n{int(largest):,} {count}"


def heat(
    graph: CommunicationGraph, interface: TopologyInterface, granularity: str, count: str
) -> tuple[Floats, NDArray[np.int64]]:
    """The traffic from each unit to each unit, and the number of hops of most of it, both of shape (units, units).

    :param graph: communication graph of the ranks.
    :param interface: the placement of the ranks.
    :param granularity: kind of units: process, host or switch.
    :param count: ``bytes`` or ``messages``.
    """
    names, unit = units_of(interface, granularity)
    hops, weight, size = edge_hops(graph, interface), _weight(graph, count), len(names)
    cell = unit[graph.sources] * size + unit[graph.targets]
    total, most, mostly = np.zeros(size**2), np.zeros(size**2), np.zeros(size**2, dtype=np.int64)
    for one in np.unique(hops).tolist():
        part = np.bincount(cell[hops == one], weight[hops == one], size**2)
        total += part
        mostly[part > most] = one
        np.maximum(most, part, out=most)
    return total.reshape(size, size), mostly.reshape(size, size)


def draw_comparison(
    path: Path,
    runs: Mapping[str, tuple[CommunicationGraph, TopologyInterface]],
    count: str = "bytes",
    palette: str = DEFAULT,
) -> None:
    """Draw several runs in one chart: one bar per run, stacked by number of hops.

    :param path: path of the picture, in .svg or .png.
    :param runs: graph and placement of each run, by name.
    :param count: ``bytes`` or ``messages``.
    :param palette: name of a palette of `topompi.mpi.profile.colours`.
    :raises ProfileError: if an argument is another word, or matplotlib is missing.
    """
    column = _column(count)
    sent = {
        name: {one.hops: getattr(one, column) for one in by_hops(*run) if one.hops is not None and getattr(one, column)}
        for name, run in runs.items()
    }
    colours = colours_of((hops for found in sent.values() for hops in found), palette)
    with _figure(path, (2.5 + 1.5 * len(runs), 4.5)) as figure:
        axes, bottom = figure.subplots(), np.zeros(len(runs))
        for one, colour in colours.items():
            height = np.array([found.get(one, 0) for found in sent.values()], dtype=np.float64)
            axes.bar(list(sent), height, 0.6, bottom=bottom, color=colour, label=hop_name(one))
            bottom = bottom + height
        axes.set_ylim(0, 1.05 * max(bottom.max(initial=0.0), 1.0))
        axes.set(ylabel=f"{count} sent")
        _amounts(axes)
        sizes = sorted({f"{interface.num_ranks:,} ranks" for _, interface in runs.values()})
        _around(figure, axes, f"{count.capitalize()} sent by {' or '.join(sizes)}")


def _column(count: str) -> str:
    if count not in COLUMNS:
        raise ProfileError(f"expecting a count of {', '.join(COLUMNS)}, got {count!r}")
    return COLUMNS[count]


def _weight(graph: CommunicationGraph, count: str) -> Floats:
    weight: Floats = getattr(graph, _column(count)).astype(np.float64)
    return weight


def _amounts(axes: Axes) -> None:
    """Label the axis with 1.5 M instead of 1.5 and a power of ten above the axis."""
    from matplotlib.ticker import EngFormatter

    axes.yaxis.set_major_formatter(EngFormatter())


def _around(figure: Figure, axes: Axes, title: str = "", legend: str = "") -> None:
    """Put the title above and the classes beside the axes, so that neither is clipped."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], fontsize=8, title=legend, title_fontsize=8, loc="outside right upper")
    # About 10 characters fit an inch of the figure's width, of which the list of classes takes 2 inches.
    axes.set_title(fill(title, int(10 * (figure.get_figwidth() - 2))), fontsize=10)


@contextmanager
def _figure(path: Path, size: tuple[float, float]) -> Iterator[Figure]:
    """A figure that is written to the path at the end of the ``with``."""
    check_plot(path, "picture", ProfileError)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "topompi profile"}):  # fixed, so that the same data give the same file
        figure = Figure(figsize=size, layout="compressed")
        yield figure
        save_figure(figure, path, dpi=150)
