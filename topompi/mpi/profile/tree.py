"""The picture of the bytes on each link, drawn on the fabric's tree of switches."""

from __future__ import annotations

import numpy as np

from ...mapping.graph import CommunicationGraph
from ...topology import TopologyInterface
from ...views.picture.fabricscene import DrawnJob, fabric_scene
from ...views.picture.loads import link_loads
from ...views.picture.scene import Scene

__all__ = ["tree_of"]


def tree_of(graph: CommunicationGraph, interface: TopologyInterface, title: str) -> Scene | None:
    """The picture of the job's part of the fabric, with each link's width by the seconds that its bytes need.

    The result is None if the placement has no fabric.

    :param graph: communication graph with as many ranks as the job.
    :param interface: the placement of the ranks.
    :param title: title of the picture.

    Cost: memory for hosts * hosts * (links of the longest route) numbers.
    """
    if interface.routes is None:
        return None
    rank_host = interface.rank_host.astype(np.int64)
    loads = link_loads(interface.routes, rank_host, (graph.sources, graph.targets, graph.volume))
    ranks = {host: np.flatnonzero(rank_host == host).tolist() for host in range(interface.num_hosts)}
    return fabric_scene(interface.routes, title, DrawnJob(np.arange(interface.num_hosts), ranks), loads)
