"""Counters of a topology service's activity."""

from __future__ import annotations

from dataclasses import dataclass

from ...machine.daemon.counters import counter

__all__ = ["PREFIX", "ServiceCounters"]

PREFIX = "topompi_service"  # beginning of every metric's name in Prometheus


@dataclass
class ServiceCounters:
    """Counters of events since the start of the service."""

    queries: int = counter("Requests of the line protocol.")
    requests: int = counter("Requests in JSON.")
    errors: int = counter("Answers that say what was wrong.")
    connections: int = counter("Connections taken.")
    refused: int = counter("Connections and requests refused because a bound was reached.")
    dropped: int = counter("Clients dropped: slow, silent, or the largest where a bound was reached.")
    ended: int = counter("Views and trees whose work was ended: its time was over, or its client had left.")
    reloads: int = counter("Times that the source was read again.")
    failed_reloads: int = counter("Times that reading it again failed and the old generation stayed.")
