"""Pictures of simulated times over message sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topompi.errors import BenchmarkError
from topompi.inputs.figures import (
    OTHERS,
    SERIES,
    bare_name,
    check_plot,
    cut_middle,
    joined,
    log_axes,
    name_ends,
    save_figure,
)

from ..options import Options
from ..record import Circumstances
from .ground import Failure
from .table import Findings

__all__ = ["draw", "drawable", "heights", "lines_of"]

MOST_NAMED = 26  # names at the ends of lines, each of its own; more do not fit, and lines that coincide share a name


def drawable(path: Path | None) -> None:
    """Raise BenchmarkError for a file that ``draw`` would not write, before the long work."""
    if path is not None:
        check_plot(path, "--draw", BenchmarkError)


def draw(options: Options, facts: Circumstances, found: Findings, path: Path) -> None:
    """Draw the times of all sides over the message size, as multiples of the lower bound if the bound is known.

    Other libraries (peers) have dashed black lines, topompi's fastest algorithms coloured lines, and its other
    algorithms grey lines. The names of the sides stand at the ends of the lines; sides with the same times share a
    line. A line has a gap at a size for which the side has no time.

    :param options: options of the run.
    :param facts: circumstances of the run.
    :param found: the times.
    :param path: path of the file, which ends in .svg or .png.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "osu_like_bench simulate"}):  # a fixed salt, for equal files
        bounded = all(found.bounds[size] for size in found.sizes)
        figure = Figure(figsize=(10, 6), layout="constrained")
        axes = figure.add_subplot(xlabel="message size (bytes)")
        axes.set_ylabel("simulated time / bound" if bounded else "simulated time (us)")
        ends, lines = [], lines_of(found)
        every = sum(len(names) for names, *_ in lines) <= MOST_NAMED
        for names, times, look in lines:
            axes.plot(found.sizes, times, markersize=4, **look)
            last = int(np.flatnonzero(~np.isnan(times))[-1])
            end = found.sizes[last], float(times[last])
            ends += [(*end, name, str(look["color"])) for name in (names if every else [joined(names)])]
        if bounded:
            axes.axhline(1, color="black", linestyle=":", linewidth=1)
            ends.append((found.sizes[-1], 1.0, "lower bound", "black"))
        log_axes(axes, found.sizes)
        fabric = cut_middle(bare_name(facts.topology), 40)
        axes.set_title(f"{options.benchmark}: {facts.ranks} ranks on {len(set(facts.hosts))} hosts of {fabric}")
        axes.grid(alpha=0.3)
        name_ends(axes, ends)
        save_figure(figure, path)


def lines_of(found: Findings) -> list[tuple[list[str], NDArray[np.float64], dict[str, Any]]]:
    """Return the lines to draw, each with the names of the sides that it stands for, its values, and its look.

    The look is a dictionary of matplotlib's arguments. Sides whose values coincide share a line.

    Grey lines come first, so that others are drawn over them.

    :param found: the times.
    """
    lines: list[tuple[list[str], NDArray[np.float64], bool]] = []
    for side in (*found.algorithms, *found.peers):
        times, peer = heights(found, side), side in found.peers
        if np.isnan(times).all():
            continue
        same = [names for names, other, kind in lines if kind == peer and np.allclose(other, times, 3e-3, 0, True)]
        if same:
            same[0].append(side)
        else:
            lines.append(([side], times, peer))
    ours = sorted((line for line in lines if not line[2]), key=lambda line: float(np.nanmean(np.log(line[1]))))
    looks: list[dict[str, Any]] = [{"color": colour, "marker": "o"} for colour in SERIES]
    looks += [{"color": OTHERS, "marker": "o", "linewidth": 0.8}] * (len(ours) - len(SERIES))
    drawn = [(names, times, look) for (names, times, _), look in zip(ours, looks, strict=False)]
    others = [line for line in lines if line[2]]
    dashed = [
        (names, times, dict[str, Any](color="black", marker=mark, linestyle="--"))
        for (names, times, _), mark in zip(others, "s^vDPX*" * len(others), strict=False)
    ]
    return [*drawn[::-1], *dashed]


def heights(found: Findings, side: str) -> NDArray[np.float64]:
    """Return the drawn values of a side, shape (sizes,): multiples of the bound, or microseconds if no bound is known.

    A size without a time has NaN.
    """
    outcomes = [found.outcomes[side, size] for size in found.sizes]
    seconds = np.array([np.nan if isinstance(one, Failure) else one for one in outcomes])
    bounds = np.array([found.bounds[size] for size in found.sizes])
    return seconds / bounds if bounds.all() else 1e6 * seconds
