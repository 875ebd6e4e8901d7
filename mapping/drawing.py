"""Figures of a program's traffic under two mappings: bars by distance, and heat maps from host to host."""

from __future__ import annotations

from collections.abc import Mapping as Table
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..inputs import figures
from ..inputs.figures import DISTANCES, FAINTEST, colours_by_hops, cut_middle, plain_label, save_figure, shaded
from .comparison import class_name
from .graph import CommunicationGraph
from .machine import Machine
from .mapping import Mapping, MappingError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["check_plot", "draw_plot", "traffic"]

HOST = DISTANCES[0]
BY_HOPS = [hops for hops in DISTANCES if hops]  # distances with a colour of their own, nearest first
DARK = (DISTANCES[0], DISTANCES[3])  # colours on which letters are white
MOST_NAMES = 16  # most host names along a side of a heat map, because more would overlap
MOST_CELLS = 128  # most cells along a side of a heat map; if there are more hosts, several share a cell


def check_plot(path: Path) -> None:
    """Refuse a wrong file name, or a missing matplotlib, before any long work.

    :raises MappingError: if the suffix is not .svg or .png, or matplotlib is missing.
    """
    figures.check_plot(path, "plot", MappingError)


def draw_plot(
    path: Path,
    graph: CommunicationGraph,
    machine: Machine,
    maps: Table[str, Mapping],
    classes: Table[str, dict[str, int]],
    *,
    hops: bool,
    program: str = "",
) -> None:
    """Draw bars of the fraction of bytes at each distance, and a heat map of each mapping, coloured by distance.

    If both put every rank on the same host, the picture has one bar and one heat map, and a sentence about it. The
    intensity of a cell is the square root of its bytes divided by the bytes of the largest cell, because volumes span
    decades.

    :param path: file to write, .svg or .png.
    :param graph: bytes between ranks, the weights of the heat maps.
    :param machine: hosts of both mappings.
    :param maps: two mappings by name.
    :param classes: bytes by distance for each name, as from `mapping.evaluate`.
    :param hops: whether a distance is a number of hops.
    :param program: name of the program for the title; "" if it has none.
    """
    check_plot(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    classes = {name: {key: volume for key, volume in side.items() if volume} for name, side in classes.items()}
    colours = _colours(classes, hops)
    with rc_context({"svg.hashsalt": "topompi map"}):  # makes identifiers in the file reproducible
        figure = Figure(figsize=(12, 5.4), layout="constrained")
        moved = ""
        hosts = [mapping.host_of_rank for mapping in maps.values()]
        if all(np.array_equal(hosts[0], other) for other in hosts):  # equal panels would show the same twice
            names = " = ".join(maps)
            maps, classes = {names: next(iter(maps.values()))}, {names: next(iter(classes.values()))}
            moved = "; no rank moves"
        tables = {name: traffic(graph, machine, mapping) for name, mapping in maps.items()}
        bars, *heat = figure.subplots(1, 1 + len(tables), width_ratios=[1] + [1.4] * len(tables))
        _draw_bars(bars, classes, colours, hops)
        figure.suptitle(
            f"{program or 'Traffic'}: {graph.size:,} ranks on {machine.num_hosts:,} hosts{moved}", fontsize=12
        )
        largest = max((float(table.max(initial=0.0)) for table, _ in tables.values()), default=0.0)
        for axes, (name, (volume, distance)) in zip(heat, tables.items(), strict=True):
            # Without clipping, because the picture fills its frame, and a clip has a random identifier.
            image = shaded(volume, distance, {_kind(key): colour for key, colour in colours.items()}, largest)
            axes.imshow(image, interpolation="nearest", clip_on=False)
            axes.set(title=name, xlabel="receiving host", ylabel="sending host")
            _name_cells(axes, len(volume), machine.hosts)
        _shade_legend(figure, largest)
        save_figure(figure, path)


def traffic(
    graph: CommunicationGraph, machine: Machine, mapping: Mapping
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The bytes and the distance class (-1 within hosts) of each cell of the heat map, both of shape (cells, cells).

    A cell that several hosts share has the distance of most of its bytes.

    :param graph: bytes between ranks.
    :param machine: hosts and their distances; the map has as many rows and columns of cells as hosts, at most 128.
    :param mapping: host of each rank.
    Cost: O(edges) plus the cells; no table of all hosts is made.
    """
    cells = min(machine.num_hosts, MOST_CELLS)
    host, proper = mapping.host_of_rank, graph.sources != graph.targets
    here, there = host[graph.sources[proper]], host[graph.targets[proper]]
    kind = np.where(here == there, -1, machine.distance(here, there))
    kinds, code = np.unique(kind, return_inverse=True)
    cell = here * cells // machine.num_hosts * cells + there * cells // machine.num_hosts
    volume = np.zeros((max(len(kinds), 1), cells * cells))
    np.add.at(volume, (code, cell), graph.volume[proper])
    mostly = kinds[volume.argmax(axis=0)] if len(kinds) else np.full(cells * cells, -1)
    return volume.sum(axis=0).reshape(cells, cells), mostly.reshape(cells, cells)


def _kind(key: str) -> int:
    """Return the class of `traffic` for a key of the bytes by distance."""
    return -1 if key == "host" else int(key)


def _colours(classes: Table[str, dict[str, int]], hops: bool) -> dict[str, str]:
    """The colour of each distance, nearest first: those of hops, or else, for weights of levels, the same in order."""
    used = {key for side in classes.values() for key in side}
    found, inside = sorted({int(key) for key in used - {"host"}}), {"host": HOST} if "host" in used else {}
    order = found if hops else [*BY_HOPS, *range(-1, -len(found), -1)][: len(found)]
    return {**inside, **{str(key): colour for key, colour in zip(found, colours_by_hops(order).values(), strict=True)}}


def _draw_bars(axes: Axes, classes: Table[str, dict[str, int]], colours: dict[str, str], hops: bool) -> None:
    totals = {name: max(1, sum(side.values())) for name, side in classes.items()}
    bottom = np.zeros(len(classes))
    for key, colour in colours.items():
        share = np.array([100 * side.get(key, 0) / totals[name] for name, side in classes.items()])
        bars = axes.bar(list(classes), share, bottom=bottom, color=colour, label=class_name(key, hops))
        words = [f"{one:.1f} %" if one >= 4 else "" for one in share]
        letters = "white" if colour in DARK else "black"
        axes.bar_label(bars, words, label_type="center", fontsize=8, color=letters)
        bottom += share
    axes.set(ylabel="share of bytes (%)", ylim=(0, 100))
    if len(classes) == 1:
        axes.set_xlim(-1, 1)  # else the one bar would fill the panel
    handles, labels = axes.get_legend_handles_labels()
    axes.figure.legend(handles[::-1], labels[::-1], fontsize=9, loc="outside lower left", ncols=min(len(labels), 4))


def _name_cells(axes: Axes, cells: int, hosts: Sequence[str]) -> None:
    """Label a few cells with host names; a cell that several hosts share has the first host's name."""
    at = np.unique(np.linspace(0, cells - 1, min(cells, MOST_NAMES)).round().astype(int))
    named = [plain_label(cut_middle(hosts[one * len(hosts) // cells], 14)) for one in at.tolist()]
    axes.set_xticks(at, named, rotation=90 if max(map(len, named)) > 3 else 0, fontsize=8)
    axes.set_yticks(at, named, fontsize=8)


def _shade_legend(figure: Figure, largest: float) -> None:
    """Draw a legend of three intensities with their bytes; the darkest is the largest cell."""
    from matplotlib.patches import Patch

    parts = (1.0, 0.25, 0.01)
    shades = [0.85 * (1 - FAINTEST - (1 - FAINTEST) * part**0.5) for part in parts]
    patches = [Patch(facecolor=str(shade), edgecolor="0.5") for shade in shades]
    words = [_bytes(part * largest) for part in parts]
    title = "darker: more bytes from host to host"
    figure.legend(
        patches, words, title=title, fontsize=9, title_fontsize=9, loc="outside lower right", ncols=len(parts)
    )


def _bytes(number: float) -> str:
    power = next((power for power in range(4) if number < 1000 ** (power + 1)), 4)
    return f"{number / 1000**power:,.3g} {('B', 'KB', 'MB', 'GB', 'TB')[power]}"
