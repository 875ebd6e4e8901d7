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
from ...network import Tables
from ...topology import Routes
from ...topology.fabric import infiniband_rate
from ..inputs import AsJson, Reading, grouped, list_findings, reading, routes_of
from ..terminal import Limit, console
from .allocate import Lfts

if TYPE_CHECKING:
    from ...interference import Character, Levels, Thresholds, Traffic

__all__ = ["characterise_command"]

JOB_HELP = "ft:256, cg:256, bt:256, mg:256, alltoall:64:1M, stencil:8x8x4:64K, or a file: a graph or a profile."
Jobs = Annotated[list[str], typer.Argument(help=f"Jobs: {JOB_HELP} @base=S or @compute=S (seconds) may follow.")]
Cluster = Annotated[str, typer.Option("--cluster", help="A topology source.")]


@dataclass(frozen=True)
class Setting:
    """Options that say where jobs run, and how their load is judged.

    :param placement: name of the placement of all jobs, or a file with their hosts.
    :param ppn: number of ranks per host, in blocks.
    :param moderate: least usage of a moderate job; None for the default.
    :param extreme: least usage of an extreme job; None for the default.
    :param rate: rate of links of unknown rate, in InfiniBand's spelling; None to raise an error if there are any.
    :param by_routes: whether jobs that may share links are counted by routes; else by hosts.
    """

    placement: Annotated[
        str,
        typer.Option(
            "--placement",
            help="NF (whole leaf switches), Fn (n hosts of each), RF:SEED (random), or a file: JOB HOSTS.",
        ),
    ] = "NF"
    ppn: Annotated[int, typer.Option("--ppn", help="Ranks on each host.", min=1)] = 1
    moderate: Annotated[
        float | None, typer.Option("--moderate", help="Least usage of a moderate job; 0.09 by default.")
    ] = None
    extreme: Annotated[float | None, typer.Option("--extreme", help="Least usage of an extreme job; 1 by default.")] = (
        None
    )
    rate: Annotated[str | None, typer.Option("--rate", help="Rate of links of unknown rate: 4xEDR.")] = None
    by_routes: Annotated[
        bool, typer.Option("--by-routes", help="Count the jobs that may share links by the routes of all other hosts.")
    ] = False

    @property
    def thresholds(self) -> Thresholds:
        """The limits between the classes."""
        from ...interference import Thresholds

        limits = {"moderate": self.moderate, "extreme": self.extreme}
        return Thresholds(**{name: limit for name, limit in limits.items() if limit is not None})

    @property
    def known_rate(self) -> float | None:
        """The rate of links of unknown rate in bytes/s; None if it was not given."""
        if self.rate is None:
            return None
        given = infiniband_rate(self.rate)
        if not given > 0:  # also true for NaN, an unknown name
            raise SourceError(f"--rate: expecting a rate such as 4xEDR, got {self.rate!r}")
        return given

    def place(self, routes: Routes, levels: Levels, jobs: Sequence[Traffic]) -> list[NDArray[np.int64]]:
        """Choose the hosts of each job.

        :param routes: routes of the fabric.
        :param levels: levels of the fabric.
        :param jobs: the jobs.
        """
        from ...interference.placements import listed, place

        sizes = [-(-one.graph.size // self.ppn) for one in jobs]
        if Path(self.placement).exists():
            return listed(self.placement, routes.fabric, sizes)
        return place(self.placement, levels, sizes)


@grouped
def characterise_command(
    jobs: Jobs,
    *,
    cluster: Cluster,
    lfts: Lfts = None,
    setting: Setting,
    how: Reading,
    as_json: AsJson = False,
    plot: Annotated[Path | None, typer.Option("--plot", help="FILE.svg or FILE.png.")] = None,
    limit: Limit = None,
) -> None:
    """Show the load that each job brings to each level of a fabric, and its class: low, moderate or extreme.

    Level 0 is the hosts' own links, level 1 those out of leaf switches, level 2 those out of the groups that these
    join, and so on. A job's usage of a level is the bytes per second that it sends there on a crossbar, over the
    bandwidth out of the groups in which it is. The largest usage above level 0 gives the class.
    """
    # Imported here, because the help of other commands would wait for them.
    from ...interference import levels_of, read_traffic
    from ...interference.pictures import check_plot
    from ...interference.pictures.usage import draw

    if plot is not None:
        check_plot(plot)
    thresholds, traffics = setting.thresholds, [read_traffic(job) for job in jobs]
    with reading(cluster, lfts, how) as (discovery, report):
        routes = routes_of(discovery, how.rails)
        levels = levels_of(routes.fabric, setting.known_rate)
        placed = setting.place(routes, levels, traffics)
        report.step("following routes")
        found = [
            _character(one, hosts, levels, routes.tables, setting) for one, hosts in zip(traffics, placed, strict=True)
        ]
        tables = routes.tables if setting.by_routes else None
        told = [
            _facts(one, hosts, character, levels, tables)
            for one, hosts, character in zip(traffics, placed, found, strict=True)
        ]
    if plot is not None:
        names = [one.name for one in traffics]
        draw(list(zip(names, found, strict=True)), f"{bare_name(cluster)}, placement {setting.placement}", plot)
    if as_json:
        facts = {"source": cluster, "routes": routes.engine, "placement": setting.placement, "ppn": setting.ppn}
        print(json.dumps({**facts, "thresholds": asdict(thresholds), "jobs": told}))
    else:
        _print(f"{cluster}: {routes.engine}; placement {setting.placement}", told, thresholds)
    list_findings(report)


def _character(
    traffic: Traffic, hosts: NDArray[np.integer], levels: Levels, tables: Tables, setting: Setting
) -> Character:
    """Characterise a job whose ranks fill its hosts in blocks.

    :param traffic: the job.
    :param hosts: hosts of the job, shape (n,).
    :param levels: levels of the fabric.
    :param tables: routes of the fabric.
    :param setting: options of the command.
    """
    from ...interference import characterise

    of_rank = hosts[np.arange(traffic.graph.size) // setting.ppn]
    seconds = traffic.seconds(float(levels.up[0][hosts].min()), of_rank)
    return characterise(traffic.graph, seconds, of_rank, levels, tables=tables, thresholds=setting.thresholds)


def _facts(
    traffic: Traffic, hosts: NDArray[np.integer], character: Character, levels: Levels, tables: Tables | None
) -> dict[str, Any]:
    """The figures of a job, with a row per level.

    :param traffic: the job.
    :param hosts: hosts of the job, shape (n,).
    :param character: loads of the job.
    :param levels: levels of the fabric.
    :param tables: routes by which jobs that may share links are counted; None to count hosts.
    """
    from ...interference.rivals import job_links, rivals
    from ...interference.sharing import sharing_jobs_on

    rows = []
    for load in character.loads:
        most = sharing_jobs_on(levels, hosts, load.level) if load.level else 0
        if tables is not None and load.level:
            most = rivals(tables, hosts, job_links(tables, hosts, levels, load.level))
        rows.append({**asdict(load), "sharing_jobs": most})
    return {
        "job": traffic.name,
        "ranks": traffic.graph.size,
        "hosts": len(hosts),
        "base_seconds": character.seconds,
        "base_origin": traffic.origin,
        "class": character.name,
        "usage": character.usage,
        "levels": rows,
    }


def _print(words: str, jobs: list[dict[str, Any]], thresholds: Thresholds) -> None:
    screen = console()
    screen.print(words)
    columns = ("job", "class", "level", "bytes", "injection", "available", "usage", "busiest link", "groups")
    table = Table(*columns, "may share with", box=None)
    for job in jobs:
        for row in job["levels"]:
            first = (job["job"], job["class"]) if row["level"] == 0 else ("", "")
            level, share = str(row["level"]), f"{row['sharing_jobs']:,} jobs" if row["level"] else "-"
            rates = (f"{row[key] / 1e9:.4g} GB/s" if row[key] else "-" for key in ("injection", "available"))
            usages = (f"{100 * row[key]:.1f} %" for key in ("usage", "busiest_link"))
            table.add_row(*first, level, f"{row['nbytes'] / 1e6:,.0f} MB", *rates, *usages, f"{row['groups']:,}", share)
    screen.print(table)
    for job in jobs:
        screen.print(f"{job['job']}: T_base {job['base_seconds']:.4g} s ({job['base_origin']})")
    screen.print(f"classes by the largest usage above level 0: {thresholds}")
