"""What ``topompi profile show`` prints."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["draw"]

BAR = 32


def draw(console: Console, summary: dict[str, Any]) -> None:
    """Print the figures of `topompi.profile.summary.summarise`."""
    ran = f"{summary['command'] or 'a program'}, {summary['seconds']:.1f} s" if summary["seconds"] else "a program"
    console.print(f"{ran}, recorded by {summary['method']}", highlight=False, soft_wrap=True)
    console.print(summary["job"], highlight=False, soft_wrap=True)
    for kind, (messages, volume) in summary["kinds"].items():
        console.print(f"{kind}: {messages:,} messages, {volume:,} bytes", highlight=False)
    if summary["coverage"] is not None:
        seen = f"{100 * summary['coverage']:.0f} %"
        console.print(
            f"of the bytes that collectives were asked to move, {seen} were seen as messages", highlight=False
        )
    console.print(_traffic("by hops", summary["hops"]))
    console.print(_traffic("by level", summary["levels"]))
    console.print(_units(summary))
    if summary["links"]:
        console.print(_links(summary["links"]))


def _traffic(title: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title, "messages", "bytes", "share", "", box=None)
    for column in table.columns[1:4]:
        column.justify = "right"
    total = sum(row["bytes"] for row in rows) or 1
    for row in rows:
        share = row["bytes"] / total
        bar = "█" * round(BAR * share)
        table.add_row(row["class"], f"{row['messages']:,}", f"{row['bytes']:,}", f"{100 * share:.1f} %", bar)
    return table


def _units(summary: dict[str, Any]) -> Table:
    table = Table(f"by {summary['granularity']}", "sent", "received", "within", box=None)
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
