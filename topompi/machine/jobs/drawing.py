"""Pictures of outcomes: nodes over time, use of the machine, queue, and waits under several policies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...inputs import figures
from ...inputs.figures import OTHERS, SERIES, bare_name, cut_middle, save_figure, span_name
from .errors import JobsError
from .metrics import queue_length, utilisation, wait_by_size
from .metrics.timeline import Steps
from .outcome import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["check_plot", "draw", "draw_comparison"]

DAY, HOUR = 86400, 3600
MOST_STEPS, SPANS = 1_500, 600  # greatest number of steps drawn one by one; else number of averaged spans
ABOVE: dict[str, Any] = {
    "rotation": 90,
    "ha": "center",
    "va": "bottom",
    "fontsize": 7,
    "color": "#555555",
}  # a name above its box


def check_plot(path: Path) -> None:
    """Check, before any long work, that the file name's suffix is supported and matplotlib is installed.

    :raises JobsError: if the suffix is neither .svg nor .png, or matplotlib is missing.
    """
    figures.check_plot(path, "plot", JobsError)


def draw(outcome: Outcome, path: Path) -> None:
    """Draw which job holds each node, if the allocator named nodes, with the use of nodes and the length of the queue.

    The picture spans the time from the first arrival to the last end. If use or queue change more often than pixels can
    show, the mean and the range of each span of time are drawn.
    """
    rows = 3 if outcome.has_nodes else 2
    figure = _figure(path, (10, 3 + 1.6 * rows))
    panels = figure.subplots(rows, 1, sharex=True, squeeze=False, height_ratios=[3, 1, 1][-rows:])[:, 0]
    origin = _first_arrival(outcome)
    last = int(outcome.end.max(initial=origin))
    unit, name = (DAY, "days") if last - origin >= 2 * DAY else (HOUR, "hours")
    if outcome.has_nodes:
        from .gantt import draw_nodes

        draw_nodes(panels[0], outcome, origin, unit)
    use = "share of nodes in use" if outcome.cluster.node_slots is None else "share of slots in use"
    for axes, steps, label in (
        (panels[-2], utilisation(outcome), use),
        (panels[-1], queue_length(outcome), "jobs waiting"),
    ):
        _steps(axes, steps, origin, unit)
        axes.set(ylim=(0, None), ylabel=label.replace(" in ", "\nin "))
    panels[-2].set_ylim(0, 1.02)
    panels[-2].yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    panels[-1].set(xlabel=f"{name} since the first arrival", xlim=(0, max(last - origin, 1) / unit))
    queue, allocator, speed = outcome.policy
    times = "as logged" if speed == "as-logged" else speed
    figure.suptitle(f"{_heading(outcome)}\nqueue {queue}, allocator {allocator}, run times {times}", fontsize=11)
    _save(figure, path)


def draw_comparison(outcomes: Mapping[str, Outcome], path: Path) -> None:
    """Draw the waits under several policies by size class: boxes from the first to the third quartile.

    Whiskers reach to the 5th and 95th percentile. The axis is linear up to a minute and logarithmic above, so that
    it has a 0. Policies after the sixth are grey, with their names above their boxes.
    """
    figure = _figure(path, (10, 5))
    axes = figure.subplots()
    waits = {name: wait_by_size(outcome) for name, outcome in outcomes.items()}
    classes = list(dict.fromkeys(one for of in waits.values() for one in of))
    classes.sort(key=lambda one: int(one.split("-")[0]))
    width = 0.8 / max(len(outcomes), 1)
    for at, (name, of) in enumerate(waits.items()):
        places = [place + (at + 0.5) * width - 0.4 for place, one in enumerate(classes) if one in of]
        data = [of[one] for one in classes if one in of]
        colour = SERIES[at] if at < len(SERIES) else OTHERS
        drawn = axes.boxplot(
            data, positions=places, widths=0.9 * width, whis=(5, 95), showfliers=False, patch_artist=True
        )
        for box in drawn["boxes"]:
            box.set(facecolor=colour, label=name if box is drawn["boxes"][0] and at < len(SERIES) else None)
        for line in drawn["medians"]:
            line.set(color="black", linewidth=1.5)
        if at >= len(SERIES):
            for place, top in zip(places, drawn["caps"][1::2], strict=True):
                axes.annotate(name, (place, top.get_ydata()[0]), (0, 3), textcoords="offset points", **ABOVE)
    longest = max((int(data.max()) for of in waits.values() for data in of.values()), default=0)
    _durations(axes, longest if len(outcomes) <= len(SERIES) else 10 * longest)  # with room for names above boxes
    axes.set_xlabel("nodes of a job")
    axes.set_xticks(range(len(classes)), classes)
    axes.set_xlim(-0.5, len(classes) - 0.5)
    if outcomes:
        figure.suptitle(f"Waits by size of job: {_heading(next(iter(outcomes.values())))}", fontsize=11)
    figure.legend(loc="outside lower center", ncols=len(SERIES), fontsize=9, frameon=False)
    _save(figure, path)


def _heading(outcome: Outcome) -> str:
    """Return the log, its number of jobs and the cluster in words for a title."""
    log, jobs, nodes = (
        cut_middle(bare_name(outcome.workload.name), 50),
        len(outcome.workload),
        outcome.cluster.num_nodes,
    )
    cluster = cut_middle(bare_name(outcome.cluster.name).removeprefix(f"{nodes} nodes, "), 50)
    return f"{log}, {jobs:,} job{'s' * (jobs != 1)} on {nodes:,} node{'s' * (nodes != 1)}, {cluster}"


def _first_arrival(outcome: Outcome) -> int:
    submit = outcome.workload.submit
    return int(submit[0]) if len(submit) else 0


def _steps(axes: Axes, steps: Steps, origin: int, unit: int) -> None:
    """Draw a step function, or, if it has many steps, its mean and its range in each of many equal spans of time."""
    times, values = (steps.times - origin) / unit, steps.values
    if len(times) <= MOST_STEPS:
        axes.step(times, values, where="post", color=SERIES[0], linewidth=1)
        return
    edges = np.linspace(times[0], times[-1], SPANS + 1)
    whole = np.append(0, np.cumsum(values[:-1] * np.diff(times)))
    mean = np.diff(np.interp(edges, times, whole)) / np.diff(edges)
    # The values at the edges of a span count, too, because no step may begin within it.
    at = np.searchsorted(times, edges, side="right") - 1
    cuts = np.stack((at[:-1], at[1:] + 1), axis=1)
    low, high = (np.array([of(values[a:b]) for a, b in cuts.tolist()]) for of in (np.min, np.max))
    middle = (edges[:-1] + edges[1:]) / 2
    axes.fill_between(middle, low, high, color=SERIES[0], alpha=0.25, linewidth=0, label="range", clip_on=False)
    axes.plot(middle, mean, color=SERIES[0], linewidth=1, label="mean", clip_on=False)
    axes.set_title(
        f"mean and range of every {span_name(unit * (edges[1] - edges[0]))}", loc="left", fontsize=8, color="#555555"
    )


def _durations(axes: Axes, longest: int) -> None:
    """Give the axis of waits a 0, and marks at minutes, hours and days.

    :param axes: axes of matplotlib.
    :param longest: seconds at the axis's end.
    """
    marks = {"0": 0, "1 min": 60, "10 min": 600, "1 h": 3600, "10 h": 36_000, "4 days": 4 * DAY, "40 days": 40 * DAY}
    axes.set_yscale("symlog", linthresh=60, linscale=0.5)
    axes.set_yticks(list(marks.values()), list(marks), minor=False)
    axes.yaxis.minorticks_off()
    axes.set(ylabel="wait", ylim=(-3, max(60, longest) * 1.1))
    axes.grid(axis="y", alpha=0.3)


def _figure(path: Path, size: tuple[float, float]) -> Figure:
    check_plot(path)
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def _save(figure: Figure, path: Path) -> None:
    from matplotlib import rc_context

    with rc_context(
        {"svg.hashsalt": "topompi jobs", "svg.fonttype": "none"}
    ):  # without a fixed salt, every drawing of the same data has other identifiers
        save_figure(figure, path)
