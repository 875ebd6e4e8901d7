"""``topompi topology links`` and ``diff``: links and leaf switches by use, and changes of a fabric."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ...errors import SourceError
from ...inputs.slurm.running import read_running
from ...topology import Report, Routes
from ...topology.hostnames import require_hosts
from ...topology.inspection import Difference, LinkUse, compare, leaf_rows, link_rows, link_use, slow_cables, without
from ..hosts import find_hosts
from ..inputs import (
    AsJson,
    ClusterName,
    Hosts,
    JobOnFabric,
    Topology,
    TopologyOptions,
    grouped,
    list_findings,
    reading,
    routes_of,
)
from ..quantities import COUNT
from ..rows import SHOWN, Rows, RowsOfLinks, print_rows
from ..terminal import Limit, console
from .tables import draw_levels

__all__ = ["diff", "links"]

Top = Annotated[int | None, COUNT("--top", help="Only so many rows.")]


BY = ("routes", "time", "leaf")
_BY = "routes; time: routes of 1 MB each at the link's rate; leaf: a row for each leaf switch."


@grouped
def links(
    *,
    source: Topology,
    job: JobOnFabric,
    by: Annotated[str, typer.Option("--by", help=_BY)] = "routes",
    top: Top = None,
    how: RowsOfLinks,
    limit: Limit = None,
) -> None:
    """List the links between switches by how many routes go through them, the busiest first.

    A route is an ordered pair of hosts, of all hosts or of a job's hosts. --by leaf lists the leaf switches instead,
    the one with the busiest link first: hosts, uplinks that routes use, over-subscription, routes out, in, on one link.
    """
    if by not in BY:
        raise SourceError(f"--by: expecting one of {', '.join(BY)}, got {by!r}")

    def rows_of(use: LinkUse) -> Rows:
        if by == "leaf":
            return leaf_rows(use)
        rows = link_rows(use, by)
        idle = {"time"} if by == "routes" else set()
        idle |= set() if any(row["slower_than"] for row in rows) else {"slower_than"}
        return (
            rows if how.as_json or how.as_csv else [{key: row[key] for key in row if key not in idle} for row in rows]
        )

    _show_use(source, job, how, rows_of, top)


def _show_use(source: str, job: JobOnFabric, how: RowsOfLinks, rows_of: Callable[..., Rows], top: int | None) -> None:
    with reading(source, job.lfts, how) as (discovery, report):
        routes = routes_of(discovery, how.rails, job.down)
        hosts = find_hosts(job.hosts)
        report.step("counting routes")
        numbers = None if hosts is None else np.unique(require_hosts(routes.fabric, hosts))
        use = link_use(routes, numbers)
        rows = rows_of(use)
        if slow := slow_cables(routes.fabric):
            report.note(slow)
    facts = {"source": source, "routes": routes.engine, "hosts": len(use.hosts), "pairs": use.pairs}
    words = f"{source}: {len(use.hosts):,} hosts, {use.pairs:,} routes, {use.lost:,} of them lost; {routes.engine}"
    print_rows(words, facts | {"lost": use.lost}, rows[:top], as_json=how.as_json, as_csv=how.as_csv)
    list_findings(report)


@grouped
def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="A topology source.")],
    after: Annotated[str | None, typer.Argument(metavar="B", help="Another one; by default A itself.")] = None,
    *,
    lfts: Annotated[list[Path] | None, typer.Option("--lfts", help="Forwarding tables of A; again for B.")] = None,
    hosts: Hosts = None,
    jobs_file: Annotated[
        str | None, typer.Option("--jobs", help="A CSV file, job,hosts a line: which of them?")
    ] = None,
    down: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="SWITCH", help="B without this switch, or SWITCH:PORT; several times."),
    ] = None,
    top: Annotated[int, COUNT("--top", help="Only so many names and pairs.")] = SHOWN,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if anything differs.")] = False,
    cluster_name: ClusterName = None,
    how: TopologyOptions,
    as_json: AsJson = False,
    limit: Limit = None,
) -> None:
    """Show what changed from A to B: hosts, switches, cables, routes, and the ways between a job's hosts.

    Switches and adapters are the same if their ids are equal. With --without, B is A with switches or cables down:
    computed routes are computed again; forwarding tables stay, and their entries that use a missing part are lost
    routes.
    """
    if after is None and not down:
        raise SourceError("expecting another source, or --without SWITCH, got neither")
    tables, tables_after = [*(lfts or []), None, None][:2]
    with reading(before, tables, how) as (discovery, report):
        first = routes_of(discovery, how.rails)
        wanted = read_running(jobs_file, cluster=cluster_name) if jobs_file is not None else []
        job = find_hosts(hosts)
        other = first if after is None else _second(after, tables_after, how, report)
        second = without(other, down or [])
        report.step("comparing")
        found = compare(first, second, job, wanted, examples=top)
    if as_json:
        print(json.dumps({"before": before, "after": after or before, "without": down or [], **asdict(found)}))
    else:
        _show_difference(found, top)
    list_findings(report)
    if check and found:
        raise typer.Exit(1)


def _second(after: str, lfts: Path | None, how: TopologyOptions, first: Report) -> Routes:
    """Read the topology to compare with, and return its routes.

    :param after: topology source.
    :param lfts: path of the forwarding tables, if they are separate from the source; else None.
    :param how: options for the reading.
    :param first: report on the first topology, to which problems and notes of this one are added.
    """
    with reading(after, lfts, how) as (discovery, report):
        routes = routes_of(discovery, how.rails)
    first.problems.extend(report.problems)
    first.notes.extend(report.notes)
    return routes


def _show_difference(found: Difference, top: int) -> None:
    screen = console()
    if not found:
        screen.print("nothing differs")
        return
    for what, sides in (
        ("hosts", found.hosts),
        ("adapters", found.adapters),
        ("switches", found.switches),
        ("switches", {key: found.altered[key] for key in ("exchanged", "renamed")}),
        ("cables", found.cables),
        ("cables", {key: found.altered[key] for key in ("slower", "faster")}),
    ):
        for side, names in sides.items():
            if names:
                screen.print(f"{what} {side}: {len(names):,}: {_first(names, top)}", soft_wrap=True)
    counts = found.routes
    shares = ", ".join(
        f"{counts[key]:,} {key} ({_share(counts[key], counts['entries'])})" for key in counts if key != "entries"
    )
    screen.print(f"entries of tables: {counts['entries']:,}: {shares}", soft_wrap=True)
    if found.pairs is not None:
        words = {
            "changed": "have another path",
            "hops": "another number of hops",
            "lost": "none any more",
            "found": "one only now",
        }
        parts = ", ".join(
            f"{found.pairs[key]:,} {word} ({_share(found.pairs[key], found.pairs['pairs'])})"
            for key, word in words.items()
        )
        screen.print(f"ordered pairs of hosts: {found.pairs['pairs']:,}: {parts}", soft_wrap=True)
    for row in found.examples:
        ends = ["no route" if row[side] is None else f"{row[side]} hops" for side in ("before", "after")]
        screen.print(f"  {row['from']} → {row['to']}: {ends[0]}, then {ends[1]}")
    for job in found.jobs:
        counts_of = f"{job['changed']:,} of {job['pairs']:,} pairs on another path, {job['hops']:,} with other hops"
        screen.print(f"job {job['job']}: {job['hosts']:,} hosts, {counts_of}, {job['lost']:,} lost")
    if found.levels[0] != found.levels[1]:
        for title, levels in zip(("levels before", "levels after"), found.levels, strict=True):
            screen.print(title)
            draw_levels(screen, levels)


def _first(names: Sequence[str], top: int) -> str:
    return ", ".join(names[:top]) + (", ..." if len(names) > top else "")


def _share(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):.2f} %"
