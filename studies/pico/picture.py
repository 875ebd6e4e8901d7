"""The picture of regrets by machine and kind of call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from topompi.inputs.figures import SERIES, save_figure, size_name

from .machines import MACHINES
from .score import Contest, regrets, summary

__all__ = ["draw_regrets"]


def draw_regrets(some: Sequence[Contest], path: Path) -> None:
    """Draw predicted over measured times, and the regret of the model's and the library's choices by size.

    :param some: contests.
    :param path: the file.
    """
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for place, system in enumerate(MACHINES):
        members = [one for one in some if one.cell.first.system == system]
        left.plot(
            1e6 * np.concatenate([one.measured for one in members]),
            1e6 * np.concatenate([one.predicted for one in members]),
            "o",
            markersize=2.5,
            alpha=0.6,
            color=SERIES[place],
            label=system.replace("_", " "),
        )
    line = np.array([1.0, 1e7])
    left.plot(line, line, color="black", linewidth=0.8)
    left.set(xscale="log", yscale="log", xlabel="measured, us", ylabel="predicted, us")
    left.legend(fontsize=8)
    sizes = sorted({one.cell.first.nbytes for one in some})
    groups = [[one for one in some if one.cell.first.nbytes == size] for size in sizes]
    groups, sizes = (
        [one for one in groups if len(one) > 4],
        [size for size, one in zip(sizes, groups, strict=True) if len(one) > 4],
    )
    choices = {
        "model": [[one.chosen for one in group] for group in groups],
        "mean algorithm": [[float(np.exp(np.log(one.measured).mean())) for one in group] for group in groups],
    }
    for place, (name, chosen) in enumerate(choices.items()):
        means = [
            summary(regrets(times, [one.best for one in group])).mean
            for times, group in zip(chosen, groups, strict=True)
        ]
        right.plot(sizes, means, marker="o", markersize=4, color=SERIES[place], label=name)
    right.set(xscale="log", xlabel="bytes", ylabel="regret, geometric mean", ylim=(0.95, None))
    right.set_xticks(sizes, [size_name(size) for size in sizes], rotation=45)
    right.legend(fontsize=8)
    save_figure(figure, path)
