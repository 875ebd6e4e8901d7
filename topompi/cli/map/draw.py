"""``topompi map --draw`` and ``--plot``: pictures of mapped ranks on their fabric, and of their traffic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...inputs.figures import bare_name, cut_middle
from ...mapping.drawing import draw_plot
from ...mapping.graph import CommunicationGraph
from ...mapping.machine import Machine
from ...mapping.mapping import Mapping
from ...topology import Report
from .place import MapCommandError, Place

__all__ = ["check_draw", "draw_map", "heading", "plot_maps"]


def check_draw(path: Path, place: Place) -> None:
    """Check, before any long work, the picture's file name and that ``--topology`` gives a fabric to draw.

    :raises MapCommandError: if --topology is not given.
    :raises PictureError: if no writer takes the file name's suffix.
    """
    if place.topology is None:
        raise MapCommandError("--draw: expecting --topology, whose switches it draws, got --machine")
    from ...views.picture.writers import check_file  # imported here, because few maps are drawn

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
    from ...views.picture.mapped import mapped_scene  # imported here, because few maps are drawn
    from ...views.picture.writers import write

    routes = place.routes(report)
    report.step(f"drawing {path}")
    write(mapped_scene(routes, graph, given, mapped, words), path)


def heading(file: Path | None, place: Place, graph: CommunicationGraph, algorithm: str) -> str:
    """Return a picture's title: the program, its ranks, the fabric, and how the ranks were placed.

    :param file: file of the graph.
    :param place: the options that name the topology.
    :param graph: bytes between ranks.
    :param algorithm: name of the mapper; empty if the given order stays.
    """
    program, fabric = (cut_middle(bare_name(str(name)), 40) for name in (file, place.source))
    how = f"mapped by {algorithm}" if algorithm else "in the given order, which stays"
    return f"{program}: {graph.size:,} ranks on {fabric}, {how}"


def plot_maps(
    path: Path,
    file: Path | None,
    graph: CommunicationGraph,
    machine: Machine,
    maps: dict[str, Mapping],
    summary: dict[str, Any],
) -> None:
    """Draw the traffic of two maps.

    :param path: file of the picture.
    :param file: file of the graph.
    :param graph: bytes between ranks.
    :param machine: hosts of both maps.
    :param maps: the two maps by name.
    :param summary: figures of the two maps.
    """
    classes = {name: side["bytes_by_distance"] for name, side in summary["maps"].items()}
    program = cut_middle(bare_name(str(file)), 40)
    draw_plot(path, graph, machine, maps, classes, hops=summary["distance"] == "hops", program=program)
