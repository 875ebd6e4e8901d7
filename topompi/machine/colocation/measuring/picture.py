"""The heat map of speed-ups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ....inputs import figures
from ....inputs.figures import cut_middle, plain_label, save_figure
from ..errors import ColocationError
from ..speedups.matrix import Speedups

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["check_plot", "draw"]

SLOWER, FASTER = "#d55e00", "#0072b2"
DARK = 0.7  # share of the colours' range above which numbers are white
LEAST_RANGE = 0.05  # of the colours, so that noise about 1 is pale


def check_plot(path: Path) -> None:
    """Check, before any long work, that the file name's suffix is supported and matplotlib is installed.

    :raises ColocationError: if the suffix is neither .svg nor .png, or matplotlib is missing.
    """
    figures.check_plot(path, "--draw", ColocationError)


def draw(speedups: Speedups, path: Path) -> None:
    """Draw a matrix of speed-ups: a row per program, a column per neighbour, and a column for an empty half.

    Orange cells are slower than in compact mode, blue ones faster; unknown cells are grey.

    :param speedups: the matrix.
    :param path: path of the picture, which ends in .svg or .png.
    """
    check_plot(path)
    from matplotlib import rc_context
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    values = np.column_stack((speedups.ratio, speedups.alone))
    known = np.isfinite(values)
    span = max(LEAST_RANGE, float(np.abs(np.log(values[known])).max(initial=0)))
    colours = LinearSegmentedColormap.from_list("speed", [SLOWER, "#ffffff", FASTER])
    size = len(speedups)
    figure = Figure(figsize=(3.2 + 0.62 * (size + 1), 2.2 + 0.5 * size), layout="constrained")
    axes = figure.subplots()
    axes.set_facecolor("#eeeeee")
    axes.imshow(np.log(np.where(known, values, np.nan)), cmap=colours, vmin=-span, vmax=span, aspect="auto")
    for row, column in np.ndindex(values.shape):
        if known[row, column]:
            ink = "white" if abs(np.log(values[row, column])) > DARK * span else "black"
            axes.text(column, row, f"{values[row, column]:.2f}", ha="center", va="center", fontsize=8, color=ink)
    _name(axes, [plain_label(cut_middle(name, 18)) for name in speedups.programs])
    axes.set_title("speed-up over compact mode", fontsize=10)
    with rc_context({"svg.hashsalt": "topompi colocate", "svg.fonttype": "none"}):
        save_figure(figure, path)


def _name(axes: Axes, names: list[str]) -> None:
    count = len(names)
    axes.set_xticks(range(count + 1), [*names, "(empty)"], rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(count), names)
    axes.set(xlabel="neighbour", ylabel="program")
    axes.axvline(count - 0.5, color="#555555", linewidth=1)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
