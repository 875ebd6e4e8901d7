"""``topompi map --draw``: the fabric with the mapped ranks, and what its links carry."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...mapping.graph import CommunicationGraph
from ...mapping.mapping import Mapping
from ...topology import Report
from ...topology.hostnames import require_hosts
from ...views.picture.fabricscene import Job, fabric_scene
from ...views.picture.loads import link_loads
from ...views.picture.writers import check_file, write
from .sources import MapCommandError, Place

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

    :param path: of the picture.
    :param place: whose topology is drawn.
    :param graph: bytes between ranks.
    :param given: the given order; likewise ``mapped``, the map that is drawn, over the same hosts.
    :param words: its heading.
    :param report: takes the progress.
    """
    routes = place.routes(report)
    report.step(f"drawing {path}")
    number = require_hosts(routes.fabric, mapped.hosts).astype(np.int64)
    messages = (graph.sources, graph.targets, graph.volume)
    before, after = (link_loads(routes, number[one.host_of_rank], messages) for one in (given, mapped))
    full = max(float(side.seconds.max(initial=0.0)) for side in (before, after))
    rank_host = number[mapped.host_of_rank]
    job = Job.of_ranks(rank_host)
    write(fabric_scene(routes, words, job, after, full or None), path)
