"""Pictures of profiles: bytes by distance, traffic between units, and several runs side by side.

The kinds of pictures are those of Subramoni 2013, section 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..inputs.figures import plain_label, save_figure
from ..mapping.graph import CommunicationGraph
from ..topology import TopologyInterface
from .analysis import by_hops, edge_hops, hop_name, units_of
from .colours import DEFAULT, colours_of
from .errors import ProfileError

__all__ = ["draw_comparison", "draw_heat", "draw_histogram", "heat"]

COLUMNS = {"bytes": "volume", "messages": "messages"}  # by counted quantity, the graph's attribute that has it
Floats = NDArray[np.float64]
MOST_BARS = 64  # maximum number of units drawn as bars; more are drawn as an area, because bars would be too narrow


def draw_histogram(
    path: Path,
    graph: CommunicationGraph,
    interface: TopologyInterface,
    granularity: str = "process",
    count: str = "bytes",
    palette: str = DEFAULT,
) -> None:
    """Draw the bytes or messages that each unit sends as a bar, stacked by number of hops, the nearest lowest.

    :param path: path of the picture, in .svg or .png.
    :param graph: communication graph of the ranks.
    :param interface: the placement of the ranks.
    :param granularity: kind of units: process, host or switch.
    :param count: ``bytes`` or ``messages``.
    :param palette: name of a palette of `topompi.profile.colours`.
    :raises ProfileError: if an argument is another word, or matplotlib is missing.
    """
    names, unit = units_of(interface, granularity)
    hops, weight = edge_hops(graph, interface), _weight(graph, count)
    colours = colours_of(hops.tolist(), palette)
    at = np.arange(len(names))
    with _figure(path, (9, 4)) as figure:
        axes, bottom = figure.subplots(), np.zeros(len(names))
        for one, colour in colours.items():
            height = np.bincount(unit[graph.sources[hops == one]], weight[hops == one], len(names))
            if len(names) > MOST_BARS:
                axes.fill_between(at, bottom, bottom + height, color=colour, step="mid", label=hop_name(one))
            else:
                axes.bar(at, height, 0.85, bottom=bottom, color=colour, label=hop_name(one))
            bottom = bottom + height
        axes.set(xlabel=granularity, ylabel=f"{count} sent", xlim=(-0.6, len(names) - 0.4), ylim=(0, None))
        if granularity != "process" and len(names) <= MOST_BARS:
            axes.set_xticks(at, [plain_label(name) for name in names], rotation=90, fontsize=7)
        _amounts(axes)
        _around(figure, axes, interface.describe())


def draw_heat(
    path: Path,
    graph: CommunicationGraph,
    interface: TopologyInterface,
    granularity: str = "process",
    count: str = "bytes",
    palette: str = DEFAULT,
) -> None:
    """Draw the traffic between units as a matrix, with a colour by hops and an intensity by traffic.

    The intensity is the square root of the traffic relative to the largest pair's, because volumes span decades.

    :param path: path of the picture, in .svg or .png.
    :param graph: communication graph of the ranks.
    :param interface: the placement of the ranks.
    :param granularity: kind of the units in rows and columns: process, host or switch.
    :param count: ``bytes`` or ``messages``.
    :param palette: name of a palette of `topompi.profile.colours`.
    :raises ProfileError: if an argument is another word, or matplotlib is missing.

    Cost: a cell per pair of units.
    """
    amount, hops = heat(graph, interface, granularity, count)
    colours = colours_of(hops[amount > 0].tolist(), palette)
    with _figure(path, (7, 6)) as figure:
        axes = figure.subplots()
        axes.imshow(_shaded(amount, hops, colours), interpolation="nearest", clip_on=False)
        axes.set(xlabel=f"receiving {granularity}", ylabel=f"sending {granularity}")
        for one, colour in colours.items():
            axes.plot([], [], "s", color=colour, label=hop_name(one))
        _around(figure, axes, interface.describe(), f"full colour:\n{int(amount.max(initial=0.0)):,} {count}")


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
    :param palette: name of a palette of `topompi.profile.colours`.
    :raises ProfileError: if an argument is another word, or matplotlib is missing.
    """
    classes = {name: {one.hops: one for one in by_hops(*run) if one.hops is not None} for name, run in runs.items()}
    colours = colours_of((hops for found in classes.values() for hops in found), palette)
    with _figure(path, (2.5 + 1.5 * len(runs), 4.5)) as figure:
        axes, bottom = figure.subplots(), np.zeros(len(runs))
        for one, colour in colours.items():
            found = [by.get(one) for by in classes.values()]
            height = np.array([getattr(each, COLUMNS[count]) if each else 0 for each in found], dtype=np.float64)
            axes.bar(list(classes), height, 0.6, bottom=bottom, color=colour, label=hop_name(one))
            bottom = bottom + height
        axes.set(ylabel=f"{count} sent")
        _amounts(axes)
        _around(figure, axes)


def _weight(graph: CommunicationGraph, count: str) -> Floats:
    if count not in COLUMNS:
        raise ProfileError(f"expecting a count of {', '.join(COLUMNS)}, got {count!r}")
    weight: Floats = getattr(graph, COLUMNS[count]).astype(np.float64)
    return weight


def _shaded(amount: Floats, hops: NDArray[np.int64], colours: Mapping[int, str]) -> Floats:
    """The image, shape (units, units, 3): white without traffic, the class's full colour for the largest pair."""
    full = np.ones((*amount.shape, 3))
    for one, colour in colours.items():
        full[hops == one] = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    strength = np.sqrt(amount / max(float(amount.max(initial=0.0)), 1.0))
    strength = np.where(amount > 0, 0.15 + 0.85 * strength, 0.0)[:, :, None]
    shaded: Floats = 1 - strength * (1 - full)
    return shaded


def _amounts(axes: Any) -> None:
    """Label the axis with 1.5 M instead of 1.5 and a power of ten above the axis."""
    from matplotlib.ticker import EngFormatter

    axes.yaxis.set_major_formatter(EngFormatter())


def _around(figure: Any, axes: Any, title: str = "", legend: str = "") -> None:
    """Put the title above and the classes beside the axes, so that neither is clipped."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], fontsize=8, title=legend, title_fontsize=8, loc="outside right upper")
    # About 10 characters fit an inch of the figure's width, of which the list of classes takes 2 inches.
    axes.set_title(fill(title, int(10 * (figure.get_figwidth() - 2))), fontsize=10)


@contextmanager
def _figure(path: Path, size: tuple[float, float]) -> Iterator[Any]:
    """A figure that is written to the path at the end of the ``with``."""
    if path.suffix not in (".svg", ".png"):
        raise ProfileError(f"expecting a file name in .svg or .png, got {path.name!r}")
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ProfileError("expecting matplotlib; pip install 'topompi[plot]' brings it") from error
    with rc_context({"svg.hashsalt": "topompi profile"}):  # fixed, so that the same data give the same file
        figure = Figure(figsize=size, layout="compressed")
        yield figure
        save_figure(figure, path, dpi=150)
