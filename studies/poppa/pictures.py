"""Pictures of the simulated pairs: errors, lengths of windows, prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from topompi.inputs.figures import SERIES, save_figure

from .applications import ESTIMATORS, Cell
from .dilation import dilated

__all__ = ["draw_errors", "draw_prices", "draw_windows"]


def draw_errors(cells: Sequence[Cell], names: Sequence[str], path: Path) -> None:
    """Draw the error of each pair, by `balanced` and by algorithm 4, with one scale of colours.

    :param cells: cells of all pairs, by application and neighbour.
    :param names: names of the applications.
    :param path: the file.
    """
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, estimator in zip(panels, ("balanced", "algorithm 4"), strict=True):
        error = np.reshape([100 * cell.error(estimator) for cell in cells], (len(names), -1))
        image = axes.imshow(error, cmap="RdBu_r", vmin=-20, vmax=20)
        for (row, column), value in np.ndenumerate(error):
            colour = "white" if abs(value) > 12 else "black"
            axes.text(column, row, f"{round(value)}", ha="center", va="center", fontsize=6.5, color=colour)
        axes.set(title=estimator, xlabel="beside")
        axes.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor", fontsize=7)
        axes.set_yticks(range(len(names)), names, fontsize=7)
    figure.colorbar(image, ax=panels, label="error of the run time alone, %", extend="both", shrink=0.85)
    save_figure(figure, path)


def draw_windows(sweep: Mapping[int, Mapping[str, float]], fit: Mapping[int, float], path: Path) -> None:
    """Draw the mean error by the length of a region, and run times in the model beside equation 10.

    :param sweep: mean error by S in microseconds and estimator.
    :param fit: run time in the model over that without the shutter, by S in microseconds.
    :param path: the file.
    """
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for at, estimator in enumerate(ESTIMATORS):
        values = [100 * of[estimator] for of in sweep.values()]
        left.plot([one / 1000 for one in sweep], values, marker="o", markersize=4, color=SERIES[at], label=estimator)
    left.set(xscale="log", xlabel="region S, ms", ylabel="mean absolute error, %", ylim=(0, None))
    line = np.geomspace(min(fit), max(fit), 200)
    right.plot(
        line / 1000, [dilated(1, one / 1e6, 0.2) for one in line], color="black", linewidth=1, label="equation 10"
    )
    right.plot([one / 1000 for one in fit], list(fit.values()), "o", markersize=4, color=SERIES[0], label="model")
    right.set(xscale="log", xlabel="region S, ms", ylabel="run time / run time without shutter")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=9)
    save_figure(figure, path)


def draw_prices(cells: Sequence[Cell], names: Sequence[str], path: Path) -> None:
    """Draw mean and range over the neighbours of each application's price, as a share of its price alone.

    :param cells: cells of all pairs.
    :param names: names of the applications.
    :param path: the file.
    """
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    axes = figure.subplots()
    values = {
        "as usual": [1 / cell.truth for cell in cells],
        "POPPA": [min(1, cell.found["balanced"]) for cell in cells],
        "oracle": [cell.truth for cell in cells],
    }
    for at, (rule, flat) in enumerate(values.items()):
        shares = np.reshape(flat, (len(names), -1))
        place = np.arange(len(names)) + 0.25 * (at - 1)
        middle = shares.mean(axis=1)
        ranges = np.abs(np.stack((shares.min(axis=1), shares.max(axis=1))) - middle)
        axes.errorbar(place, middle, ranges, fmt="o", markersize=4, capsize=3, color=SERIES[at], label=rule)
    axes.axhline(1, color="#555555", linewidth=0.6)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor", fontsize=8)
    axes.set(ylabel="price / price alone")
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside upper center", frameon=False, ncols=3, fontsize=9)
    save_figure(figure, path)
