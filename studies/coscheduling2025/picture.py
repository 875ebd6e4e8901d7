"""The picture of docs/howto/half-nodes.md: ``python -m studies.coscheduling2025.picture HEAT LOG FILE.svg``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from topompi.inputs.figures import SERIES
from topompi.machine.colocation.scheduling.allocators import Halves, Matched
from topompi.machine.colocation.scheduling.halves import on_halves
from topompi.machine.colocation.scheduling.speed import ColocatedSpeed
from topompi.machine.colocation.scheduling.table import rate_table
from topompi.machine.colocation.speedups.files import read_speedups
from topompi.machine.jobs import Cluster, Outcome, read_workload, simulate
from topompi.machine.jobs.allocation import Allocator

from .measures import job_speedups

__all__ = ["draw", "main"]


def draw(axes: Any, outcome: Outcome, programs: tuple[str, ...], title: str) -> None:
    """Draw each job on its halves over time, with its program and mean rate.

    :param axes: axes of matplotlib.
    :param outcome: an outcome on a cluster with two slots per node.
    :param programs: names of the programs, in the order of their colours.
    :param title: title of the axes.
    """
    speedup = job_speedups(outcome)
    for job in range(len(outcome.workload)):
        at = slice(outcome.offset[job], outcome.offset[job + 1])
        slots = None if outcome.slots is None else outcome.slots[at]
        halves = np.sort(outcome.cluster.slots_of(outcome.nodes[at], slots))
        program = str(outcome.workload.columns["program"][job])
        start, end = outcome.start[job] / 3600, outcome.end[job] / 3600
        colour = SERIES[programs.index(program)]
        axes.barh(halves, end - start, left=start, height=1, align="edge", color=colour, alpha=0.75)
        axes.plot([start, start], [halves[0], halves[-1] + 1], color="white", linewidth=1.5)
        axes.text(start + 0.05, halves[-1] + 0.42, f"{program} {speedup[job]:.2f}", fontsize=7, va="center")
    axes.set(title=title, xlim=(0, 5.1), ylim=(0, outcome.cluster.num_slots), xlabel="hours")
    axes.set_yticks(range(0, outcome.cluster.num_slots + 1, 2), [str(n) for n in range(outcome.cluster.num_nodes + 1)])
    axes.grid(axis="y", color="#888888", linewidth=0.5)


def main(words: list[str]) -> int:
    """Draw the jobs of a log on whole nodes, on halves beside any neighbour, and matched.

    :param words: file of speed-ups, log, and picture.
    :returns: exit code 0.
    """
    from matplotlib.figure import Figure

    table, log = rate_table(read_speedups(words[0])), read_workload(words[1])
    cluster = Cluster.regular(log.machine_nodes or 6, 3).with_slots(2)
    jobs = on_halves(log, table.programs, stretch=1 / table.slowest)
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    policies: dict[str, str | Allocator] = {"whole nodes": "first", "halves": Halves(), "matched": Matched(table)}
    for axes, (title, allocator) in zip(panels, policies.items(), strict=True):
        outcome = simulate(jobs, cluster, "easy", allocator, ColocatedSpeed(table))
        draw(axes, outcome, table.programs, f"{title}: {outcome.end.max() / 3600:.1f} h")
    panels[0].set_ylabel("nodes, two halves each")
    figure.savefig(Path(words[2]), metadata={"Date": None} if words[2].endswith(".svg") else None)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
