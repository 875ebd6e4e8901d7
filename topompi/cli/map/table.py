"""The table of two mappings that ``topompi map`` prints."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from ...mapping.comparison import class_name, ratio
from ..terminal import Screen

__all__ = ["draw"]

_ROWS = (
    ("hop-bytes", "hop_bytes"),
    ("busiest host, bytes", "host_traffic"),
    ("busiest link, bytes", "link_load"),
    ("busiest link, seconds", "link_seconds"),
    ("mean distance of a byte", "dilation"),
)
BAR = 32


def draw(console: Screen, summary: dict[str, Any]) -> None:
    """Print two mappings side by side: figures of each, ratios of the figures, and bytes by distance.

    :param console: screen to print on.
    :param summary: figures of both mappings, as `topompi.mapping.comparison.compare` returns them, with a title and a
        verdict.
    """
    (first, before), (second, after) = summary["maps"].items()
    console.print(summary["title"], soft_wrap=True)
    table = Table("", first, second, "ratio", box=None)
    for name, key in _ROWS:
        if before[key] is not None:
            table.add_row(name, _number(before[key]), _number(after[key]), _ratio(ratio(after[key], before[key])))
    console.print(table)
    console.print(_classes(first, before, second, after, summary["distance"] == "hops"))
    console.print(summary["verdict"], soft_wrap=True)


def _classes(first: str, before: dict[str, Any], second: str, after: dict[str, Any], hops: bool) -> Table:
    table = Table("bytes", first, "", second, "", box=None)
    sides = [side["bytes_by_distance"] for side in (before, after)]
    inner = sorted((key for key in {*sides[0], *sides[1]} if key != "host"), key=int)
    for key in ["host", *inner]:
        row = [class_name(key, hops)]
        for side, total in zip(sides, (before["bytes"], after["bytes"]), strict=True):
            share = side.get(key, 0) / total if total else 0.0
            row += [f"{100 * share:5.1f} %", "█" * round(BAR * share)]
        table.add_row(*row)
    return table


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
