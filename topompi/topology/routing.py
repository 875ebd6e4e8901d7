"""Routes for fabrics whose source holds none: shortest paths, spread as d-mod-k spreads them."""

from __future__ import annotations

from .computed import ComputedLinks
from .fabric import Fabric
from .routes import Routes

__all__ = ["ENGINE", "compute_routes"]

ENGINE = "computed: shortest paths, d-mod-k among equals"


def compute_routes(fabric: Fabric) -> Routes:
    """Routes along shortest paths; among equally short links the destination's number chooses.

    In a fat tree this is d-mod-k: at level l a switch sends to destination d through up-port
    floor(d / product of the up-degrees below) mod (its up-degree), and the way down is unique but for parallel
    cables, which the same digit chooses (Zahavi, "D-Mod-K routing providing non-blocking traffic for shift
    permutations on real life fat trees", 2010). Other fabrics get the same rule on their shortest paths.

    :raises RouteError: for more entries (links between switches x groups of leaves) than the limit of routes.
    Cost: see ``ComputedLinks``; no table of switches x hosts is made.
    """
    return Routes(fabric, ENGINE, ComputedLinks.of(fabric))
