"""What a network looks like and where a job sits in it: fabrics, routes, cluster trees, sources. Pure: no MPI."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .builder import FabricBuilder
    from .discovery import Discovery, Report
    from .fabric import Fabric
    from .hostroutes import HostRoutes
    from .interface import Level, TopologyInterface
    from .routes import Routes
    from .routing import compute_routes
    from .sources import load
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
    "SwitchTorus",
    "TopologyInterface",
    "cluster_tree",
    "compute_routes",
    "load",
]


# Imported when asked for: every rank of a job waits for what an MPI program imports, and only rank 0 reads files.
_WHERE = {
    **dict.fromkeys(("FabricBuilder",), ".builder"),
    **dict.fromkeys(("Discovery", "Report"), ".discovery"),
    **dict.fromkeys(("Fabric",), ".fabric"),
    **dict.fromkeys(("HostRoutes",), ".hostroutes"),
    **dict.fromkeys(("Level", "TopologyInterface"), ".interface"),
    **dict.fromkeys(("Routes",), ".routes"),
    **dict.fromkeys(("compute_routes",), ".routing"),
    **dict.fromkeys(("load",), ".sources"),
    **dict.fromkeys(("SwitchTorus",), ".torus"),
    **dict.fromkeys(("ClusterTree", "cluster_tree"), ".tree"),
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
