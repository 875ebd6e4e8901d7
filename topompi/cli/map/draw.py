"""``topompi map --draw``: a picture of the fabric with the mapped ranks and the bytes on its links."""

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
    """Check, before any long work, the picture's file name and that ``--topology`` gives a fabric to draw.

    :raises MapCommandError: if --topology is not given.
    :raises PictureError: if no writer takes the file name's suffix.
    """
    if place.topology is None:
        raise MapCommandError("--draw: expecting --topology, whose switches it draws, got --machine")
    check_file(path)


def draw_map(
    path: Path, place: Place, graph: CommunicationGraph, given: Mapping, mapped: Mapping, words: str, report: Report
) -> None:
    """Draw a mapping on its fabric, with each link's width by its load.

    The link that is busiest in the given order or in the map has the full width, so that pictures can be compared.

    :param path: file of the picture.
    :param place: options that name the topology.
    :param graph: bytes between ranks.
    :param given: the given order of the ranks.
    :param mapped: the map that is drawn, over the same hosts.
    :param words: heading of the picture.
    :param report: object that shows the progress.
    """
    routes = place.routes(report)
    report.step(f"drawing {path}")
    write(mapped_scene(routes, graph, given, mapped, words), path)
