"""``topompi jobs replay``: jobs side by side on a simulated network, and what they lose to each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...errors import SourceError
from ...interference.placement import PLACEMENTS
from ...views.cluster import read_routed
from ..inputs import AsJson, ClusterName, Reading, grouped, list_findings, reporting
from ..quantities import COUNT
from .allocate import ClusterSpec, Lfts
from .model import Model

__all__ = ["PLACEMENTS", "replay_command"]


@grouped
def replay_command(
    jobs: Annotated[list[str], typer.Argument(help="[NAME=]TRACE or KERNEL, with @KEY=VALUE,...: see the page.")],
    *,
    cluster: ClusterSpec,
    lfts: Lfts = None,
    placement: Annotated[
        list[str] | None, typer.Option("--placement", "-p", help=f"{PLACEMENTS}; several are compared with the first.")
    ] = None,
    draws: Annotated[int, COUNT("--draws", help="Draws of RF:SEED, with following seeds.")] = 1,
    repeats: Annotated[
        int, COUNT("--repeats", "-r", help="Runs of each job; 0: again until all have run once.", min=0)
    ] = 0,
    arriving: Annotated[
        str | None, typer.Option("--arriving", help="A job: is the second placement worth waiting for?")
    ] = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="Which job delays which, two by two.")] = False,
    links: Annotated[bool, typer.Option("--links", help="Which links several jobs use.")] = False,
    cluster_name: ClusterName = None,
    model: Model,
    how: Reading,
    as_json: AsJson = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="FILE.svg or .png: runs and the busiest shared link over time.")
    ] = None,
    drawing: Annotated[
        Path | None,
        typer.Option("--draw", help="FILE.svg, .png or .html: the jobs on the fabric, and the links that they share."),
    ] = None,
) -> None:
    """Simulate jobs alone on a crossbar, alone on the fabric, and side by side; show what they lose to each other.

    A job is a trace (SimGrid's time-independent trace, GOAL, a profile, a communication graph) or a kernel. A job that
    ends begins again until all have run once; only first runs are timed.
    """
    from .sidebyside import Question, answer  # imported here, because other commands need no simulator

    wanted = tuple(placement or ["NF"])
    question = Question(
        tuple(jobs), wanted, draws, repeats, arriving,
        pairs=pairs, links=links, plot=plot, draw=drawing, cluster_name=cluster_name,
    )  # fmt: skip
    with reporting(SourceError, f"reading {cluster}", partial=how.partial, how=how) as report:
        if cluster.startswith("leaves="):
            raise SourceError(f"--cluster: expecting a topology source with routes, got leaves and pods: {cluster}")
        machine, routes = read_routed(cluster, lfts, report, how.rails)
    list_findings(report)
    answer(question, machine, routes, model, partial=how.partial, as_json=as_json)
