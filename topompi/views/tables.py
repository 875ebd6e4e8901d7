"""From the routes of a fabric, or of a job's part of it, to the tables that simulated networks take."""

from __future__ import annotations

import numpy as np

from ..errors import FabricError
from ..netsim import Tables
from ..topology import Routes

__all__ = ["tables_of"]


def tables_of(routes: Routes, *, rate: float | None = None, latency: float | None = None) -> Tables:
    """Links and next-hop tables, with the fabric's own numbers of links and hosts; a host has its first adapter.

    :param routes: of a fabric, or of a job (``TopologyInterface.routes``).
    :param rate: bytes/s of links of unknown rate.
    :param latency: seconds of links of unknown latency.
    :raises FabricError: for links of unknown rate or latency, where none is given.
    :raises RouteError: for more next links than the limit of routes.
    Cost: a table of next links, if they are worked out.
    """
    filled = routes.tables.filled(rate, latency)
    for name, column in (("rate", filled.rate), ("latency", filled.latency)):
        unknown = int(np.isnan(column).sum())
        if unknown:
            raise FabricError(f"{routes.fabric.name}: expecting the {name} of all links, got {unknown} unknown")
    return Tables(
        source=filled.source,
        target=filled.target,
        rate=filled.rate,
        latency=filled.latency,
        next_link=routes.next_link,  # looked up for each message
        names=filled.names,
        adapters=filled.adapters[:1],
    )
