"""Picture of the usage of each level by several jobs, with the limits between the classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ....inputs.figures import OTHERS, SERIES, cut_middle, save_figure
from ..characterisation import Character

__all__ = ["draw"]

LINEAR = 0.01  # usage up to which the axis is linear, because a usage may be 0


def draw(jobs: Sequence[tuple[str, Character]], title: str, path: Path) -> None:
    """Draw the usage of each level by each job as bars, and that of the level's busiest link as a dot.

    :param jobs: name and loads of each job, one or more.
    :param title: title of the picture.
    :param path: file to write, .svg or .png.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(6.0, 2.4 + 1.1 * len(jobs)), 4), layout="constrained")
    axes = figure.subplots()
    levels = max(len(character.loads) for _, character in jobs)
    width = 0.8 / levels
    for level in range(levels):
        loads = [(at, one.loads[level]) for at, (_, one) in enumerate(jobs) if level < len(one.loads)]
        places = [at + (level + 0.5) * width - 0.4 for at, _ in loads]
        colour = SERIES[level - 1] if 0 < level <= len(SERIES) else OTHERS
        name = f"level {level}" if level else "level 0: hosts' own links"
        axes.bar(places, [one.usage or 0.0 for _, one in loads], 0.9 * width, color=colour, label=name)
        busy = [one.usage or 0.0 if one.busiest_link is None else one.busiest_link for _, one in loads]
        axes.plot(places, busy, "o", color="black", ms=4, label=None if level < levels - 1 else "busiest link")
    thresholds = jobs[0][1].thresholds
    for name, limit in (("moderate", thresholds.moderate), ("extreme", thresholds.extreme)):
        axes.axhline(limit, color="black", lw=0.8, ls="--")
        axes.annotate(name, (1, limit), xycoords=("axes fraction", "data"), xytext=(4, 0), textcoords="offset points")
    axes.set_yscale("symlog", linthresh=LINEAR)
    axes.yaxis.set_major_formatter(lambda usage, _: f"{100 * usage:g} %")
    axes.set(ylim=(0, 1.6 * axes.dataLim.ymax), ylabel="usage of a level's bandwidth", title=title)
    axes.set_xticks(range(len(jobs)), [f"{cut_middle(name, 18)}\n{one.name or 'no times'}" for name, one in jobs])
    figure.legend(loc="outside lower center", ncols=levels + 1, frameon=False)
    with rc_context({"svg.hashsalt": "topompi interference", "svg.fonttype": "none"}):
        save_figure(figure, path)
