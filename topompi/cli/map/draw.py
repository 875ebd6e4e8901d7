"""``topompi map --draw``: the fabric with the mapped ranks, and what its links carry."""

from __future__ import annotations

from pathlib import Path

from ...mapping.graph import CommunicationGraph
from ...mapping.mapping import Mapping
from ...topology import Report
from ...views.picture.mapped import mapped_scene
from ...views.picture.writers import check_file, write
from .place import MapCommandError, Place

__all__ = ["check_draw", "draw_map"]


def check_draw(path: Path, place: Place) -> None:
    """Refuse a file name of another kind, and a machine that is no fabric, before any long work.

    :raises MapCommandError: without --topology.
    :raises PictureError: for a file name that no writer takes.
    """
    if place.topology is None:
        raise MapCommandError("--draw: expecting --topology, whose switches it draws, got --machine")
    check_file(path)


def draw_map(
    path: Path, place: Place, graph: CommunicationGraph, given: Mapping, mapped: Mapping, words: str, report: Report
) -> None:
    """Draw a mapping on its fabric; full width is the busiest link of the given order or of the map.

    :param path: file of the picture.
    :param place: options that name the topology.
    :param graph: bytes between ranks.
    :param given: the given order of the ranks.
    :param mapped: the map that is drawn, over the same hosts.
    :param words: heading of the picture.
    :param report: takes the progress.
    """
    routes = place.routes(report)
    report.step(f"drawing {path}")
    write(mapped_scene(routes, graph, given, mapped, words), path)
