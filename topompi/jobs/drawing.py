"""Pictures of outcomes, in colours that colour-blind people can tell apart: nodes over time, use, queue, waits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..inputs.figures import save_figure
from .errors import JobsError
from .metrics import queue_length, utilisation, wait_by_size
from .outcome import Outcome

__all__ = ["SUFFIXES", "check_plot", "draw", "draw_comparison"]

SUFFIXES = (".svg", ".png")
DAY = 86400
BARS = 20_000  # rectangles; limits a Gantt chart, which shows only the first jobs of a larger outcome
# M. Okabe and K. Ito, Color Universal Design, 2008.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000")


def check_plot(path: Path) -> None:
    """Check, before any long work, that the file name's suffix is supported and matplotlib is installed.

    :raises JobsError: if the suffix is neither .svg nor .png, or matplotlib is missing.
    """
    if path.suffix not in SUFFIXES:
        raise JobsError(f"plot: expecting a file name in {' or '.join(SUFFIXES)}, got {str(path)!r}")
    try:
        import matplotlib  # noqa: F401 -- only the presence is checked
    except ImportError as error:
        raise JobsError("plot: expecting matplotlib; pip install 'topompi[plot]' brings it") from error


def draw(outcome: Outcome, path: Path) -> None:
    """Draw a Gantt chart of nodes, if the allocator named them, with the use of nodes and the length of the queue."""
    rows = 3 if outcome.has_nodes else 2
    figure = _figure(path, (10, 3 + 1.6 * rows))
    panels = figure.subplots(rows, 1, sharex=True, squeeze=False, height_ratios=[3, 1, 1][-rows:])[:, 0]
    if outcome.has_nodes:
        _gantt(panels[0], outcome)
    origin = _first_arrival(outcome)
    for axes, steps, label in (
        (panels[-2], utilisation(outcome), "nodes in use" if outcome.cluster.node_slots is None else "slots in use"),
        (panels[-1], queue_length(outcome), "jobs waiting"),
    ):
        axes.step((steps.times - origin) / DAY, steps.values, where="post", color=COLOURS[0], linewidth=0.7)
        axes.set(ylabel=label, ylim=(0, None))
    panels[-2].set_ylim(0, 1.02)
    panels[-1].set_xlabel("days since the first arrival")
    figure.suptitle(f"{', '.join(outcome.policy)} on {outcome.cluster.name}", fontsize=9)
    _save(figure, path)


def draw_comparison(outcomes: Mapping[str, Outcome], path: Path) -> None:
    """Draw the waits under several policies by size class: boxes from the first to the third quartile, on a log axis.

    Whiskers reach to the 5th and 95th percentile; a wait below one second is drawn as one second.
    """
    figure = _figure(path, (10, 4.5))
    axes = figure.subplots()
    waits = {name: wait_by_size(outcome) for name, outcome in outcomes.items()}
    classes = list(dict.fromkeys(one for of in waits.values() for one in of))
    classes.sort(key=lambda one: int(one.split("-")[0]))
    width = 0.8 / max(len(outcomes), 1)
    for at, (name, of) in enumerate(waits.items()):
        places = [place + (at + 0.5) * width - 0.4 for place, one in enumerate(classes) if one in of]
        data = [np.maximum(of[one], 1) for one in classes if one in of]
        colour = COLOURS[at % len(COLOURS)]
        drawn = axes.boxplot(
            data, positions=places, widths=0.9 * width, whis=(5, 95), showfliers=False, patch_artist=True
        )
        for box in drawn["boxes"]:
            box.set(facecolor=colour, label=name if box is drawn["boxes"][0] else None)
        for line in drawn["medians"]:
            line.set(color="black")
    axes.set(yscale="log", ylabel="wait in seconds", xlabel="nodes of a job")
    axes.set_xticks(range(len(classes)), classes)
    axes.legend(fontsize=8)
    _save(figure, path)


def _first_arrival(outcome: Outcome) -> int:
    submit = outcome.workload.submit
    return int(submit[0]) if len(submit) else 0


def _gantt(axes: Any, outcome: Outcome) -> None:
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LogNorm

    origin = _first_arrival(outcome)
    corners, sizes = [], []
    for job in outcome.ran.tolist():
        nodes = outcome.resources_of(job)
        cuts = np.flatnonzero(np.diff(nodes) > 1)
        left, right = (outcome.start[job] - origin) / DAY, (outcome.end[job] - origin) / DAY
        for low, high in zip(nodes[np.append(0, cuts + 1)], nodes[np.append(cuts, len(nodes) - 1)] + 1, strict=True):
            corners.append([(left, low), (right, low), (right, high), (left, high)])
            sizes.append(int(outcome.workload.nodes[job]))
        if len(corners) > BARS:
            break
    most = max(2, outcome.cluster.num_nodes)
    bars = PolyCollection(corners, array=np.array(sizes), cmap="cividis_r", norm=LogNorm(1, most), linewidths=0)
    axes.add_collection(bars)
    axes.autoscale_view()
    axes.set(ylabel="node" if outcome.slots is None else "slot", ylim=(0, outcome.num_resources))
    pods = outcome.cluster.leaf_start[outcome.cluster.pod_start[1:-1]]
    for pod in pods if outcome.slots is None else outcome.cluster.slot_start[pods]:
        axes.axhline(pod, color="black", linewidth=0.5)
    axes.figure.colorbar(bars, ax=axes, label="nodes of a job", location="top", aspect=60)


def _figure(path: Path, size: tuple[float, float]) -> Any:
    check_plot(path)
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def _save(figure: Any, path: Path) -> None:
    from matplotlib import rc_context

    with rc_context(
        {"svg.hashsalt": "topompi jobs", "svg.fonttype": "none"}
    ):  # without a fixed salt, every drawing of the same data has other identifiers
        save_figure(figure, path)
