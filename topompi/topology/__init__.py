"""Fabrics, routes and cluster trees, the readers of topology sources, and a job's place in its fabric. No MPI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..inputs.extensions import when_used

if TYPE_CHECKING:
    from .builder import FabricBuilder
    from .computed import compute_routes
    from .discovery import Discovery, Report
    from .fabric import Fabric
    from .hostroutes import HostRoutes
    from .interface import Level, TopologyInterface
    from .rereading import reread
    from .routes import Routes
    from .served import Served
    from .sources import load, load_routes
    from .torus import SwitchTorus
    from .tree import ClusterTree, cluster_tree

__all__ = [
    "ClusterTree",
    "Discovery",
    "Fabric",
    "FabricBuilder",
    "HostRoutes",
    "Level",
    "Report",
    "Routes",
    "Served",
    "SwitchTorus",
    "TopologyInterface",
    "cluster_tree",
    "compute_routes",
    "load",
    "load_routes",
    "reread",
]

# Imported at first use, because a client of the topology service needs no numpy, and only rank 0 of a job reads files.
__getattr__ = when_used(
    __name__,
    {
        "ClusterTree": "tree",
        "Discovery": "discovery",
        "Fabric": "fabric",
        "FabricBuilder": "builder",
        "HostRoutes": "hostroutes",
        "Level": "interface",
        "Report": "discovery",
        "Routes": "routes",
        "Served": "served",
        "SwitchTorus": "torus",
        "TopologyInterface": "interface",
        "cluster_tree": "tree",
        "compute_routes": "computed",
        "load": "sources",
        "load_routes": "sources",
        "reread": "rereading",
    },
)


def __dir__() -> list[str]:
    """The public names, including those that are not imported yet."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
