"""What ``topompi map`` says of mappings: figures for programs, a table for people."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from ...mapping.distances import Torus
from ...mapping.evaluate import Evaluation
from ...mapping.machine import Machine
from ..terminal import Screen

__all__ = ["class_name", "draw", "figures", "hops_known", "ratio"]

_ROWS = (
    ("hop-bytes", "hop_bytes"),
    ("busiest host, bytes", "host_traffic"),
    ("busiest link, bytes", "link_load"),
    ("busiest link, seconds", "link_seconds"),
    ("mean distance of a byte", "dilation"),
)
BAR = 32


def figures(found: Evaluation, machine: Machine) -> dict[str, Any]:
    """The numbers of an evaluation; hop-bytes as half of the exact ``doubled``.

    The seconds of the busiest link are left out where no link's rate is known, so that all are 1.
    """
    rated = machine.capacity is not None and bool((machine.capacity != 1).any())
    return {
        "hop_bytes": found.doubled / 2 if found.doubled % 2 else found.doubled // 2,
        "doubled": found.doubled,
        "bytes": found.total,
        "bytes_by_distance": found.bytes_by_distance,
        "intra_host_share": found.intra_share,
        "host_traffic": found.host_traffic,
        "link_load": found.link_load,
        "link_seconds": found.link_seconds if rated else None,
        "dilation": found.dilation,
    }


def ratio(after: float | None, before: float | None) -> float | None:
    """After over before: below 1 is better; None where there is nothing to compare."""
    if after is None or before is None:
        return None
    return 1.0 if after == before else after / before if before else None


def hops_known(machine: Machine, from_topology: bool) -> bool:
    """Whether a distance is the number of switches crossed, and not a weight or links of a torus."""
    return from_topology and not isinstance(machine.distances, Torus)


def class_name(distance: str, hops: bool) -> str:
    """What a class of bytes is called: within hosts, so many hops, or a distance."""
    if distance == "host":
        return "within hosts"
    return f"{distance} hop{'s' * (distance != '1')}" if hops else f"distance {distance}"


def draw(console: Screen, summary: dict[str, Any]) -> None:
    """Print two mappings side by side: the figures, their ratio, and the bytes of each class of distance."""
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
