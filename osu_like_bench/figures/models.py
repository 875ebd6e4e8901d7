"""The two models of a network under which figures are drawn: flows, and packets on switches with finite buffers."""

from __future__ import annotations

from collections.abc import Iterator

from topompi.topology import TopologyInterface
from topompi.views.network import network_of

from ..simulate import FlowArena

__all__ = ["arenas"]


def arenas(interface: TopologyInterface, system: str) -> Iterator[tuple[str, FlowArena]]:
    """A job under flows, then under packets, each with its name.

    :param interface: of the job, with routes.
    :param system: whose latencies and rates fill in what the fabric does not know.
    """
    network = network_of(interface)
    for name, routes in (("flows", None), ("packets", interface.routes)):
        with FlowArena(network, system=system, routes=routes) as arena:
            yield name, arena
