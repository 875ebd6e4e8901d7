"""What a network looks like and where a job sits in it: fabrics, routes, cluster trees, sources. Pure: no MPI."""

from .builder import FabricBuilder
from .discovery import Discovery, Report
from .fabric import Fabric
from .hostroutes import HostRoutes
from .interface import Level, TopologyInterface
from .routes import Routes
from .routing import compute_routes
from .sources import load
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
    "TopologyInterface",
    "cluster_tree",
    "compute_routes",
    "load",
]
