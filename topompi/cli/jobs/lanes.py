"""``topompi jobs lanes``: virtual lanes that keep jobs apart on shared links, and OpenSM's files for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...views.cluster import cluster_of
from ..inputs import (
    AsJson,
    ClusterName,
    Lfts,
    Settings,
    Topology,
    TopologyOptions,
    grouped,
    list_findings,
    reading,
    routes_of,
)
from .choosing import Choosing
from .model import LinkSettings
from .replay import PLACEMENTS

__all__ = ["lanes_command"]


@grouped
def lanes_command(
    jobs: Annotated[list[str], typer.Argument(help="[NAME=]TRACE or KERNEL, with @KEY=VALUE,..., as for replay.")],
    *,
    source: Topology,
    lfts: Lfts = None,
    placement: Annotated[str, typer.Option("--place", "-p", help=f"{PLACEMENTS}.")] = "NF",
    cluster_name: ClusterName = None,
    choosing: Choosing,
    settings: Settings = None,
    how: TopologyOptions,
    as_json: AsJson = False,
    plot: Annotated[Path | None, typer.Option("--draw", help="FILE.svg or .png: delays, waits and the sweep.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write OpenSM's options to FILE, and files beside it.")
    ] = None,
) -> None:
    """Choose a virtual lane of each job and the lanes' weights; show what all jobs lose on one lane and on the lanes.

    Jobs are simulated with packets, alone and beside each other. The buffer of a port is divided among its lanes. -o
    writes the options of OpenSM, a QoS policy, partitions, and the options that undo the lanes. Settings: buffer (bytes
    of each port), tries (choices that a search simulates), moderate and extreme (least usage of these classes), rate,
    latency, overhead, eager (as for topompi jobs replay).
    """
    from .laneanswer import Ask, answer  # imported here, because other commands need no simulator

    ask = Ask(tuple(jobs), placement, choosing, LinkSettings.of(settings), plot, output, cluster_name)
    with reading(source, lfts, how) as (discovery, report):
        routes = routes_of(discovery, how.rails)
        machine = cluster_of(routes)
    list_findings(report)
    answer(ask, routes.fabric, machine, partial=how.partial, as_json=as_json)
