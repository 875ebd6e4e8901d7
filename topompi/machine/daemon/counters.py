"""Counters of a daemon's events, and their text for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["counter", "prometheus"]


def counter(meaning: str) -> Any:
    """Make a dataclass field that holds a counter, which begins at zero, and its meaning.

    :param meaning: sentence that describes the counted events.
    """
    return field(default=0, metadata={"meaning": meaning})


def prometheus(prefix: str, counters: DataclassInstance, gauges: Mapping[str, float]) -> str:
    """Return counters and gauges in Prometheus' text format, version 0.0.4.

    :param prefix: first word of each name; an underscore is put after it.
    :param counters: a dataclass whose fields `counter` made.
    :param gauges: present values of quantities that also fall (Prometheus' gauges), by name.
    """
    lines = []
    for one in fields(counters):
        full = f"{prefix}_{one.name}_total"
        lines += [
            f"# HELP {full} {one.metadata['meaning']}",
            f"# TYPE {full} counter",
            f"{full} {getattr(counters, one.name)}",
        ]
    for name, gauge in gauges.items():
        lines += [f"# TYPE {prefix}_{name} gauge", f"{prefix}_{name} {gauge:g}"]
    return "\n".join(lines) + "\n"
