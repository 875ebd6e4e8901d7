"""``topompi map --draw``: pictures of mapped ranks on their fabric, and of their traffic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...inputs.figures import bare_name, cut_middle
from ...mapping.drawing import draw_plot
from ...mapping.graph import CommunicationGraph
from ...mapping.machine import Machine
from ...mapping.mapping import Mapping
from ...topology import Report
from .place import MapCommandError, PlaceOptions

__all__ = ["check_draw", "draw_map", "heading", "plot_maps"]


def check_draw(path: Path, place: PlaceOptions) -> None:
    """Check, before any long work, the name of the picture's file, and that ``--topology`` names a fabric to draw.

    :param path: path of the picture.
    :param place: options that name the topology.
    :raises MapCommandError: if the topology is a regular tree.
    :raises PictureError: if no writer takes the file name's suffix.
    """
    if place.tree:
        raise MapCommandError("--draw: expecting a topology source, whose switches it draws, got a regular tree")
    from ...views.picture.writers import check_file  # imported here, because few maps are drawn

    check_file(path)


def draw_map(
    path: Path,
    place: PlaceOptions,
    graph: CommunicationGraph,
    given: Mapping,
    mapped: Mapping,
    words: str,
    report: Report,
) -> None:
    """Draw mapped ranks on their fabric, with links as wide as their loads.

    The full width stands for the larger one of the busiest links' loads in the given order and in the map, so that
    pictures of both can be compared.

    :param path: file of the picture.
    :param place: options that name the topology.
    :param graph: bytes between ranks.
    :param given: the given order of the ranks.
    :param mapped: the map that is drawn, over the same hosts.
    :param words: heading of the picture.
    :param report: object that collects problems and shows progress.
    """
    from ...views.picture.mapped import mapped_scene  # imported here, because few maps are drawn
    from ...views.picture.writers import write

    routes = place.routes(report)
    report.step(f"drawing {path}")
    write(mapped_scene(routes, graph, given, mapped, words), path)


def heading(file: Path | None, place: PlaceOptions, graph: CommunicationGraph, algorithm: str) -> str:
    """Return a picture's title: the program, its ranks, the fabric, and how the ranks were placed.

    :param file: path of the graph's file.
    :param place: options that name the topology or the regular tree.
    :param graph: bytes between ranks.
    :param algorithm: name of the mapper; empty if it found nothing better than the given order.
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
    """Draw the traffic of two maps side by side: bytes by distance, and bytes between hosts.

    :param path: path of the picture.
    :param file: path of the graph's file.
    :param graph: bytes between ranks.
    :param machine: hosts of both maps.
    :param maps: the two maps by name.
    :param summary: figures of the two maps, as for `topompi.cli.map.table.draw`.
    """
    classes = {name: side["bytes_by_distance"] for name, side in summary["maps"].items()}
    program = cut_middle(bare_name(str(file)), 40)
    draw_plot(path, graph, machine, maps, classes, hops=summary["distance"] == "hops", program=program)
