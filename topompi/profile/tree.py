"""The loads of links, drawn on the fabric's tree."""

from __future__ import annotations

import numpy as np

from ..mapping.graph import CommunicationGraph
from ..topology import TopologyInterface
from ..views.picture.fabricscene import DrawnJob, fabric_scene
from ..views.picture.loads import link_loads
from ..views.picture.scene import Scene

__all__ = ["tree_of"]


def tree_of(graph: CommunicationGraph, interface: TopologyInterface, title: str) -> Scene | None:
    """The job's part of the fabric, with link widths by the seconds that their loads need; None without a fabric.

    :param graph: communication graph with as many ranks as the job.
    :param interface: the placement of the ranks.
    :param title: title of the picture.

    Cost: hosts * hosts * (longest route) numbers.
    """
    if interface.routes is None:
        return None
    rank_host = interface.rank_host.astype(np.int64)
    loads = link_loads(interface.routes, rank_host, (graph.sources, graph.targets, graph.volume))
    ranks = {host: np.flatnonzero(rank_host == host).tolist() for host in range(interface.num_hosts)}
    return fabric_scene(interface.routes, title, DrawnJob(np.arange(interface.num_hosts), ranks), loads)
