"""``topompi jobs replay``: jobs side by side on a simulated network, and what they lose to each other."""

from __future__ import annotations

from typing import Annotated

import typer

from ...errors import SourceError
from ...machine.interference.placement import PLACEMENTS
from ...views.cluster import read_routed
from ..inputs import (
    AsJson,
    ClusterName,
    Lfts,
    Settings,
    Topology,
    TopologyOptions,
    drawings,
    grouped,
    list_findings,
    reporting,
)
from ..quantities import COUNT
from .model import MODELS, LinkSettings

__all__ = ["PLACEMENTS", "replay_command"]

SHOWN = ("pairs", "links")
_SHOW = "Also which job delays which, two by two (pairs), which links several jobs use (links), or both."
_DRAW = "FILE.svg, .png or .html: the jobs on the fabric; time=FILE.svg or .png: runs and the busiest shared link."


@grouped
def replay_command(
    jobs: Annotated[list[str], typer.Argument(help="[NAME=]TRACE or KERNEL, with @KEY=VALUE,...: see the page.")],
    *,
    source: Topology,
    lfts: Lfts = None,
    placement: Annotated[
        list[str] | None, typer.Option("--place", "-p", help=f"{PLACEMENTS}; several are compared with the first.")
    ] = None,
    draws: Annotated[int, COUNT("--draws", help="Draws of RF:SEED, with following seeds.")] = 1,
    repeats: Annotated[
        int, COUNT("--repeats", "-r", help="Runs of each job; 0: again until all have run once.", min=0)
    ] = 0,
    arriving: Annotated[
        str | None, typer.Option("--arriving", help="A job: is the second placement worth waiting for?")
    ] = None,
    show: Annotated[str, typer.Option("--show", metavar="pairs,links", help=_SHOW)] = "",
    cluster_name: ClusterName = None,
    network: Annotated[str, typer.Option("--network", help=f"Model of the network: {' or '.join(MODELS)}.")] = "flow",
    lanes: Annotated[int, COUNT("--lanes", help="Virtual lanes (packets); a job's is @lane=.")] = 1,
    settings: Settings = None,
    how: TopologyOptions,
    as_json: AsJson = False,
    draw: Annotated[list[str] | None, typer.Option("--draw", metavar="FILE|time=FILE", help=_DRAW)] = None,
) -> None:
    """Simulate jobs alone on a crossbar, alone on the fabric, and side by side; show what they lose to each other.

    A job is a trace (SimGrid's time-independent trace, GOAL, a profile, a communication graph) or a kernel. A job that
    ends begins again until all have run once; only first runs are timed. Settings: rate (GB/s) and latency (seconds) of
    links for which the source has none, overhead (seconds of a processor for each message that it sends), eager (bytes
    up to which a send does not wait); for packets, buffer (bytes of each port, all lanes) and hop-lanes (lanes of each
    service lane, by hop, for dragonflies and tori).
    """
    from ...machine.interference.pictures import check_plot
    from ...views.picture.writers import check_file
    from .sidebyside import JobsCompared, answer  # imported here, because other commands need no simulator

    wanted = tuple(placement or ["NF"])
    question = JobsCompared(
        tuple(jobs), wanted, draws, repeats, arriving,
        shown=_shown(show), pictures=drawings(draw, {"fabric": check_file, "time": check_plot}),
        network=network, lanes=lanes, cluster_name=cluster_name,
    )  # fmt: skip
    with reporting(SourceError, f"reading {source}", partial=how.partial, how=how) as report:
        if source.startswith("leaves="):
            raise SourceError(f"--topology: expecting a source with routes, got leaves and pods: {source}")
        machine, routes = read_routed(source, lfts, report, how.rails)
    list_findings(report)
    answer(question, machine, routes, LinkSettings.of(settings), partial=how.partial, as_json=as_json)


def _shown(text: str) -> frozenset[str]:
    words = frozenset(filter(None, text.split(",")))
    if not words <= {*SHOWN}:
        raise SourceError(f"--show: expecting words of {', '.join(SHOWN)}, got {text!r:.60}")
    return words
