"""What a service has done, as numbers and as text for Prometheus."""

from __future__ import annotations

from dataclasses import asdict, dataclass

__all__ = ["Counters", "prometheus"]

_HELP = {
    "queries": "Requests of the line protocol.",
    "requests": "Requests in JSON.",
    "errors": "Answers that say what was wrong.",
    "connections": "Connections taken.",
    "refused": "Connections and requests refused because a bound was reached.",
    "dropped": "Clients dropped: slow, silent, or the largest where a bound was reached.",
    "ended": "Views and trees whose work was ended: its time was over, or its client had left.",
    "reloads": "Times that the source was read again.",
    "failed_reloads": "Times that reading it again failed and the old generation stayed.",
}


@dataclass
class Counters:
    """Counts since the start of the service; see ``_HELP`` for each."""

    queries: int = 0
    requests: int = 0
    errors: int = 0
    connections: int = 0
    refused: int = 0
    dropped: int = 0
    ended: int = 0
    reloads: int = 0
    failed_reloads: int = 0


def prometheus(counters: Counters, gauges: dict[str, float]) -> str:
    """The counters and gauges in Prometheus' text format, version 0.0.4."""
    lines = []
    for name, value in asdict(counters).items():
        full = f"topompi_service_{name}_total"
        lines += [f"# HELP {full} {_HELP[name]}", f"# TYPE {full} counter", f"{full} {value}"]
    for name, gauge in gauges.items():
        lines += [f"# TYPE topompi_service_{name} gauge", f"topompi_service_{name} {gauge:g}"]
    return "\n".join(lines) + "\n"
