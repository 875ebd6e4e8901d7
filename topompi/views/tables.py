"""Conversion of a fabric's or a job's routes into the tables of network simulations."""

from __future__ import annotations

import numpy as np

from ..errors import FabricError
from ..netsim import Tables
from ..topology import Routes

__all__ = ["tables_of"]


def tables_of(routes: Routes, *, rate: float | None = None, latency: float | None = None) -> Tables:
    """Convert routes into links and next-hop links, with the fabric's numbers; each host has only its first adapter.

    :param routes: routes of a fabric, or of a job (``TopologyInterface.routes``).
    :param rate: bandwidth in bytes/s of links of unknown rate; None to raise an error if there are any.
    :param latency: latency in seconds of links of unknown latency; None to raise an error if there are any.
    :raises FabricError: if a rate or a latency is unknown and no value is given for it.
    :raises RouteError: if the number of next-hop links exceeds the limit ``routes``.
    Cost: memory for a table of next-hop links, if they are computed.
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
        next_link=routes.next_link,  # a full table, because the simulation looks up single links for each message
        names=filled.names,
        adapters=filled.adapters[:1],
    )
