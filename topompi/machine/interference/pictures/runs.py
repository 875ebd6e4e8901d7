"""A picture of jobs side by side: their runs, and the busiest link that they share, over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ....inputs.figures import OTHERS, SERIES, save_figure, span_name
from ....netsim import Program
from ....views.picture.shared import job_colours
from ..network import SharedNetwork
from ..replay import ReplayTimes
from ..timeline import busiest_shared_link, link_rates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

STEPS, LOOKS = 200, 10  # steps of the lower panel, and moments of each whose mean it shows


def draw(network: SharedNetwork, programs: Sequence[Program], outcome: ReplayTimes, path: Path, title: str) -> None:
    """Draw each job's runs beside the others over time, with its time alone, and who sends on the busiest shared link.

    :param network: the network.
    :param programs: program of each job.
    :param outcome: outcome of ``replay`` for them.
    :param path: path of the file, which ends in .svg or .png.
    :param title: title of the picture.
    """
    from matplotlib.figure import Figure

    link = busiest_shared_link(network, programs)
    end = max(float(one.begin + seconds) for one, seconds in zip(outcome.runs, outcome.sharing, strict=True))
    figure = Figure(figsize=(9, 1.6 + 0.3 * len(programs) + (2.2 if link is not None else 0)), layout="constrained")
    rows = [0.3 * len(programs) + 0.4] + ([2.0] if link is not None else [])
    panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False, height_ratios=rows)[:, 0]
    colours = [*job_colours(min(len(programs), len(SERIES))), *[OTHERS] * (len(programs) - len(SERIES))]
    _runs(panels[0], outcome, colours, end)
    panels[0].set_title(title, loc="left", fontsize=10)
    if link is not None:
        times = np.linspace(0, end, STEPS * LOOKS + 1)[1:]
        rates = link_rates(network, programs, link, times.tolist())
        share = rates.reshape(len(programs), STEPS, LOOKS).mean(axis=2) / network.tables.rate[link]
        panels[1].stackplot(times[LOOKS - 1 :: LOOKS] * 1e3, share, colors=colours, step="pre", linewidth=0)
        panels[1].set(ylim=(0, 1.02), ylabel="share of its rate")
        panels[1].yaxis.set_major_formatter(lambda part, _: f"{part:.0%}")
        panels[1].set_title(f"the busiest shared link, {network.link_name(link)}", loc="left", fontsize=9)
    panels[-1].set(xlabel="milliseconds", xlim=(0, end * 1e3))
    save_figure(figure, path)


def _runs(axes: Axes, outcome: ReplayTimes, colours: Sequence[str], end: float) -> None:
    """A row per job: a bar per run, a mark where the first run would have ended alone, and the two times in words.

    :param axes: axes of matplotlib, with milliseconds across.
    :param outcome: the outcome.
    :param colours: colour of each job.
    :param end: time in seconds at which all jobs have run once.
    """
    names = outcome.names
    for job, runs in enumerate(outcome.runs):
        starts = np.append(runs.begin, runs.ends)
        starts = starts[starts < end * (1 - 1e-9)]
        lengths = np.minimum(np.append(runs.ends, end)[: len(starts)], end) - starts
        faint = [1.0 if run == 0 else 0.35 for run in range(len(starts))]
        bars = axes.barh([job] * len(starts), lengths * 1e3, left=starts * 1e3, height=0.7, color=colours[job])
        for bar, alpha in zip(bars, faint, strict=True):
            bar.set(alpha=alpha, edgecolor="white", linewidth=0.8)
        alone = (runs.begin + outcome.alone[job]) * 1e3
        axes.plot([alone, alone], [job - 0.45, job + 0.45], color="black", linewidth=1.5)
    spans = zip(outcome.alone.tolist(), outcome.sharing.tolist(), strict=True)
    texts = [
        f"{name}: {span_name(one)} alone, {span_name(both)}" for name, (one, both) in zip(names, spans, strict=True)
    ]
    axes.set_yticks(range(len(names)), texts, fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
