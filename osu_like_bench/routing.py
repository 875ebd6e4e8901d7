"""The routes of a topology source."""

from __future__ import annotations

import os

from topompi.topology import Report, Routes, load

__all__ = ["load_routes"]


def load_routes(
    source: str | os.PathLike[str], lfts: str | os.PathLike[str] | None = None, report: Report | None = None
) -> Routes:
    """Read a topology for its routes: the source's own, those of forwarding tables, or computed ones.

    :param source: a topology source, see ``topompi.topology.load``.
    :param lfts: forwarding tables in files other than the source.
    :param report: takes problems; without one the first problem is raised.
    :raises SourceError: as ``load``.
    """
    routes = load(source, lfts, report).routes
    assert routes is not None  # for the type checker: load() fills them in
    return routes
