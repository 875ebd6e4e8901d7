"""The picture of a mapping (ranks placed on hosts) on its fabric."""

from __future__ import annotations

import numpy as np

from ...mapping.graph import CommunicationGraph
from ...mapping.mapping import Mapping
from ...topology import Routes
from ...topology.hostnames import require_hosts
from .fabricscene import DrawnJob, fabric_scene
from .loads import link_loads
from .scene import Scene

__all__ = ["mapped_scene"]


def mapped_scene(routes: Routes, graph: CommunicationGraph, given: Mapping, mapped: Mapping, words: str) -> Scene:
    """Draw a mapping on its fabric; full line width is the time of the busiest link before or after the mapping.

    :param routes: the routes over the whole fabric.
    :param graph: bytes between ranks.
    :param given: the original placement of the ranks, before the mapping.
    :param mapped: the mapping to draw, over the same hosts.
    :param words: title of the picture.
    :raises HostError: if the fabric does not have one of the hosts.
    """
    number = require_hosts(routes.fabric, mapped.hosts).astype(np.int64)
    messages = (graph.sources, graph.targets, graph.volume)
    before, after = (link_loads(routes, number[one.host_of_rank], messages) for one in (given, mapped))
    full = max(float(side.seconds.max(initial=0.0)) for side in (before, after))
    return fabric_scene(routes, words, DrawnJob.of_ranks(number[mapped.host_of_rank]), after, full or None)
