"""``topompi jobs characterise``: the load that each job brings to the levels of a fabric, and its class."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table

from ...errors import SourceError
from ...inputs.figures import bare_name
from ...inputs.hostlist import compress
from ...machine.interference.placement import PLACEMENTS
from ...network import Tables
from ...topology import Routes
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
from ..terminal import Limit, console
from .model import LinkSettings

if TYPE_CHECKING:
    from ...machine.interference import Character, JobSpec, Levels, Thresholds

__all__ = ["Jobs", "characterise_command"]

Jobs = Annotated[
    list[str], typer.Argument(help="[NAME=]TRACE or KERNEL, with @KEY=VALUE,...: ft@ranks=256; see the page.")
]


_BY = "How jobs that may share links are counted: by hosts, or by the routes of all other hosts (routes)."


@dataclass(frozen=True)
class Setting:
    """Options that say where jobs run, and how their load is judged.

    :param placement: placement of all jobs.
    :param cluster_name: name of the cluster whose jobs are taken from the placement's file; None if it has one.
    :param by: ``hosts`` or ``routes``, by which jobs that may share links are counted.
    """

    placement: Annotated[str, typer.Option("--place", "-p", help=PLACEMENTS)] = "NF"
    cluster_name: ClusterName = None
    by: Annotated[str, typer.Option("--by", help=_BY)] = "hosts"


@dataclass(frozen=True)
class PlacedJob:
    """A job on its hosts.

    :param job: the job.
    :param hosts: host of each rank, by the fabric's numbers, shape (ranks,).
    :param names: names of its hosts in the order of its ranks, as Slurm writes them.
    :param seconds: T_base in seconds; None if it is unknown.
    :param origin: origin of T_base, or the reason why it is unknown, in words.
    """

    job: JobSpec
    hosts: NDArray[np.integer]
    names: str
    seconds: float | None
    origin: str


@grouped
def characterise_command(
    jobs: Jobs,
    *,
    source: Topology,
    lfts: Lfts = None,
    setting: Setting,
    settings: Settings = None,
    how: TopologyOptions,
    as_json: AsJson = False,
    plot: Annotated[Path | None, typer.Option("--draw", help="FILE.svg or FILE.png.")] = None,
    limit: Limit = None,
) -> None:
    """Show the load that each job brings to each level of a fabric, and its class: low, moderate or extreme.

    Level 0 is the hosts' own links, level 1 those out of leaf switches, level 2 those out of the groups that these
    join, and so on. A job's usage of a level is the bytes per second that it sends there on a crossbar, over the
    bandwidth out of the groups in which it is. The largest usage above level 0 gives the class. Settings: moderate and
    extreme (least usage of these classes: 0.09 and 1), rate, latency, overhead, eager (as for topompi jobs replay).
    """
    # Imported here, because the help of other commands would wait for them.
    from ...machine.interference import levels_of, read_jobs
    from ...machine.interference.pictures import check_plot
    from ...machine.interference.pictures.usage import draw

    if plot is not None:
        check_plot(plot)
    if setting.by not in ("hosts", "routes"):
        raise SourceError(f"--by: expecting hosts or routes, got {setting.by!r:.60}")
    links = LinkSettings.of(settings)
    thresholds, specs = links.thresholds, read_jobs(jobs, partial=how.partial)
    with reading(source, lfts, how) as (discovery, report):
        report.notes += [f"{job.name}: {note}" for job in specs for note in job.trace.notes]
        routes = routes_of(discovery, how.rails)
        levels = levels_of(routes.fabric, links.known_rate)
        report.step("placing jobs, and simulating each on a crossbar")
        placed = _placed(specs, routes, setting, links)
        report.step("following routes")
        found = [_character(one, levels, routes.tables, thresholds) for one in placed]
        tables = routes.tables if setting.by == "routes" else None
        told = [_facts(one, character, levels, tables) for one, character in zip(placed, found, strict=True)]
    if plot is not None:
        names = [one.name for one in specs]
        title = f"{bare_name(source)}, placement {bare_name(setting.placement)}"
        draw(list(zip(names, found, strict=True)), title, plot)
    if as_json:
        facts = {"source": source, "routes": routes.engine, "placement": setting.placement}
        print(json.dumps({**facts, "thresholds": asdict(thresholds), "jobs": told}))
    else:
        _print(f"{source}: {routes.engine}; placement {setting.placement}", told, thresholds)
    list_findings(report)


def _placed(specs: Sequence[JobSpec], routes: Routes, setting: Setting, links: LinkSettings) -> list[PlacedJob]:
    """Place jobs, and find the time of each on a crossbar.

    :param specs: the jobs.
    :param routes: routes of the fabric.
    :param setting: options with the placement.
    :param links: options of links and hosts.
    """
    from ...machine.interference import place
    from ...machine.interference.network import SharedNetwork, shared_network
    from ...netsim import Hosts
    from ...views.cluster import cluster_of, node_hosts

    machine = cluster_of(routes)
    hosts_of = Hosts(send_overhead=links.overhead, eager=float(links.eager))
    network = SharedNetwork(shared_network(machine, links.known_rate, links.latency), hosts=hosts_of)
    nodes = place(machine, {job.name: job.nodes for job in specs}, setting.placement, setting.cluster_name)
    host = node_hosts(machine, routes.fabric)
    found = []
    for job in specs:
        mine = nodes[job.name]
        hosts = host[job.on(mine).hosts]
        names = compress([routes.fabric.hosts[one] for one in dict.fromkeys(hosts.tolist())])
        found.append(PlacedJob(job, hosts, names, *job.on_crossbar(network, mine)))
    return found


def _character(placed: PlacedJob, levels: Levels, tables: Tables, thresholds: Thresholds) -> Character:
    """Characterise a job.

    :param placed: the job on its hosts.
    :param levels: levels of the fabric.
    :param tables: routes of the fabric.
    :param thresholds: limits between the classes.
    """
    from ...machine.interference import characterise

    job = placed.job
    return characterise(job.graph, placed.seconds, placed.hosts, levels, tables=tables, thresholds=thresholds)


def _facts(placed: PlacedJob, character: Character, levels: Levels, tables: Tables | None) -> dict[str, object]:
    """The figures of a job, with a row per level.

    :param placed: the job on its hosts.
    :param character: loads of the job.
    :param levels: levels of the fabric.
    :param tables: routes by which jobs that may share links are counted; None to count hosts.
    """
    from ...machine.interference.rivals import job_links, rivals
    from ...machine.interference.sharing import sharing_jobs_on

    rows, hosts = list[dict[str, object]](), np.unique(placed.hosts)
    for load in character.loads:
        most = sharing_jobs_on(levels, hosts, load.level) if load.level else 0
        if tables is not None and load.level:
            most = rivals(tables, hosts, job_links(tables, hosts, levels, load.level))
        rows.append({**asdict(load), "sharing_jobs": most})
    return {
        "job": placed.job.name,
        "ranks": placed.job.trace.size,
        "nodes": len(hosts),
        "hosts": placed.names,
        "base_seconds": character.seconds,
        "base_origin": placed.origin,
        "class": character.name or None,
        "usage": None if character.seconds is None else character.usage,
        "levels": rows,
    }


def _print(words: str, jobs: list[dict[str, Any]], thresholds: Thresholds) -> None:
    screen = console()
    screen.print(words)
    columns = ("job", "class", "level", "bytes", "injection", "available", "usage", "busiest link", "groups")
    table = Table(*columns, "may share with", box=None)
    for job in jobs:
        for row in job["levels"]:
            first = (job["job"], job["class"] or "-") if row["level"] == 0 else ("", "")
            level, share = str(row["level"]), f"{row['sharing_jobs']:,} jobs" if row["level"] else "-"
            rates = (f"{row[key] / 1e9:.4g} GB/s" if row[key] else "-" for key in ("injection", "available"))
            usages = ("-" if row[key] is None else f"{100 * row[key]:.1f} %" for key in ("usage", "busiest_link"))
            table.add_row(*first, level, f"{row['nbytes'] / 1e6:,.0f} MB", *rates, *usages, f"{row['groups']:,}", share)
    screen.print(table)
    for job in jobs:
        base = job["base_seconds"]
        told = f"no class: {job['base_origin']}" if base is None else f"T_base {base:.4g} s ({job['base_origin']})"
        screen.print(f"{job['job']}: {told}", soft_wrap=True)
    screen.print(f"classes by the largest usage above level 0: {thresholds}")
