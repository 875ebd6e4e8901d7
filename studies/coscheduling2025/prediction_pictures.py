"""Pictures of prediction: pairs of models by accuracy and precision, and accuracy over the number of measured cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topompi.inputs.figures import OTHERS, SERIES, save_figure

from .active import Step
from .scoring import frontier
from .trained import OURS, RULES

__all__ = ["draw_combinations", "draw_curves"]

SALT: dict[Any, Any] = {"svg.hashsalt": "topompi prediction", "svg.fonttype": "none"}


def draw_combinations(points: Mapping[tuple[str, ...], NDArray[np.float64]], path: Path) -> None:
    """Draw each model and pair of models by accuracy and precision of good, and the frontiers with and without ours.

    :param points: models -> accuracy, precision and recall.
    :param path: the SVG file.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    groups = {
        "classifiers": [one for one in points if not {OURS, RULES} & set(one)],
        "with the rules": [one for one in points if RULES in one and OURS not in one],
        "with our model": [one for one in points if OURS in one],
    }
    for colour, (name, members) in zip(SERIES, groups.items(), strict=False):
        for size, marker, many in ((1, "o", "alone"), (2, "x", "both must say good")):
            at = np.array([points[one][:2] for one in members if len(one) == size])
            axes.scatter(at[:, 0], at[:, 1], color=colour, marker=marker, s=34, label=f"{name}, {many}", zorder=3)
    for members in ([*groups["classifiers"], *groups["with the rules"]], list(points)):
        best = frontier([points[one][:2] for one in members])
        on = [one for one, is_best in zip(members, best, strict=True) if is_best]
        on.sort(key=lambda one: float(points[one][0]))
        axes.plot(*np.array([points[one][:2] for one in on]).T, color=OTHERS, linewidth=1, zorder=1)
        for one in on:
            place = tuple(points[one][:2])
            axes.annotate(" + ".join(one), place, (0, 6), textcoords="offset points", fontsize=9, ha="center")
    axes.set(xlabel="accuracy on unseen rows", ylabel="precision of good")
    axes.margins(0.12, 0.12)
    axes.grid(color="#dddddd", linewidth=0.5)
    figure.legend(loc="outside right upper", fontsize=9)
    with rc_context(SALT):
        save_figure(figure, path)


def draw_curves(found: Mapping[str, Mapping[str, Sequence[Sequence[Step]]]], path: Path) -> None:
    """Draw the share of right classes among unmeasured cells over the number of measured ones, a panel per matrix.

    :param found: matrix -> policy -> curves of the draws.
    :param path: the SVG file.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    panels = figure.subplots(1, len(found), sharey=True)
    for axes, (name, policies) in zip(panels, found.items(), strict=True):
        for colour, (policy, draws) in zip(SERIES, policies.items(), strict=False):
            grid = np.arange(draws[0][0].cells, min(draw[-1].cells for draw in draws) + 1)
            right, expected = np.array(
                [[np.interp(grid, *np.array(draw).T[[0, of]]) for draw in draws] for of in (1, 2)]
            )
            axes.fill_between(grid, right.min(axis=0), right.max(axis=0), color=colour, alpha=0.15, linewidth=0)
            axes.plot(grid, np.median(right, axis=0), color=colour, label=policy)
            axes.plot(grid, np.median(expected, axis=0), color=colour, linestyle=":", label=f"{policy}, as expected")
        axes.set(title=name, xlabel="measured cells", ylim=(0, 1.02))
        axes.grid(color="#dddddd", linewidth=0.5)
    panels[0].set_ylabel("classes right, other cells")
    panels[0].legend(fontsize=9, loc="lower right")
    with rc_context(SALT):
        save_figure(figure, path)
