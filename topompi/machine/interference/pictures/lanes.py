"""A picture of jobs on lanes: what each job loses, which lanes wait for room, and T_total of each ratio of weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....inputs.figures import OTHERS, SERIES, cut_middle, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

MOST = 12  # ratios of weights that have room


def draw(facts: Mapping[str, Any], path: Path) -> None:
    """Draw the jobs' delays on one lane and on the lanes, the links on which each waits, and the sweep if there is one.

    :param facts: figures of ``topompi jobs lanes``, as its JSON has them.
    :param path: file to write, .svg or .png.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    panels = 3 if "sweep" in facts else 2
    figure = Figure(figsize=(3.6 * panels + 0.8, 3.6), layout="constrained")
    axes = figure.subplots(1, panels)
    colours = _colours(facts)
    _delays(axes[0], facts, colours)
    _waits(axes[1], facts, colours)
    if panels == 3:
        _sweep(axes[2], facts, colours)
    figure.suptitle(f"{facts['cluster']}, placement {facts['placement']}", fontsize=10)
    with rc_context({"svg.hashsalt": "topompi lanes", "svg.fonttype": "none"}):
        save_figure(figure, path)


def _colours(facts: Mapping[str, Any]) -> list[str]:
    """The colour of each job."""
    return [SERIES[at] if at < len(SERIES) else OTHERS for at in range(len(facts["jobs"]))]


def _delays(axes: Axes, facts: Mapping[str, Any], colours: list[str]) -> None:
    jobs = facts["jobs"]
    for key, at, shades in (("one_lane", -0.2, [OTHERS] * len(jobs)), ("lanes", 0.2, colours)):
        delays = [1e3 * (job[key] - job["alone"]) for job in jobs]
        label = "one lane" if key == "one_lane" else None
        axes.bar([place + at for place in range(len(jobs))], delays, 0.38, color=shades, label=label)
    axes.axhline(0, color="black", lw=0.8)
    axes.set_xticks(range(len(jobs)), [f"{cut_middle(job['job'], 12)}\nlane {job['lane']}" for job in jobs])
    axes.set(ylabel="milliseconds lost to the others")
    axes.margins(y=0.2)  # room for the legend
    axes.legend(frameon=False, fontsize=8)


def _waits(axes: Axes, facts: Mapping[str, Any], colours: list[str]) -> None:
    number = {job["job"]: at for at, job in enumerate(facts["jobs"])}
    rows = [("one lane", facts["one_lane"])] + [(f"lane {row['lane']}", row) for row in facts["lanes"]]
    for at, (_, row) in enumerate(rows):
        colour = colours[number[row["jobs"][0]]] if len(row["jobs"]) == 1 else OTHERS
        axes.bar([at], [row["blocked"]], 0.6, color=colour)
    names = [f"{name}\n{cut_middle(', '.join(row['jobs']), 14)}" for name, row in rows]
    axes.set_xticks(range(len(rows)), names)
    axes.set(ylabel="links on which a packet waits for room")


def _sweep(axes: Axes, facts: Mapping[str, Any], colours: list[str]) -> None:
    """The part of each job in T_total for each ratio, from the least to the largest total, with that of one lane."""
    rows = facts["sweep"][:MOST]
    names = [":".join(map(str, row["weights"])) for row in rows]
    above, below = [0.0] * len(rows), [0.0] * len(rows)
    for job, colour in enumerate(colours):
        parts = [1e3 * row["contention"][job] for row in rows]
        bottoms = [above[at] if part >= 0 else below[at] for at, part in enumerate(parts)]
        axes.bar(range(len(rows)), parts, 0.7, bottom=bottoms, color=colour, label=facts["jobs"][job]["job"])
        for at, part in enumerate(parts):
            (above if part >= 0 else below)[at] += part
    axes.axhline(1e3 * facts["total"]["one_lane"], color="black", lw=0.8, ls="--", label="one lane")
    axes.axhline(0, color="black", lw=0.8)
    axes.set_xticks(range(len(rows)), names)
    axes.set(xlabel="packets per turn", ylabel="milliseconds that all jobs lose")
    axes.legend(frameon=False, fontsize=8)
