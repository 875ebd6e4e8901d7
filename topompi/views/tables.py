"""Conversion of a fabric's or a job's routes into the tables of network simulations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import FabricError
from ..netsim import Tables
from ..network import Tables as Network
from ..topology import Routes
from ..topology.randomlinks import RandomLinks

__all__ = ["tables_of"]


def tables_of(
    routes: Routes,
    *,
    rate: float | None = None,
    latency: float | None = None,
    groups: NDArray[np.int64] | None = None,
    seed: int | None = None,
) -> Tables:
    """Convert routes into links and next-hop links, with the fabric's numbers; each host has only its first adapter.

    :param routes: routes of a fabric, or of a job (``TopologyInterface.routes``).
    :param rate: bandwidth in bytes/s of links of unknown rate; None to raise an error if there are any.
    :param latency: latency in seconds of links of unknown latency; None to raise an error if there are any.
    :param groups: group of each switch of a dragonfly, shape (switches,): if lanes rise by hop, they rise behind the
        links between groups alone; None if they rise behind every link between switches.
    :param seed: seed of static routes that each pair of hosts draws among its shortest paths, for the routes of a whole
        fabric; None for the given routes. See ``topology.randomlinks``.
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
        # A full table, because the simulation looks up single links for each message.
        next_link=routes.next_link if seed is None else RandomLinks.of(routes.fabric, seed),
        names=filled.names,
        adapters=filled.adapters[:1],
        rises=None if groups is None else _between(filled, groups),
    )


def _between(tables: Network, groups: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each link joins switches of different groups, shape (links,)."""
    group = np.concatenate((np.full(tables.first_switch, -1), groups))
    ends = group[tables.source], group[tables.target]
    between: NDArray[np.bool_] = (ends[0] >= 0) & (ends[1] >= 0) & (ends[0] != ends[1])
    return between
