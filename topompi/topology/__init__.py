"""What a network looks like and where a job sits in it: fabrics, routes, cluster trees, sources. Pure: no MPI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .builder import FabricBuilder
from .discovery import Discovery, Report
from .fabric import Fabric
from .hostroutes import HostRoutes
from .interface import Level, TopologyInterface
from .routes import Routes
from .routing import compute_routes
from .torus import SwitchTorus
from .tree import ClusterTree, cluster_tree

if TYPE_CHECKING:
    from .sources import load

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


def __getattr__(name: str) -> Any:
    """Import ``load`` when it is first used: only rank 0 of a job reads files, but every rank imports this package."""
    if name == "load":
        from .sources import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
