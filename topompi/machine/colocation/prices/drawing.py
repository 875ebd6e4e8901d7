"""A picture of the prices over a workload: their distribution by rule, and victims and aggressors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ....inputs.figures import OTHERS, SERIES, check_plot, save_figure
from ..errors import ColocationError
from .worth import Worth

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_worth"]


def draw_worth(found: Worth, names: Sequence[str], path: Path) -> None:
    """Draw the share of jobs that pay up to a price by each rule, and what each program suffers and costs others.

    :param found: the prices.
    :param names: names of the programs, by row.
    :param path: FILE.svg or FILE.png.
    :raises ColocationError: if the suffix is another one, or matplotlib is missing.
    """
    check_plot(path, "draw", ColocationError)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _distribution(left, found)
    _programs(right, found.programs(names))
    save_figure(figure, path)


def _distribution(axes: Axes, found: Worth) -> None:
    for at, rule in enumerate(found.prices):
        shares = np.sort(found.relative(rule))
        up_to = np.arange(1, len(shares) + 1) / max(len(shares), 1)
        colour = SERIES[at] if at < len(SERIES) else OTHERS
        axes.step(
            shares,
            up_to,
            where="post",
            label=rule,
            color=colour,
            linewidth=1.5,
            linestyle=":" if rule == "oracle" else "-",
        )
    axes.axvline(1, color="#555555", linewidth=0.6)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set(xlabel="price, as a share of the price alone", ylabel="jobs that pay at most this", ylim=(0, 1.01))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=9)


def _programs(axes: Axes, rows: Sequence[dict[str, Any]]) -> None:
    suffers, costs = ([100 * row[word] for row in rows] for word in ("suffers", "costs"))
    axes.scatter(costs, suffers, color=SERIES[0], s=18)
    for row, x, y in zip(rows, costs, suffers, strict=True):
        axes.annotate(row["program"], (x, y), (4, 3), textcoords="offset points", fontsize=7.5, parse_math=False)
    axes.set(xlabel="loss of others beside the program, % (aggressors: right)", xlim=(0, None), ylim=(0, None))
    axes.set(ylabel="loss of the program beside others, % (victims: top)")
    axes.grid(alpha=0.3)
