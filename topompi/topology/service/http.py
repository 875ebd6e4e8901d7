"""The two HTTP pages for monitoring: ``GET /metrics`` for Prometheus, ``GET /health``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .state import Service

__all__ = ["MAX_HEADERS", "respond"]

MAX_HEADERS = 100


def respond(page: str, service: Service) -> bytes:
    """Make the complete HTTP response for a page, after which the connection is closed.

    :param page: requested path; the response is 404 unless it is ``/metrics`` or ``/health``.
    :param service: the service whose state is shown.
    """
    if page == "/metrics":
        return _response("200 OK", "text/plain; version=0.0.4; charset=utf-8", service.metrics())
    if page == "/health":
        health = service.health()
        status = "200 OK" if health["status"] == "ok" else "503 Service Unavailable"
        return _response(status, "application/json", json.dumps(health) + "\n")
    return _response("404 Not Found", "text/plain; charset=utf-8", "expecting /metrics or /health\n")


def _response(status: str, kind: str, text: str) -> bytes:
    body = text.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode("latin-1") + body
