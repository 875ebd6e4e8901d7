"""The tables that ``topompi profile`` prints."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from ..terminal import Screen

__all__ = ["draw", "draw_advice"]

BAR = 32


def draw(console: Screen, summary: dict[str, Any]) -> None:
    """Print tables of a profile's messages and bytes by distance, and of its busiest hosts, switches and links.

    :param console: screen to print on.
    :param summary: result of `topompi.mpi.profile.summary.summarise`.
    """
    timed = f"{summary['timed']} {summary['seconds']:.3g} s; " if summary["seconds"] else ""
    console.print(f"{summary['command'] or 'a program'}: {timed}method: {summary['method']}", soft_wrap=True)
    console.print(summary["job"], soft_wrap=True)
    for kind, (messages, volume) in summary["kinds"].items():
        console.print(f"{kind}: {messages:,} messages, {volume:,} bytes")
    for line in summary["says"]:
        console.print(line)
    console.print(_traffic("by hops", summary["hops"], summary["count"]))
    console.print(_traffic("by level", summary["levels"], summary["count"]))
    console.print(_units(summary))
    if summary["links"]:
        console.print(_links(summary["links"]))
    if summary["neighbourhoods"]:
        console.print(_exchanges(summary["neighbourhoods"]))


def _traffic(title: str, rows: list[dict[str, Any]], count: str) -> Table:
    table = Table(title, "messages", "bytes", f"share of {count}", "", box=None)
    for column in table.columns[1:4]:
        column.justify = "right"
    total = sum(row[count] for row in rows) or 1
    for row in rows:
        share = row[count] / total
        bar = "█" * round(BAR * share)
        table.add_row(row["class"], f"{row['messages']:,}", f"{row['bytes']:,}", f"{100 * share:.1f} %", bar)
    return table


def _units(summary: dict[str, Any]) -> Table:
    count = summary["count"]
    table = Table(f"by {summary['granularity']}", f"{count} sent", "received", "within", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in summary["units"]:
        table.add_row(row["unit"], *(f"{row[key]:,}" for key in ("sent", "received", "within")))
    return table


def _links(rows: list[dict[str, Any]]) -> Table:
    table = Table("busiest links", "bytes", "seconds at its rate", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        seconds = "" if row["seconds"] is None else f"{row['seconds']:.3g}"
        table.add_row(row["link"], f"{row['bytes']:,}", seconds)
    return table


def _exchanges(rows: list[dict[str, Any]]) -> Table:
    table = Table("among neighbours", "calls", "by carriers", "edges", "most of a rank", "bytes a call", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        counts = (row[key] for key in ("calls", "carried", "edges", "most_edges", "bytes"))
        table.add_row(row["call"], *(f"{one:,}" for one in counts))
    return table


def _exchange_advice(rows: list[dict[str, Any]]) -> Table:
    times = ("a message per edge, us", "carriers, us", "best with reorder=True, us")
    table = Table("among neighbours", "calls", "by carriers", "edges", "bytes a call", *times, "by the model", box=None)
    for column in table.columns[1:8]:
        column.justify = "right"
    for row in rows:
        counts = (f"{row[key]:,}" for key in ("calls", "carried", "edges", "bytes"))
        seconds = (f"{1e6 * row[f'{key}_seconds']:,.1f}" for key in ("edge", "carried", "reordered"))
        table.add_row(row["call"], *counts, *seconds, row["algorithm"])
    return table


def draw_advice(console: Screen, advice: dict[str, Any]) -> None:
    """Print tables of messages by distance, of predicted times, and of the savings of another order or algorithm.

    :param console: screen to print on.
    :param advice: result of `topompi.mpi.profile.advice.advise`.
    """
    from ...mpi.prediction.words import footnotes  # imported here, because other commands do without predictions

    console.print(advice["job"], soft_wrap=True)
    table = Table("what is sent", "distance", "messages", "bytes", "share", box=None)
    for row in advice["traffic"]:
        share = f"{100 * row['share']:.1f} %"
        table.add_row(row["kind"], row["class"], f"{row['messages']:,}", f"{row['bytes']:,}", share)
    console.print(table)
    if advice["operations"]:
        console.print(_operations(advice["operations"]))
    if advice["mapping"] is not None:
        console.print(_orders(advice["mapping"]))
        if advice["mapping"]["slower"]:
            console.print("this order moves fewer bytes times hops, but takes no less time by the models")
    if advice["collectives"]:
        console.print(_schedules(advice["collectives"]))
        for line in footnotes(row["native"] for row in advice["collectives"]):
            console.print(line, soft_wrap=True)
    if advice["neighbourhoods"]:
        console.print(_exchange_advice(advice["neighbourhoods"]))
    searches = (advice["mapping"] or {"cut": ""}, *advice["neighbourhoods"])
    for cut in dict.fromkeys(one["cut"] for one in searches if one["cut"]):
        console.print(f"order of the ranks: {cut}", soft_wrap=True)
    for why in advice["out_of_reach"]:
        console.print(f"out of reach: {why}", soft_wrap=True)


def _operations(rows: list[dict[str, Any]]) -> Table:
    table = Table("by the models", "seconds", "share", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(row["operation"], f"{row['seconds']:.4g}", f"{100 * row['share']:.1f} %")
    return table


def _orders(mapping: dict[str, Any]) -> Table:
    table = Table("order of the ranks", "as it is", "best found", "", box=None)
    names = {
        "hop_bytes": "bytes times hops",
        "busiest_link_bytes": "bytes on the busiest link",
        "busiest_link_seconds": "seconds of the busiest link",
        "message_seconds": "seconds of messages",
        "collective_seconds": "seconds of collective calls",
    }
    for key, name in names.items():
        before, after = mapping["before"][key], mapping["after"][key]
        if before is not None and after is not None:
            change = f"{100 * (after / before - 1):+.0f} %" if before else ""
            table.add_row(name, f"{before:,.4g}", f"{after:,.4g}", change)
    return table


def _schedules(rows: list[dict[str, Any]]) -> Table:
    table = Table("collective", "bytes", "calls", "the library's", "us", "by the model", "us", box=None)
    for row in rows:
        taken = "" if row["algorithm"] == "native" else f"{1e6 * row['seconds']:,.0f}"
        native = f"{1e6 * row['native_seconds']:,.0f}"
        size, calls = f"{row['bytes']:,}", f"{row['calls']:,}"
        table.add_row(row["call"], size, calls, row["native"], native, row["algorithm"], taken)
    return table
