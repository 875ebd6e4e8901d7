"""``topompi topology links``, ``leaves``, ``jobs`` and ``diff``: what an administrator asks of a fabric."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from ...errors import SourceError
from ...inputs.slurm.running import read_running
from ...topology import Routes
from ...topology.hostnames import require_hosts
from ...topology.studies import Difference, compare, leaf_rows, link_rows, link_use, study_jobs, without
from ...visible import csv_cell
from ..hosts import find_hosts
from ..terminal import Limit, console
from .inputs import AsJson, Hosts, Lfts, Partial, Source, Without, list_findings, reading, routes_of
from .tables import draw_levels

__all__ = ["diff", "jobs", "leaves", "links"]

Top = Annotated[int | None, typer.Option("--top", help="Only so many rows.", min=1)]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]
Rows = list[dict[str, Any]]
SHOWN = 12  # names of one list, and pairs, that a person reads


def links(
    source: Source,
    lfts: Lfts = None,
    hosts: Hosts = None,
    down: Without = None,
    top: Top = None,
    partial: Partial = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    limit: Limit = None,
) -> None:
    """List the links between switches by how many routes go through them, the busiest first.

    A route is an ordered pair of hosts: of all hosts, or of a job's.
    """
    _show_use(source, lfts, hosts, down, partial, link_rows, (top, as_json, as_csv))


def leaves(
    source: Source,
    lfts: Lfts = None,
    hosts: Hosts = None,
    down: Without = None,
    top: Top = None,
    partial: Partial = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    limit: Limit = None,
) -> None:
    """List the leaf switches: hosts, uplinks that routes use, over-subscription, routes out, in and on one link.

    The leaf with the busiest link comes first; routes are ordered pairs of hosts: of all, or of a job's.
    """
    _show_use(source, lfts, hosts, down, partial, leaf_rows, (top, as_json, as_csv))


def _show_use(
    source: str,
    lfts: Path | None,
    hosts: str | None,
    down: list[str] | None,
    partial: bool,
    rows_of: Callable[..., Rows],
    form: tuple[int | None, bool, bool],
) -> None:
    with reading(source, lfts, partial) as (discovery, report):
        routes = without(routes_of(discovery), down or [])
        job = find_hosts(hosts)
        report.step("counting routes")
        numbers = None if job is None else np.unique(require_hosts(routes.fabric, job))
        use = link_use(routes, numbers)
        rows = rows_of(use)
    top, as_json, as_csv = form
    facts = {"source": source, "routes": routes.engine, "hosts": len(use.hosts), "pairs": use.pairs, "lost": use.lost}
    words = f"{source}: {len(use.hosts):,} hosts, {use.pairs:,} routes, {use.lost:,} of them lost; {routes.engine}"
    _print_rows(words, facts, rows[:top], as_json=as_json, as_csv=as_csv)
    list_findings(report)


def jobs(
    source: Source,
    jobs_file: Annotated[str, typer.Argument(metavar="JOBS", help="A CSV file: job,hosts a line.")],
    lfts: Lfts = None,
    down: Without = None,
    partial: Partial = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    limit: Limit = None,
) -> None:
    """Show one row a job: leaves, levels, over-subscription, busiest link, and whose links it shares.

    The over-subscription is that of the job's worst leaf: its hosts there by the uplinks that the job's routes use.
    """
    with reading(source, lfts, partial) as (discovery, report):
        routes = without(routes_of(discovery), down or [])
        report.step("following routes")
        found = study_jobs(routes, read_running(jobs_file))
    rows = [row.as_dict() for row in found]
    facts = {"source": source, "routes": routes.engine, "jobs": len(rows)}
    _print_rows(f"{source}: {len(rows):,} jobs; {routes.engine}", facts, rows, as_json=as_json, as_csv=as_csv)
    list_findings(report)


def _print_rows(words: str, facts: Mapping[str, Any], rows: Rows, *, as_json: bool, as_csv: bool) -> None:
    """A table with a heading, an object of JSON, or CSV with one line of names."""
    if as_json and as_csv:
        raise SourceError("expecting --json or --csv, got both")
    if as_json:
        print(json.dumps({**facts, "rows": rows}))
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(rows[0] if rows else [])
        writer.writerows([csv_cell(_cell(value, " ")) for value in row.values()] for row in rows)
    else:
        screen = console()
        screen.print(words)
        if rows:
            table = Table(*(name.replace("_", " ") for name in rows[0]), box=None)
            for row in rows:
                table.add_row(*(_read_as(name, value) for name, value in row.items()))
            screen.print(table)


def _cell(value: Any, separator: str) -> Any:
    return separator.join(value) if isinstance(value, list) else value


def _read_as(name: str, value: Any) -> str:
    """A cell for people."""
    if value is None:
        return "-"
    if isinstance(value, list):
        more = f" and {len(value) - SHOWN} more" if len(value) > SHOWN else ""
        return ", ".join(value[:SHOWN]) + more
    if name == "share":
        return f"{100 * value:.2f} %"
    if name == "rate":
        return f"{value / 1e9:.4g} GB/s"
    if name == "oversubscription":
        return f"{value:.3g} : 1"
    return f"{value:,}" if isinstance(value, int) else str(value)


def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="A topology source.")],
    after: Annotated[str | None, typer.Argument(metavar="B", help="Another one; by default A itself.")] = None,
    lfts: Lfts = None,
    lfts_after: Annotated[Path | None, typer.Option("--lfts-b", help="Forwarding tables of B.")] = None,
    hosts: Hosts = None,
    jobs_file: Annotated[
        str | None, typer.Option("--jobs", help="A CSV file, job,hosts a line: which of them?")
    ] = None,
    down: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="SWITCH", help="B without this switch, or SWITCH:PORT; several times."),
    ] = None,
    top: Annotated[int, typer.Option("--top", help="Only so many names and pairs.", min=1)] = SHOWN,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 where anything differs.")] = False,
    partial: Partial = False,
    as_json: AsJson = False,
    limit: Limit = None,
) -> None:
    """Show what changed from A to B: hosts, switches, cables, routes, and the ways between a job's hosts.

    Switches and adapters are the same where their ids are. With --without, B is A with switches or cables down:
    computed routes are computed again; forwarding tables stay, and their entries for what is gone are lost routes.
    """
    if after is None and not down:
        raise SourceError("expecting another source, or --without SWITCH, got neither")
    with reading(before, lfts, partial) as (discovery, report):
        first = routes_of(discovery)
        wanted = read_running(jobs_file) if jobs_file is not None else []
        job = find_hosts(hosts)
        second = without(_second(after, lfts_after, partial, first, report.problems), down or [])
        report.step("comparing")
        found = compare(first, second, job, wanted, examples=top)
    if as_json:
        print(json.dumps({"before": before, "after": after or before, "without": down or [], **asdict(found)}))
    else:
        _show_difference(found, top)
    list_findings(report)
    if exit_code and found:
        raise typer.Exit(1)


def _second(after: str | None, lfts: Path | None, partial: bool, first: Routes, problems: list[str]) -> Routes:
    if after is None:
        return first
    with reading(after, lfts, partial) as (discovery, report):
        routes = routes_of(discovery)
    problems.extend(report.problems)
    return routes


def _show_difference(found: Difference, top: int) -> None:
    screen = console()
    if not found:
        screen.print("nothing differs")
        return
    for what, sides in (("hosts", found.hosts), ("switches", found.switches), ("cables", found.cables)):
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
